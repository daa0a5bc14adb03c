package tools

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/receipt"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// trust holds the flags for the policy of a tool.
type trust struct{ key, policy string }

func (t *trust) declare(fs *flag.FlagSet) {
	fs.StringVar(&t.key, "key", "", "verifier keys of the log, or a file of them, as GET /tlog/…/keys returned them once (default: the logs of --policy)")
	fs.StringVar(&t.policy, "policy", "", "file of the logs, and of the witnesses that must have cosigned (c2sp.org/tlog-policy)")
}

// open returns the policy that the flags describe.
func (t *trust) open() (*transparency.Policy, error) {
	policy := transparency.NewPolicy()
	if t.policy != "" {
		var err error
		if policy, err = settings.ReadPolicy("--policy", t.policy); err != nil {
			return nil, err
		}
	}
	if t.key != "" {
		one, err := policy.ForLog(textOrFile(t.key))
		if err != nil {
			return nil, settings.Usagef("--key: %v", err)
		}
		return one, nil
	}
	if len(policy.Logs) == 0 {
		return nil, settings.Usagef("--key is needed, or a --policy with logs")
	}
	return policy, nil
}

// verifiedReceipt is the JSON output of VerifyReceipt.
type verifiedReceipt struct {
	Origin   string            `json:"origin"`
	Sequence int64             `json:"sequence"`
	Root     string            `json:"root"` // of the record
	Time     string            `json:"time"`
	Command  string            `json:"command"`
	Outcome  string            `json:"outcome"`
	Owners   []string          `json:"owners"`
	Records  int64             `json:"checkpoint_records"`
	Retired  *time.Time        `json:"key_retired"` // when, if only a retired key has signed the checkpoint
	Cosigned []cosignedBy      `json:"cosigned"`
	Units    []json.RawMessage `json:"units"`
}

type cosignedBy struct {
	Witness string    `json:"witness"`
	Time    time.Time `json:"time"`
}

// Receipt is the command receipt. Its only subcommand is VerifyReceipt.
func Receipt(ctx context.Context, args []string, std settings.IO) error {
	if len(args) > 0 && args[0] == "verify" {
		return VerifyReceipt(ctx, args[1:], std)
	}
	_, err := settings.ParseOwn("receipt", "verify FILE --key KEY [flags]", args, std, func(*flag.FlagSet) {})
	if err == nil {
		err = settings.Usagef("usage: perpetua receipt verify FILE --key KEY [flags]")
	}
	return err
}

// VerifyReceipt verifies a receipt in a file, or in the standard input if the file is "-". It needs no venue.
func VerifyReceipt(_ context.Context, args []string, std settings.IO) error {
	var t trust
	var asJSON bool
	files, err := settings.ParseOwn("receipt verify", "FILE --key KEY [flags]", args, std, func(fs *flag.FlagSet) {
		t.declare(fs)
		settings.JSONFlag(fs, &asJSON)
	})
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return settings.Usagef("one FILE with a receipt is needed, or - for the standard input")
	}
	policy, err := t.open()
	if err != nil {
		return err
	}
	data, err := readSmall(files[0], std.In)
	if err != nil {
		return err
	}
	v, err := receipt.Verify(data, policy)
	if err != nil {
		return fmt.Errorf("%s: %w", files[0], err)
	}
	if asJSON {
		return std.PrintJSON(outputOf(v))
	}
	printReceipt(std.Out, v)
	return nil
}

// readSmall reads a file that is at most as large as a receipt, and one byte more of a larger one.
func readSmall(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, receipt.MaxSize+1))
}

func outputOf(v *receipt.Verified) verifiedReceipt {
	root, _ := v.Root.MarshalText() // it has no error
	out := verifiedReceipt{Origin: v.Checkpoint.Origin, Sequence: v.Sequence, Root: string(root), Time: v.Time, Command: v.Command, Outcome: v.Outcome,
		Owners: append([]string{}, v.Owners...), Records: v.Checkpoint.Size, Cosigned: []cosignedBy{}}
	if at := v.Checkpoint.Retired; !at.IsZero() {
		out.Retired = &at
	}
	for _, c := range v.Checkpoint.Cosigned {
		out.Cosigned = append(out.Cosigned, cosignedBy(c))
	}
	for _, u := range v.Units {
		out.Units = append(out.Units, json.RawMessage(u))
	}
	return out
}

func printReceipt(out io.Writer, v *receipt.Verified) {
	fmt.Fprintf(out, "record %d of %s, %s, %s %s\n", v.Sequence, v.Checkpoint.Origin, v.Time, v.Command, v.Outcome)
	fmt.Fprintf(out, "root %v, in a signed tree of %d records\n", base64.StdEncoding.EncodeToString(v.Root[:]), v.Checkpoint.Size)
	if at := v.Checkpoint.Retired; !at.IsZero() {
		fmt.Fprintf(out, "signed by a key that retired at %s, and cosigned before\n", at.Format(time.RFC3339))
	}
	for _, c := range v.Checkpoint.Cosigned {
		fmt.Fprintf(out, "cosigned by %s at %s\n", c.Witness, c.Time.Format(time.RFC3339))
	}
	for _, u := range v.Units {
		fmt.Fprintln(out, u)
	}
}
