package tools

import (
	"bytes"
	"context"
	"math"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
)

// TestArchiveOfATopic archives a topic and reads it back as the topic has it.
func TestArchiveOfATopic(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
	defer stop()
	client, said := oneWord(ctx, t, journaltest.Words{Name: "trading"})
	bucket, err := blob.Open(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	cfg := archive.Config{Store: blob.NewStore(bucket), Box: box, Journal: "trading"}
	for range 2 { // the second time, nothing is new
		if err := archiveJournal(ctx, client, journaltest.Words{Name: "trading"}, cfg); err != nil {
			t.Fatal(err)
		}
	}
	found, err := verifyArchive(ctx, cfg, settings.IO{Out: new(bytes.Buffer), Err: new(bytes.Buffer)})
	if last := said.Entry.Position; err != nil || found.Sequence != last.Sequence || found.Hash != last.Hash.String() || found.Ranges != 0 || found.Tail != found.Records {
		t.Errorf("%+v, %v; the log ends with %v", found, err, last)
	}
	a, err := archive.Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	records, err := transfer.Topic(client, "trading", "the log").Records(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	for got, err := range a.Records(ctx, client.Topic("trading"), 0, math.MaxInt64) {
		if err != nil {
			t.Fatal(err)
		}
		want, err := records.Next(ctx)
		if err != nil || got.Offset != want.Offset || string(got.Value) != string(want.Value) || string(got.Key) != string(want.Key) ||
			!got.Timestamp.Equal(want.Timestamp) || len(got.Headers) != len(want.Headers) {
			t.Errorf("%v is not %v: %v", got, want, err)
		}
	}
	if r, err := records.Next(ctx); err == nil {
		t.Errorf("the archive ends before %v", r)
	}
}
