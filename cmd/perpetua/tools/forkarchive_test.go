package tools

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TestArchiveOfACopy archives copies of a log to the archive of the original. One is behind it, and one got records of its own since. The
// command names the record that the copy lacks, and changes nothing.
func TestArchiveOfACopy(t *testing.T) {
	const common, end = 40, 60
	ctx, rules := t.Context(), journaltest.Words{Name: "trading"}
	b, err := blob.Open(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	cfg := archive.Config{Store: blob.NewStore(b), Box: box, Journal: "trading"}
	holding := func(records func(topic string) []*kgo.Record) *journal.Client {
		t.Helper()
		client := journaltest.Connect(t, journal.Config{}, "trading")
		kc, err := client.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		defer kc.Close()
		if err := kc.ProduceSync(ctx, records(client.Topic("trading"))...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		return client
	}
	terms := func(n int) func(string) []*kgo.Record {
		return func(topic string) []*kgo.Record {
			all, _, _ := termsOf(topic, n, 0)
			return all
		}
	}
	forked := func(topic string) []*kgo.Record {
		all, _, _ := termsOf(topic, common, 0)
		own, _, _ := termsOfNode(topic, end+20, 0, "copy", common)
		return append(all, own[common:]...)
	}
	if err := archiveJournal(ctx, holding(terms(end)), rules, cfg, nil, nil); err != nil {
		t.Fatal(err)
	}
	before, err := archive.Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for name, records := range map[string]func(string) []*kgo.Record{"behind": terms(common), "forked": forked} {
		var diverged *record.DivergedError
		if err := archiveJournal(ctx, holding(records), rules, cfg, nil, nil); !errors.As(err, &diverged) || diverged.Have.Sequence != end-1 {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := archive.Open(ctx, cfg); err != nil || after.Tail().Manifest != before.Tail().Manifest {
			t.Errorf("%s: the tail is %+v, %v", name, after, err)
		}
	}
}
