package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

// someRecords is a topic to join with an archive.
type someRecords struct {
	transfer.Log
	left []*kgo.Record
}

func (s *someRecords) Records(context.Context) (transfer.Records, error) { return s, nil }
func (s *someRecords) String() string                                    { return "topic" }
func (s *someRecords) Close()                                            {}

func (s *someRecords) Next(context.Context) (*kgo.Record, error) {
	if len(s.left) == 0 {
		return nil, io.EOF
	}
	r := *s.left[0]
	s.left = s.left[1:]
	return &r, nil
}

// numbered gives records the offsets from the first one on.
func numbered(first int64, records ...*kgo.Record) (all []*kgo.Record) {
	for i, r := range records {
		moved := *r
		moved.Offset = first + int64(i)
		all = append(all, &moved)
	}
	return all
}

// TestJoinOfAwkwardTopics joins an archive of 45 records with topics that lost their beginning where readers skip records.
func TestJoinOfAwkwardTopics(t *testing.T) {
	const archived, n = 45, 60
	all, values, _ := termsOf("trading", n, 0)
	deposed, _, _ := termsOfNode("trading", archived+2, 0, "deposed", archived)
	last, rest := all[archived-1], all[archived:]
	junk := &kgo.Record{Value: []byte("junk")}
	large := &kgo.Record{Value: bytes.Repeat([]byte("j"), 1<<20)}
	for name, c := range map[string]struct {
		archived, topic []*kgo.Record
		fails           string
	}{
		// The last record was sent twice. The archive has both copies, and the topic has the second one.
		"a copy of the last record": {numbered(0, append(all[:archived:archived], last)...), numbered(archived, append([]*kgo.Record{last}, rest...)...), ""},
		"what readers skip is lost": {numbered(0, all[:archived]...), numbered(archived+1, rest...), ""},
		"the next record is lost, and a deposed owner's is not": {numbered(0, all[:archived]...),
			numbered(archived+1, append(deposed[archived:archived+2:archived+2], rest[1:]...)...),
			fmt.Sprintf("its last %d records do not follow its record %d: record %d may be lost", n-archived-1, archived+1, archived)},
		"more than is kept": {numbered(0, all[:archived]...), numbered(archived, append(slices.Repeat([]*kgo.Record{large}, 40), rest...)...), ""},
		"lower offsets":     {numbered(100, append(all[:archived:archived], junk)...), numbered(7, append([]*kgo.Record{last, junk}, rest...)...), ""},
	} {
		a := archiveOf(t, c.archived)
		records, err := wholelog.Join(a, "trading", &someRecords{left: c.topic}).Records(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		large, offset := 0, int64(-1)
		for {
			var r *kgo.Record
			if r, err = records.Next(t.Context()); err != nil {
				break
			}
			if r.Offset <= offset {
				t.Errorf("%s: offset %d after %d", name, r.Offset, offset)
			}
			if offset = r.Offset; len(r.Value) == 1<<20 {
				large++
			}
			if v := string(r.Value); slices.Contains(values, v) && !slices.Contains(got, v) {
				got = append(got, v)
			}
		}
		records.Close()
		switch {
		case c.fails != "":
			if !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v", name, err)
			}
		case !errors.Is(err, io.EOF), !slices.Equal(got, values), large > 16:
			t.Errorf("%s: %d records and %d large ones, %v", name, len(got), large, err)
		}
	}
}

// archiveOf returns an archive of records.
func archiveOf(t *testing.T, records []*kgo.Record) *archive.Archive {
	t.Helper()
	b, err := blob.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	cfg := archive.Config{Store: blob.NewStore(b), Box: box, Journal: "trading"}
	w, err := archive.NewWriter(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Add(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Tail(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
