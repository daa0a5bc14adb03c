package transfer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// kept is a source of one base that a test sets.
type kept struct{ base *record.Base }

func (k *kept) Base(context.Context, string, int32) (*record.Base, error) { return k.base, nil }
func (k *kept) String() string                                            { return "the test" }

// baseOf returns the base at a record of a log without records that readers skip before it.
func baseOf(t *testing.T, all []*kgo.Record, sequence int) record.Base {
	t.Helper()
	chain := record.NewChain(rules, 0, record.Before)
	var last record.Entry
	for i, r := range all[:sequence] {
		e, ok, err := chain.Admit(int64(i), r.Value)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		last = e
	}
	return record.Base{Journal: rules.Name, Partitions: 1, JournalID: last.Journal, Sequence: int64(sequence), Prev: last.Position.Hash, Term: chain.Term()}
}

// TestCopyOfATrimmedLog copies a log that begins at a base to topics and files, from there to others, and goes on.
func TestCopyOfATrimmedLog(t *testing.T) {
	const at = 60
	_, all := history(t, 120)
	known := new(kept)
	client := journaltest.Connect(t, journal.Config{Bases: []base.Source{known}}, rules.Name)
	source := Topic(client, rules.Name, "the source")
	appendAll(t, source, all...)
	b := baseOf(t, all, at)
	known.base = &b
	if start, err := client.Trim(t.Context(), client.Trimmer(), b, at); err != nil || start != at {
		t.Fatal(start, err)
	}
	dir := t.TempDir()
	targets := []Log{empty(t), Target(filepath.Join(dir, "log.jsonl"), rules.Name), Target(filepath.Join(dir, "log.zst"), rules.Name)}
	for range 2 { // and once more
		for _, to := range targets {
			s, err := Copy(t.Context(), rules, source, to, nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.Base == nil || *s.Base != b || s.Records != int64(len(all)-at) {
				t.Errorf("to %s: %+v", to, s)
			}
			holds(t, to, all[at:])
		}
	}
	for _, name := range []string{"log.jsonl", "log.zst"} {
		path := filepath.Join(dir, name)
		if err := Finish(path); err != nil {
			t.Fatal(err)
		}
		if got, err := Source(path, rules.Name).Base(t.Context()); err != nil || *got != b {
			t.Errorf("%s has the base %v, %v", name, got, err)
		}
		target := journaltest.Connect(t, journal.Config{Bases: []base.Source{known}}, rules.Name)
		back := Topic(target, rules.Name, "the target")
		if _, err := Copy(t.Context(), rules, Source(path, rules.Name), back, nil); err != nil {
			t.Fatal(err)
		}
		holds(t, back, all[at:])
		// Offsets begin at 0 there, and the offset of a record is below its sequence.
		if err := target.CheckTopics(t.Context(), rules.Name); err != nil {
			t.Error(err)
		}
		r := journal.NewReader(target, rules, 0, b.Before())
		entries, err := r.PollFor(t.Context(), at)
		r.Close()
		if err != nil || entries[0].Position.Sequence != at || entries[0].Position.Offset != 0 {
			t.Errorf("read from %s: %v, %v", name, entries, err)
		}
	}
}

// TestCopyRefusesAnotherBase names what differs, and leaves the file.
func TestCopyRefusesAnotherBase(t *testing.T) {
	source, all := history(t, 40)
	b := baseOf(t, all, 20)
	line, err := appendBase(nil, b)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := appendLine(nil, rules.Name, all[0])
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := appendBase(nil, record.Base{Journal: rules.Name, Partition: 0, Partitions: 1, Sequence: 20})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log.jsonl")
	for what, c := range map[string]struct {
		there []byte
		want  string
	}{
		"another beginning":   {line, "begins elsewhere"},
		"a base that is none": {elsewhere, "this is not the line of a base"},
		"a base later on":     {append(whole, line...), "does not come before"},
	} {
		if err := os.WriteFile(path, c.there, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Copy(t.Context(), rules, source, Target(path, rules.Name), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
		if after, _ := os.ReadFile(path); c.want == "begins elsewhere" && string(after) != string(c.there) {
			t.Errorf("%s: the file was changed", what)
		}
	}
	var other *OtherError
	if _, err := Target(path, rules.Name).Append(t.Context(), nil); errors.As(err, &other) {
		t.Errorf("a log from its genesis: %v", err)
	}
}
