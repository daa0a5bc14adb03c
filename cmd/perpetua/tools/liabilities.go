package tools

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/liabilities"
)

// maxProofFile bounds the bytes of a file that VerifyLiabilities reads.
const maxProofFile = 64 << 20

// verifiedProof is the result of a proof that was checked.
type verifiedProof struct {
	CustomerCode string                `json:"customer_code"`
	Value        liabilities.Amount    `json:"value"`
	Recorded     liabilities.Published `json:"recorded"`
	Compared     bool                  `json:"compared"` // with a statement from another source than the proof
}

// Liabilities is the command liabilities, which has one verb.
func Liabilities(ctx context.Context, args []string, std settings.IO) error {
	if len(args) > 0 && args[0] == "verify" {
		return VerifyLiabilities(ctx, args[1:], std)
	}
	_, err := settings.ParseOwn("liabilities", "verify FILE [flags]", args, std, func(*flag.FlagSet) {})
	if err == nil {
		err = settings.Usagef("usage: perpetua liabilities verify FILE [flags]")
	}
	return err
}

// VerifyLiabilities checks a customer's proof offline.
func VerifyLiabilities(_ context.Context, args []string, std settings.IO) error {
	var recorded string
	var asJSON bool
	files, err := settings.ParseOwn("liabilities verify", "FILE [flags]", args, std, func(fs *flag.FlagSet) {
		fs.StringVar(&recorded, "recorded", "", "file with the recorded statement: the response of GET /v1/liabilities/POSITION, or lines of perpetua log "+
			"(default: the statement in the proof, which need not be in the journal)")
		settings.JSONFlag(fs, &asJSON)
	})
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return settings.Usagef("one FILE is needed, with the response of GET /v1/customers/CODE/liability-proof")
	}
	text, err := readBounded(files[0])
	if err != nil {
		return err
	}
	p, err := liabilities.ParseProof(text)
	if err != nil {
		return fmt.Errorf("%s: %w", files[0], err)
	}
	statement := &p.Recorded
	if recorded != "" {
		if text, err = readBounded(recorded); err != nil {
			return err
		}
		if statement, err = statementIn(text, p.Recorded.Position); err != nil {
			return fmt.Errorf("%s: %w", recorded, err)
		}
	}
	if err := p.Verify(statement); err != nil {
		return fmt.Errorf("%s: %w", files[0], err)
	}
	result := verifiedProof{p.CustomerCode, p.Value, *statement, recorded != ""}
	if asJSON {
		return std.PrintJSON(result)
	}
	s := &result.Recorded
	fmt.Fprintf(std.Out, "The proof is valid: at %s, record %d, the venue owed %s %s of 10^-%d %s, as a part of %s.\n", s.Timestamp, s.Position, result.CustomerCode,
		result.Value, s.Scale, s.Asset, s.Total)
	if !result.Compared {
		root, _ := s.Root.MarshalText()
		fmt.Fprintf(std.Out, "It was checked against its own statement only. Compare the root %s with that of record %d, or pass --recorded.\n", root, s.Sequence)
	}
	return nil
}

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxProofFile+1))
	if err == nil && len(text) > maxProofFile {
		err = fmt.Errorf("%s has more than %d bytes", name, maxProofFile)
	}
	return text, err
}

// statementIn returns the statement about a position from the response of the interface, or from lines that are records.
func statementIn(text []byte, position int64) (*liabilities.Published, error) {
	for d := jsontext.NewDecoder(bytes.NewReader(text)); ; {
		value, err := d.ReadValue()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("it has no statement about record %d", position)
		}
		if err != nil {
			return nil, fmt.Errorf("it can't be read: %w", err)
		}
		s, err := statementOf(value)
		if err != nil {
			return nil, err
		}
		if s != nil && s.Position == position {
			return s, nil
		}
	}
}

// statementOf returns the statement that one JSON value has, or nil.
func statementOf(value jsontext.Value) (*liabilities.Published, error) {
	var r struct {
		Sequence int64 `json:"sequence"`
		Events   []struct {
			Type string         `json:"type"`
			Data jsontext.Value `json:"data"`
		} `json:"events"`
	}
	if err := json.Unmarshal(value, &r); err != nil {
		return nil, fmt.Errorf("it is no statement and no record: %w", err)
	}
	if r.Events == nil {
		s := new(liabilities.Published)
		if err := readStatement(value, s); err != nil {
			return nil, fmt.Errorf("it is no statement: %w", err)
		}
		return s, nil
	}
	for _, e := range r.Events {
		if e.Type != "liabilities.recorded" {
			continue
		}
		recorded := liabilities.Recorded{}
		if err := readStatement(e.Data, &recorded.Statement); err != nil {
			return nil, fmt.Errorf("record %d has no statement: %w", r.Sequence, err)
		}
		recorded.Sequence = r.Sequence
		s := recorded.Publish()
		return &s, nil
	}
	return nil, nil
}

// readStatement reads a statement into s. A statement has all its members, also those that are 0.
func readStatement(text jsontext.Value, s any) error {
	if err := json.Unmarshal(text, s, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	whole, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return compareMembers("", text, whole)
}

// compareMembers returns an error if given lacks a member of the object whole, or has null for it. path is that of the object.
func compareMembers(path string, given, whole jsontext.Value) error {
	var has, needs map[string]jsontext.Value
	if err := errors.Join(json.Unmarshal(given, &has), json.Unmarshal(whole, &needs)); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		value := has[name]
		if value == nil || value.Kind() == 'n' {
			return fmt.Errorf("%s%s is missing", path, name)
		}
		if needs[name].Kind() == '{' {
			if err := compareMembers(path+name+".", value, needs[name]); err != nil {
				return err
			}
		}
	}
	return nil
}
