package trim_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
	"github.com/perpetua-exchange/perpetua/streams/trim"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

// elsewhere returns the log with its archive on new brokers, whose topic holds some of the records.
func (l *log) elsewhere(some ...*kgo.Record) *log {
	l.t.Helper()
	o := *l
	o.bases = base.Folder{Dir: l.t.TempDir()}
	o.client = journaltest.Connect(l.t, journal.Config{Bases: []base.Source{o.bases}}, rules.Name)
	o.trimmer = o.client.Trimmer()
	o.client.SetHistory(wholelog.Archives{Once: true, Config: func(context.Context, string, int32) (archive.Config, error) { return o.archive(), nil }})
	if len(some) > 0 {
		var again []*kgo.Record
		for _, r := range some {
			again = append(again, &kgo.Record{Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp})
		}
		o.append(again...)
	}
	return &o
}

// meddling does something when the base is kept: after the first comparison, and before anything is appended.
type meddling struct {
	base.Folder
	do func()
}

// Keep implements base.Keeper.
func (m meddling) Keep(ctx context.Context, b record.Base) error {
	m.do()
	return m.Folder.Keep(ctx, b)
}

func (l *log) restore(from int64, known ...record.Position) (wholelog.Restored, error) {
	l.t.Helper()
	a, err := archive.Open(l.t.Context(), l.archive())
	must(l.t, err)
	return wholelog.Restore{Client: l.client, Rules: rules, Archive: a, From: from, Keepers: []base.Keeper{l.bases}, Known: known}.Run(l.t.Context())
}

// TestRestore makes an empty topic, one that lost its end, and one that lost its end after a trim, whole again.
func TestRestore(t *testing.T) {
	l := newLog(t, func(sequence int64) bool { return sequence%10 == 7 }, false)
	n := int64(len(l.all))
	for name, c := range map[string]struct {
		there  []*kgo.Record
		from   int64
		begins int64
	}{
		"empty":                {},
		"empty, from a record": {nil, 130, 128},
		"empty, from a range":  {nil, 192, 192},
		"its end is lost":      {l.all[:100], 0, 0},
		"nothing is lost":      {l.all, 0, 0},
	} {
		o := l.elsewhere(c.there...)
		first := int64(0)
		if c.begins > 0 {
			first = int64(l.valid[c.begins])
		}
		for _, appended := range []int64{n - first - int64(len(c.there)), 0} {
			r, err := o.restore(c.from, l.position(200), l.position(records-1))
			if err != nil || r.Appended != appended || r.From != c.begins || r.End.Sequence != records-1 || (r.Base == nil) != (c.begins == 0) {
				t.Errorf("%s: %+v, %v; want %d appended from record %d on", name, r, err, appended, c.begins)
			}
		}
		if got := o.topic(); int64(len(got)) != n-first || string(got[len(got)-1].Value) != string(l.all[n-1].Value) {
			t.Errorf("%s: the topic has %d records", name, len(got))
		}
		o.check()
	}
	trimmed := l.elsewhere(l.all[:200]...)
	_, err := trim.Run(t.Context(), trimmed.config(100))
	must(t, err)
	r, err := trimmed.restore(0)
	if err != nil || r.From != 64 || r.Appended != n-200 {
		t.Errorf("a trimmed topic: %+v, %v", r, err)
	}
	trimmed.check()
}

// TestRestoreTellsProgress: while it compares, while it appends, and while it compares again.
func TestRestoreTellsProgress(t *testing.T) {
	l := newLog(t, func(int64) bool { return false }, false)
	o := l.elsewhere(l.all[:100]...)
	a, err := archive.Open(t.Context(), o.archive())
	must(t, err)
	told := make(map[string]int64)
	_, err = wholelog.Restore{Client: o.client, Rules: rules, Archive: a, Keepers: []base.Keeper{o.bases},
		Progress: func(work string, n int64) { told[work] = n }}.Run(t.Context())
	must(t, err)
	n := int64(len(l.all))
	if told[wholelog.Compared] != n || told[wholelog.Appended] != n-100 || told[wholelog.ComparedAgain] != n || len(told) != 3 {
		t.Errorf("%v, of %d records", told, n)
	}
}

// reads counts how often each object of a bucket is read.
type reads struct {
	archive.Store
	mu sync.Mutex
	of map[string]int
}

// Read implements archive.Store.
func (s *reads) Read(ctx context.Context, key string, most int64) ([]byte, error) {
	s.mu.Lock()
	s.of[key]++
	s.mu.Unlock()
	return s.Store.Read(ctx, key, most)
}

// TestRestoreDecodesTwice decodes the archive to verify it and to append it, and compares the topic without it.
func TestRestoreDecodesTwice(t *testing.T) {
	l := newLog(t, never, false)
	for name, c := range map[string]struct {
		there []*kgo.Record
		want  int
	}{"its end is lost": {l.all[:100], 2}, "nothing is lost": {l.all, 1}} {
		o := l.elsewhere(c.there...)
		cfg := o.archive()
		counted := &reads{Store: cfg.Store, of: make(map[string]int)}
		cfg.Store = counted
		a, err := archive.Open(t.Context(), cfg)
		must(t, err)
		_, err = wholelog.Restore{Client: o.client, Rules: rules, Archive: a, Keepers: []base.Keeper{o.bases}}.Run(t.Context())
		must(t, err)
		ranges := 0
		for key, n := range counted.of {
			if strings.Contains(key, "/range-") {
				if ranges++; n != c.want {
					t.Errorf("%s: %s was read %d times", name, key, n)
				}
			}
		}
		if ranges == 0 {
			t.Errorf("%s: no range was read: %v", name, counted.of)
		}
	}
}

// TestRestoreComparesWhatItAppended loses the beginning of the topic while the end is appended.
func TestRestoreComparesWhatItAppended(t *testing.T) {
	l := newLog(t, never, false)
	o := l.elsewhere(l.all[:100]...)
	a, err := archive.Open(t.Context(), o.archive())
	must(t, err)
	lose := func(work string, n int64) {
		if work == wholelog.Appended && n == 1 {
			o.delete(50)
		}
	}
	_, err = wholelog.Restore{Client: o.client, Rules: rules, Archive: a, Keepers: []base.Keeper{o.bases}, Progress: lose}.Run(t.Context())
	var conflict *wholelog.ConflictError
	if !errors.As(err, &conflict) || conflict.Sequence != 0 || conflict.Appended != int64(len(l.all)-100) {
		t.Errorf("the beginning of the topic is lost: %v", err)
	}
}

// delete deletes the records of the topic before an offset.
func (l *log) delete(offset int64) {
	l.t.Helper()
	all := make(kadm.Offsets)
	all.Add(kadm.Offset{Topic: l.client.Topic(rules.Name), At: offset})
	kc, err := l.client.Kafka()
	must(l.t, err)
	defer kc.Close()
	deleted, err := kadm.NewClient(kc).DeleteRecords(l.t.Context(), all)
	must(l.t, errors.Join(err, deleted.Error()))
}

// TestRestoreRefuses wants what contradicts the archive named, and nothing changed.
func TestRestoreRefuses(t *testing.T) {
	l := newLog(t, never, false)
	other := *l.all[80]
	other.Value = []byte(strings.Replace(string(other.Value), "word 80", "lied 80", 1))
	foreign := l.position(150)
	foreign.Hash[3]++
	beyond := record.Position{Offset: 400, Sequence: 400, Hash: record.Hash{1}}
	for name, c := range map[string]struct {
		there    []*kgo.Record
		known    record.Position
		sequence int64
		why      string
	}{
		"another record":                {slices.Concat(l.all[:80], []*kgo.Record{&other}), record.Before, 80, "another value at offset 80"},
		"a known position":              {l.all[:20], foreign, 150, "a known position has the hash"},
		"a position after the archive":  {nil, beyond, 400, "would have lost its end"},
		"a record that is not archived": {slices.Concat(l.all[:20], []*kgo.Record{{Value: []byte("x")}}), record.Before, 20, "another value at offset 20"},
	} {
		o := l.elsewhere(c.there...)
		_, err := o.restore(0, c.known)
		var conflict *wholelog.ConflictError
		if !errors.As(err, &conflict) || conflict.Sequence != c.sequence || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", name, err)
		}
		if got := len(o.topic()); got != len(c.there) {
			t.Errorf("%s: the topic has %d records, not %d", name, got, len(c.there))
		}
	}
	emptied := l.elsewhere(l.all[:20]...)
	emptied.delete(20)
	if _, err := emptied.restore(0); err == nil || !strings.Contains(err.Error(), "all its records were deleted") {
		t.Errorf("a topic whose records were all deleted: %v", err)
	}
	if _, err := l.elsewhere().restore(records); err == nil || !strings.Contains(err.Error(), "ends before record 300") {
		t.Errorf("from a record after the end: %v", err)
	}
	// Damage is found before anything is appended.
	blobs := l.blobs()
	key := blobs[slices.IndexFunc(blobs, func(key string) bool { return strings.Contains(key, "/range-") })+2]
	content, err := l.store.Read(t.Context(), key, 1<<30)
	must(t, err)
	content[len(content)/2] ^= 1
	must(t, l.store.Write(t.Context(), key, content, time.Minute))
	o := l.elsewhere(l.all[:20]...)
	var damaged *archive.Error
	if _, err := o.restore(0); !errors.As(err, &damaged) || damaged.Key != key || len(o.topic()) != 20 {
		t.Errorf("a damaged archive: %v; the topic has %d records", err, len(o.topic()))
	}
}

// TestRestoreBesideAWriter stops before it appends anything after the records of another writer.
func TestRestoreBesideAWriter(t *testing.T) {
	l := newLog(t, never, false)
	a, err := archive.Open(t.Context(), l.archive())
	must(t, err)
	o := l.elsewhere()
	write := func() { o.append(&kgo.Record{Value: []byte("another writer's")}) }
	_, err = wholelog.Restore{Client: o.client, Rules: rules, Archive: a, From: 64, Keepers: []base.Keeper{meddling{o.bases, write}}}.Run(t.Context())
	var end *transfer.EndError
	if !errors.As(err, &end) || end.End != 0 || end.Found != 1 || !strings.Contains(err.Error(), "0 records were appended") {
		t.Errorf("a record was appended after the comparison: %v", err)
	}
	if got := len(o.topic()); got != 1 {
		t.Errorf("the topic has %d records", got)
	}
	conflict := wholelog.ConflictError{Journal: rules.Name, Sequence: 3, Reason: "no", Appended: 7}
	if text := conflict.Error(); strings.Contains(text, "nothing") || !strings.Contains(text, "7 records") {
		t.Error(text)
	}
}
