package receipt

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// Format is the version of receipts that this package reads and writes.
const Format = "perpetua-receipt@v1"

// MaxSize bounds a receipt in bytes: units of the largest record, twice as long in JSON strings.
const MaxSize = 8 << 20

// Receipt is a receipt in its JSON form.
type Receipt struct {
	Format string `json:"format"`
	Units  []Unit `json:"units"` // in the order of the record; the first is unit 1
	Entry  Base64 `json:"entry"` // of the record in the log: the byte 1 and the record root
	Proof  string `json:"proof"` // a c2sp.org/tlog-proof of the entry
}

// Unit is a disclosed unit and its proof.
type Unit struct {
	Text string `json:"unit"` // the JSON of the unit, byte for byte
	commitment.Opening
}

// Base64 is bytes that are base64 with padding in JSON.
type Base64 []byte

// MarshalText returns the bytes in base64.
func (b Base64) MarshalText() ([]byte, error) { return base64.StdEncoding.AppendEncode(nil, b), nil }

// UnmarshalText reads what MarshalText returns.
func (b *Base64) UnmarshalText(text []byte) (err error) {
	if bytes.ContainsAny(text, "\r\n") { // which the decoder skips
		return fmt.Errorf("%.60q is not base64", text)
	}
	*b, err = base64.StdEncoding.Strict().DecodeString(string(text))
	return err
}

// Parse reads a receipt and verifies nothing. Its errors name the member.
func Parse(data []byte) (*Receipt, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("a receipt has at most %d bytes", MaxSize)
	}
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("this is not a receipt: %w", err)
	}
	if head.Format != Format {
		return nil, fmt.Errorf("format: this is %.60q, and %s is supported", head.Format, Format)
	}
	r := new(Receipt)
	if err := json.Unmarshal(data, r, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false)); err != nil {
		return nil, fmt.Errorf("this is not a receipt: %w", err)
	}
	return r, nil
}

// Head is what unit 1 discloses of every record.
type Head struct {
	Sequence int64
	Time     string
	Command  string // its type
	Outcome  string
}

// Verified is a receipt that was verified.
type Verified struct {
	Head
	Root       commitment.Hash // of the record
	Owners     []string        // the parties whose units are disclosed, such as customer/C1
	Units      []string        // the JSON of each disclosed unit
	Checkpoint *transparency.Opened
}

// Verify verifies a receipt under a policy. Its errors name the member, and in the proof the line.
func Verify(data []byte, policy *transparency.Policy) (*Verified, error) {
	r, err := Parse(data)
	if err != nil {
		return nil, err
	}
	v := new(Verified)
	if v.Root, err = transparency.ParseEntry(r.Entry); err != nil {
		return nil, fmt.Errorf("entry: %w", err)
	}
	proof, err := transparency.ParseProof(r.Proof)
	if err != nil {
		return nil, fmt.Errorf("proof: %w", err)
	}
	if v.Checkpoint, err = proof.Verify(policy, r.Entry); err != nil {
		return nil, fmt.Errorf("proof: %w", err)
	}
	if err := v.openUnits(r.Units); err != nil {
		return nil, err
	}
	if v.Sequence != proof.Index {
		return nil, fmt.Errorf("units[0]: the record has the sequence %d, and the proof the index %d", v.Sequence, proof.Index)
	}
	return v, nil
}

// openUnits verifies the units against the root.
func (v *Verified) openUnits(units []Unit) error {
	if len(units) == 0 {
		return errors.New("units: unit 1 is missing")
	}
	for i := range units {
		u := &units[i]
		if u.Count != units[0].Count || i > 0 && u.Index <= units[i-1].Index {
			return fmt.Errorf("units[%d]: unit %d of %d follows another of %d", i, u.Index, u.Count, units[0].Count)
		}
		if err := u.Verify(v.Root, []byte(u.Text)); err != nil {
			return fmt.Errorf("units[%d]: %w", i, err)
		}
		var whose struct {
			Owner string `json:"owner"`
		}
		if err := json.Unmarshal([]byte(u.Text), &whose); err != nil {
			return fmt.Errorf("units[%d]: the unit is not JSON: %w", i, err)
		}
		if o := whose.Owner; o != "" && !slices.Contains(v.Owners, o) {
			v.Owners = append(v.Owners, o)
		}
		v.Units = append(v.Units, u.Text)
	}
	return v.readHead(&units[0])
}

// headUnit is the index of the unit that is in every receipt.
const headUnit = 1

func (v *Verified) readHead(u *Unit) error {
	var head struct {
		Class    string `json:"class"`
		Sequence int64  `json:"sequence"`
		Time     string `json:"time"`
		Command  struct {
			Type string `json:"type"`
		} `json:"command"`
		Outcome string `json:"outcome"`
	}
	if err := json.Unmarshal([]byte(u.Text), &head, json.RejectUnknownMembers(true)); err != nil || u.Index != headUnit {
		return errors.New("units[0]: the first unit is not unit 1 of a record")
	}
	v.Head = Head{head.Sequence, head.Time, head.Command.Type, head.Outcome}
	return nil
}
