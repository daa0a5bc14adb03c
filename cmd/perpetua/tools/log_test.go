package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// writeRunFile writes a run.json to the folder and locks the folder, as a node that runs on it does.
func writeRunFile(t *testing.T, dir string, r local.RunFile) {
	t.Helper()
	folder, err := local.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	r.PID = os.Getpid()
	if err := local.WriteRunFile(folder.Path("run.json"), r); err != nil {
		t.Fatal(err)
	}
}

func TestAFolderSaysNothingOfTheLogOfOtherBrokers(t *testing.T) {
	folder := t.TempDir()
	writeRunFile(t, folder, local.RunFile{REST: "http://x", Kafka: []string{"a:1", "b:2"}, DatabaseURL: "db"})
	for brokers, is := range map[string]bool{"": true, "a:1, b:2": true, "a:1": false, "c:3": false} {
		s := &settings.Settings{Data: folder}
		s.Kafka.Brokers = brokers
		ours, running, err := folderOfLog(s)
		if err != nil || ours != is || (running.DatabaseURL == "db") != is {
			t.Errorf("brokers %q: %v %v: %v", brokers, ours, running, err)
		}
	}
	if ours, _, err := folderOfLog(&settings.Settings{Data: t.TempDir()}); !ours || err != nil {
		t.Errorf("where nothing runs: %v", err)
	}
}

// oneWord returns a client of a log that holds a word, and what its owner answered.
func oneWord(ctx context.Context, t *testing.T, rules journaltest.Words) (*journal.Client, submit.Result) {
	t.Helper()
	client := journaltest.NewClient(t, rules.Name)
	o, err := journal.NewOwner(journal.OwnerConfig{Client: client, Rules: rules, Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	owning, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- o.Run(owning) }()
	for {
		if _, serving := o.Serving(); serving {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatal("the owner does not serve")
		case <-time.After(5 * time.Millisecond):
		}
	}
	c := journaltest.Say("one")
	said, err := journaltest.Insist(func() (submit.Result, error) { return o.Submit(ctx, c) })
	end()
	if ended := <-done; err != nil || ended != nil {
		t.Fatal(err, ended)
	}
	return client, said
}

// TestALogFromItsEndEnds asks for what comes after the last record, which is all that anything at hand remembers: there
// is nothing to print and nothing to wait for, but the log still has to hold that position.
func TestALogFromItsEndEnds(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
	defer stop()
	rules := journaltest.Words{Name: "trading"}
	client, said := oneWord(ctx, t, rules)
	print := func(start record.Position, from int64) (string, error) {
		var out bytes.Buffer
		b := bufio.NewWriter(&out)
		err := printLog(ctx, client, rules, start, logFilter{from: from, to: math.MaxInt64}, false, b)
		b.Flush()
		return out.String(), err
	}
	last := said.Entry.Position
	if text, err := print(record.Before, last.Sequence); err != nil || text != string(said.Entry.Value)+"\n" {
		t.Errorf("the last record is %q: %v", text, err)
	}
	if text, err := print(last, last.Sequence+1); err != nil || text != "" {
		t.Errorf("after it comes %q: %v", text, err)
	}
	forged, beyond := last, last
	forged.Hash[0]++
	beyond.Offset++
	beyond.Sequence++
	var diverged *record.DivergedError
	for _, p := range []record.Position{forged, beyond} {
		if text, err := print(p, p.Sequence+1); !errors.As(err, &diverged) || text != "" {
			t.Errorf("from %v, which the log does not hold, %q: %v", p, text, err)
		}
	}
}
