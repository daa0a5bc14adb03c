package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
)

// given is a log in memory to copy from.
type given struct {
	transfer.Log // the rest of it
	records      []*kgo.Record
}

func (given) Base(context.Context) (*record.Base, error) { return nil, nil }

func (g given) Records(context.Context) (transfer.Records, error) { return &g, nil }

func (g *given) Next(context.Context) (*kgo.Record, error) {
	if len(g.records) == 0 {
		return nil, io.EOF
	}
	next := g.records[0]
	g.records = g.records[1:]
	return next, nil
}

func (*given) Close() {}

func (given) String() string { return "memory" }

// brokers returns a journal of identity with as many brokers.
func brokers(t *testing.T, n int) (records []*kgo.Record) {
	t.Helper()
	id, state := scalar.ID{9}, identity.Rules().NewState()
	var prev record.Hash
	add := func(c decide.Recorded, d decide.Decision) {
		r := &record.Record{Sequence: int64(len(records)), Prev: prev, Time: 1_800_000_000_000_000, Command: c, Input: d.Input, Outcome: decide.Accepted, Events: d.Events}
		value, err := record.Encode(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		state.Evolve(decide.Stamp{Journal: id, Sequence: r.Sequence, Time: r.Time}, c, r.Outcome, d.Events)
		k := journal.KafkaRecord("identity", "identity", 0, id, r, value)
		k.Offset, prev = r.Sequence, sha256.Sum256(value)
		records = append(records, k)
	}
	add(decide.Recorded{Type: record.TypeGenesis, Actor: decide.Engine}, decide.Decision{Events: []decide.Event{&record.Genesis{Journal: "identity", JournalID: id, Partitions: 1}}})
	add(decide.Recorded{Type: record.TypeTermStarted, Actor: decide.Engine}, decide.Decision{Events: []decide.Event{&record.TermStarted{Term: 1, Node: "n"}}})
	for i := range n {
		c := decide.Command{ID: scalar.ID{byte(i), 1}, Type: identity.CommandRegisterBroker, Actor: decide.Actor{System: "bootstrap"},
			Payload: &identity.RegisterBroker{Broker: "broker" + string(rune('a'+i)), Name: "Broker"}}
		d, err := state.Decide(decide.Stamp{Journal: id, Sequence: int64(len(records)), Time: 1_800_000_000_000_000}, c)
		if err != nil {
			t.Fatal(err)
		}
		add(c.Recorded(), d)
	}
	return records
}

// auditWith runs a subcommand of `perpetua audit` with an empty data folder.
func auditWith(t *testing.T, subcommand string, args ...string) (out string, err error) {
	t.Helper()
	var b bytes.Buffer
	std := settings.IO{Out: &b, Err: new(bytes.Buffer), Env: func(string) (string, bool) { return "", false }}
	err = Audit(t.Context(), append([]string{subcommand, "--data", t.TempDir()}, args...), std)
	return b.String(), err
}

// verifyWith runs `perpetua audit verify`.
func verifyWith(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	return auditWith(t, "verify", args...)
}

// TestVerifyAFile verifies a file, before and after a byte of it is changed.
func TestVerifyAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	records := brokers(t, 9)
	if _, err := transfer.Copy(t.Context(), identity.Rules(), given{records: records}, transfer.Target(path, "identity"), nil); err != nil {
		t.Fatal(err)
	}
	if err := transfer.Finish(path); err != nil {
		t.Fatal(err)
	}
	out, err := verifyWith(t, "--file", path)
	if err != nil || !strings.Contains(out, "identity: 11 records from 0 on") || !strings.Contains(out, " 9 decided again") || !strings.Contains(out, "trading: the log is empty") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = verifyWith(t, "--file", path, "--chain-only")
	if err != nil || !strings.Contains(out, " 11 not decided again, with --chain-only") {
		t.Errorf("%v\n%s", err, out)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(content, []byte("brokerd"), []byte("brokerx"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err = verifyWith(t, "--file", path); err == nil || !strings.Contains(err.Error(), "identity: record 5") || !strings.Contains(out, "identity: WRONG: record 5") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = verifyWith(t, "--file", path, "--json", "--journal", "identity")
	var found struct {
		Equal    bool
		Journals []struct {
			Journal    string
			Records    int64
			Difference struct {
				Sequence int64
				Check    string
			}
		}
	}
	if failed := json.Unmarshal([]byte(out), &found); err == nil || failed != nil || found.Equal || len(found.Journals) != 1 || found.Journals[0].Records != 5 ||
		found.Journals[0].Difference.Sequence != 5 {
		t.Errorf("%v %v\n%s", err, failed, out)
	}
}

// TestNoEmptyFileIsRead: a file without a record of the wanted journals is an error of each verb that reads files, which makes nothing.
func TestNoEmptyFileIsRead(t *testing.T) {
	dir := t.TempDir()
	to, empty, compressed, users := filepath.Join(dir, "to"), filepath.Join(dir, "empty.jsonl"), filepath.Join(dir, "empty.jsonl.zst"), filepath.Join(dir, "users.jsonl")
	for _, path := range []string{empty, compressed} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := transfer.Copy(t.Context(), identity.Rules(), given{records: brokers(t, 2)}, transfer.Target(users, "identity"), nil)
	if err := errors.Join(err, transfer.Finish(users)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, others, says string }{
		{empty, "", "the file is empty"},
		{compressed, "", "the file is empty"},
		{users, "trading", "the file has no record of trading"},
	} {
		for _, args := range [][]string{
			{"audit", "verify", "--file", c.file}, {"audit", "what-if", "--file", c.file},
			{"log", "parquet", "--file", c.file, "--to", to}, {"log", "copy", "--from", c.file, "--to", to},
			{"log", "copy", "--from", c.file, "--to", to + ".jsonl"},
		} {
			if c.others != "" && args[1] != "what-if" {
				args = append(args, "--journal", c.others)
			}
			run := Log
			if args[0] == "audit" {
				run = Audit
			}
			var out bytes.Buffer
			err := run(t.Context(), args[1:], outputTo(&out))
			var usage *settings.UsageError
			if err == nil || errors.As(err, &usage) || !strings.Contains(err.Error(), c.file+": "+c.says) {
				t.Errorf("%s: %v\n%s", args, err, &out)
			}
			if made, _ := filepath.Glob(to + "*"); len(made) > 0 {
				t.Errorf("%s made %s", args, made)
			}
		}
	}
}

// TestVerifyUsage refuses arguments that do not go together.
func TestVerifyUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--file", "a", "--archive", "file:///b"}, {"--rows", "--file", "a"}, {"--rows=maybe"}, {"--chain-only", "--rules"}, {"--checkpoint", "a"}, {"--key", "a"},
		{"--archive", "nonsense"}, {"--journal", "weather"}, {"more"},
	} {
		var wrong *settings.UsageError
		if _, err := verifyWith(t, args...); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestNoTornFileIsRead: a file with a changed or missing record is refused by all that read records from files. The record of an owner that
// lost a race, and a second copy, are skipped.
func TestNoTornFileIsRead(t *testing.T) {
	records := brokers(t, 9)
	changed := func(n int) *kgo.Record {
		r := *records[n]
		r.Value = bytes.Replace(r.Value, []byte(`"name":"Broker"`), []byte(`"name":"broker"`), 1)
		return &r
	}
	for name, c := range map[string]struct {
		records []*kgo.Record
		read    int
		torn    bool
	}{
		"whole":         {records, 11, false},
		"a second copy": {slices.Insert(slices.Clone(records), 6, records[5]), 11, false},
		"a lost race":   {slices.Insert(slices.Clone(records), 6, changed(5)), 11, false},
		"changed":       {slices.Concat(records[:5], []*kgo.Record{changed(5)}, records[6:]), 6, true},
		"missing":       {slices.Concat(records[:5], records[6:]), 5, true},
	} {
		n := 0
		err := readLog(t.Context(), given{records: c.records}, identity.Rules(), record.Before, false, func(*record.Entry) error { n++; return nil })
		var torn *record.DivergedError
		if errors.As(err, &torn) != c.torn || !c.torn && err != nil || n != c.read || c.torn && torn.Have.Sequence != 5 {
			t.Errorf("%s: %d records, %v", name, n, err)
		}
	}
}
