package tools

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestCopyOfAFileWithOneJournal copies the file to a log that has another journal too, which stays as it is. No argument names the
// journal of the file.
func TestCopyOfAFileWithOneJournal(t *testing.T) {
	all, values, _ := termsOf("trading", 20, 0)
	id := scalar.ID{6}
	genesis := &record.Record{Time: 1_700_000_000_000_000, Outcome: decide.Accepted, Command: decide.Recorded{ID: scalar.ID{1}, Type: record.TypeGenesis, Actor: decide.Engine},
		Events: []decide.Event{&record.Genesis{Journal: "identity", JournalID: id, Partitions: 1}}}
	value, err := record.Encode(nil, genesis)
	if err != nil {
		t.Fatal(err)
	}
	with := func(records ...*kgo.Record) string {
		return filledFolder(t, records, 64<<10, func(*broker.Broker, *journal.Client, base.Folder) {})
	}
	log := func(dir, name string) string {
		var out bytes.Buffer
		if err := Log(t.Context(), []string{"--data", dir, "--journal", name}, outputTo(&out)); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	other := journal.KafkaRecord("identity", "identity", 0, id, genesis, value)
	from, to, file := with(all...), with(append(all[:10:10], other)...), filepath.Join(t.TempDir(), "log.zst")
	var out bytes.Buffer
	for _, c := range [][]string{{"--from", from, "--to", file, "--journal", "trading"}, {"--from", file, "--to", to}} {
		if err := CopyLog(t.Context(), append(c, "--data", t.TempDir()), outputTo(&out)); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
	}
	if !strings.Contains(out.String(), "identity: the file holds nothing of it, and the target keeps what it has") {
		t.Errorf("%s", &out)
	}
	if got := log(to, "trading"); got != strings.Join(values, "\n")+"\n" {
		t.Errorf("trading: %s", got)
	}
	if got := log(to, "identity"); got != string(value)+"\n" {
		t.Errorf("identity: %s", got)
	}
}
