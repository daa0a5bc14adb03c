package tools

import (
	"bytes"
	"encoding/base64"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TestCopyJoinsArchiveAndTopic copies a topic whose beginning was deleted in the middle of a range, where no base is. The archive ends
// in that range.
func TestCopyJoinsArchiveAndTopic(t *testing.T) {
	const n, archived, inRange = 60, 45, 32
	key := base64.StdEncoding.EncodeToString(make([]byte, seal.KeySize))
	all, values, _ := termsOf("trading", n, 0)
	junk := func() *kgo.Record {
		return &kgo.Record{Topic: "trading", Value: []byte("junk"), Timestamp: time.UnixMilli(5)}
	}
	all = slices.Insert(all, archived, junk(), junk(), junk()) // offsets 45 to 47, of which the archive has two
	for name, c := range map[string]struct {
		deleted int64 // offset before which the records are deleted
		fails   string
	}{
		"in the tail":                         {40, ""},
		"before the archive's last record":    {archived - 1, ""},
		"after the archive's last valid one":  {archived, ""},
		"in what readers skip":                {archived + 1, ""},
		"after the archive":                   {archived + 2, ""},
		"before the record after the archive": {archived + 3, ""},
		"whole":                               {0, ""},
		"with a gap":                          {archived + 4, "the topic holds neither record 44 of the archive, which is its last one, nor a record that follows it"},
	} {
		fake, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		brokers, bucket, to := strings.Join(fake.ListenAddrs(), ","), blob.URLOf(t.TempDir()), filepath.Join(t.TempDir(), "whole")
		client, err := journal.NewClient(journal.Config{Brokers: fake.ListenAddrs()})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.EnsureTopics(t.Context(), "trading"); err != nil {
			t.Fatal(err)
		}
		kc, err := client.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		produce := func(some []*kgo.Record) {
			for _, r := range some {
				again := *r
				if err := kc.ProduceSync(t.Context(), &again).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
		}
		std := outputTo(io.Discard)
		std.ArchiveRange = inRange
		produce(all[:archived+2])
		if err := Log(t.Context(), []string{"archive", "--data", t.TempDir(), "--kafka-brokers", brokers, "--to", bucket, "--journal", "trading", "--master-key", key}, std); err != nil {
			t.Fatal(err)
		}
		produce(all[archived+2:])
		admin := kadm.NewClient(kc)
		if c.deleted > 0 {
			var before kadm.Offsets
			before.Add(kadm.Offset{Topic: "trading", At: c.deleted})
			if deleted, err := admin.DeleteRecords(t.Context(), before); err != nil || deleted.Error() != nil {
				t.Fatal(err, deleted.Error())
			}
		}
		err = CopyLog(t.Context(), []string{"--data", t.TempDir(), "--from", brokers, "--to", to, "--journal", "trading", "--join", "--archive-url", bucket, "--master-key", key}, std)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		} else {
			var out bytes.Buffer
			if err := Log(t.Context(), []string{"--data", to}, outputTo(&out)); err != nil || out.String() != strings.Join(values, "\n")+"\n" {
				t.Errorf("%s: %v; %d bytes", name, err, out.Len())
			}
		}
		client.Close()
		kc.Close()
		fake.Close()
	}
}
