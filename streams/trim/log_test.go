package trim_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
	"github.com/perpetua-exchange/perpetua/streams/trim"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

const (
	perRange = 64   // records of a range
	records  = 300  // valid ones of the log
	begun    = 1800 // the hour of the first record, in thousands of seconds
)

var rules = journaltest.Words{Name: "words"}

// log is a topic with its archive.
type log struct {
	t       *testing.T
	client  *journal.Client
	trimmer base.Trimmer
	bases   base.Folder
	dir     string // of the bucket
	store   *blob.Store
	worm    archive.Store // of the archive in place of store, if not nil
	box     *seal.Box
	all     []*kgo.Record // of the topic
	valid   []int         // indexes of the valid ones
	id      scalar.ID
}

// timeOf returns the time of a record: one each second.
func timeOf(sequence int64) time.Time {
	return time.Unix(begun*1_000_000, 0).Add(time.Duration(sequence) * time.Second)
}

// newLog makes a log on new brokers, and its archive. Before each record for which odd is true lies one that readers skip.
func newLog(t *testing.T, odd func(sequence int64) bool, embedded bool) *log {
	t.Helper()
	l := &log{t: t, id: scalar.ID{8}, dir: t.TempDir(), bases: base.Folder{Dir: filepath.Join(t.TempDir(), "bases")}}
	cfg := journal.Config{Bases: []base.Source{l.bases}}
	if embedded {
		b, err := broker.Start(t.Context(), broker.Config{Dir: t.TempDir(), SegmentBytes: 4 << 10, Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		t.Cleanup(func() { b.Close() })
		cfg.Brokers, l.trimmer = b.Addrs(), b
		l.client, err = journal.NewClient(cfg)
		must(t, err)
		t.Cleanup(l.client.Close)
		must(t, l.client.EnsureTopics(t.Context(), rules.Name))
	} else {
		l.client = journaltest.Connect(t, cfg, rules.Name)
		l.trimmer = l.client.Trimmer()
	}
	bucket, err := blob.Open(t.Context(), blob.URLOf(l.dir))
	must(t, err)
	t.Cleanup(func() { bucket.Close() })
	l.store = blob.NewStore(bucket)
	l.box, err = seal.New(make([]byte, seal.KeySize))
	must(t, err)
	l.client.SetHistory(wholelog.Archives{Once: true, Config: func(context.Context, string, int32) (archive.Config, error) { return l.archive(), nil }})
	l.make(odd)
	l.append(l.all...)
	l.keep()
	return l
}

func (l *log) archive() archive.Config {
	c := archive.Config{Store: l.store, Box: l.box, Journal: rules.Name}
	if l.worm != nil {
		c.Store = l.worm
	}
	return c.WithRangeRecords(perRange)
}

// make makes the records.
func (l *log) make(odd func(int64) bool) {
	prev := record.Hash{}
	for sequence := range int64(records) {
		at := scalar.TimeOf(timeOf(sequence))
		r := &record.Record{Sequence: sequence, Prev: prev, Time: at, Outcome: decide.Accepted,
			Command: decide.Recorded{ID: record.NewCommandID(at.Std()), Type: "test.say", Actor: decide.Actor{Sub: "u"}},
			Events:  []decide.Event{&journaltest.WordAdded{Word: fmt.Sprintf("word %d", sequence)}}}
		switch {
		case sequence == 0:
			r.Command.Type, r.Command.Actor = record.TypeGenesis, decide.Engine
			r.Events = []decide.Event{&record.Genesis{Journal: rules.Name, JournalID: l.id, Partitions: 1}}
		case sequence%50 == 1:
			r.Command.Type, r.Command.Actor = record.TypeTermStarted, decide.Engine
			r.Events = []decide.Event{&record.TermStarted{Term: sequence/50 + 1, Node: "n", URL: "http://n", Build: "test"}}
		}
		if odd(sequence) {
			l.all = append(l.all, &kgo.Record{Key: []byte("k"), Value: fmt.Appendf(nil, "not a record %d", sequence), Timestamp: time.UnixMilli(5)})
		}
		value, err := record.Encode(nil, r)
		must(l.t, err)
		l.valid = append(l.valid, len(l.all))
		l.all = append(l.all, journal.KafkaRecord(l.client.Topic(rules.Name), rules.Name, 0, l.id, r, value))
		prev = sha256.Sum256(value)
	}
}

func (l *log) append(all ...*kgo.Record) {
	l.t.Helper()
	kc, err := l.client.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(2<<10))
	must(l.t, err)
	defer kc.Close()
	for _, r := range all {
		r.Topic = l.client.Topic(rules.Name)
	}
	must(l.t, kc.ProduceSync(l.t.Context(), all...).FirstErr())
}

// keep archives the topic.
func (l *log) keep() {
	l.t.Helper()
	must(l.t, l.keepSome(l.topic()))
}

// keepSome archives some records, and returns the error of the tail.
func (l *log) keepSome(all []*kgo.Record) error {
	l.t.Helper()
	w, err := archive.NewWriter(l.t.Context(), l.archive())
	must(l.t, err)
	for _, r := range all {
		if r.Offset >= w.Next() {
			must(l.t, w.Add(l.t.Context(), r))
		}
	}
	return w.Tail(l.t.Context())
}

// topic reads the topic as it is.
func (l *log) topic() []*kgo.Record {
	l.t.Helper()
	return l.read(transfer.Topic(l.client, rules.Name, "the topic"))
}

func (l *log) read(from transfer.Log) (all []*kgo.Record) {
	l.t.Helper()
	records, err := from.Records(l.t.Context())
	must(l.t, err)
	defer records.Close()
	for {
		r, err := records.Next(l.t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		must(l.t, err)
		all = append(all, r)
	}
}

// position returns the position of a record.
func (l *log) position(sequence int64) record.Position {
	return record.Position{Offset: int64(l.valid[sequence]), Sequence: sequence, Hash: sha256.Sum256(l.all[l.valid[sequence]].Value)}
}

// config returns the configuration of a trim of everything that is older than a record.
func (l *log) config(older int64) trim.Config {
	return trim.Config{Client: l.client, Rules: rules, Archive: l.archive(), Trimmer: l.trimmer, Keepers: []base.Keeper{l.bases},
		Now: func() time.Time { return timeOf(older - 1).Add(time.Millisecond) }}
}

// values reads the values of the valid records after a position, through any way that readers have.
func (l *log) values(after record.Position) (all []string, err error) {
	r := journal.NewReader(l.client, rules, 0, after)
	r.Audit()
	defer r.Close()
	err = r.ToTip(l.t.Context(), func(entries []record.Entry) error {
		for _, e := range entries {
			all = append(all, string(e.Value))
		}
		return nil
	})
	return all, err
}

// want returns the values of the records after a sequence.
func (l *log) want(after int64) (all []string) {
	for _, i := range l.valid[after+1:] {
		all = append(all, string(l.all[i].Value))
	}
	return all
}

// blobs returns the keys of the archive's blobs.
func (l *log) blobs() (keys []string) {
	l.t.Helper()
	found, err := l.store.List(l.t.Context(), archive.Folder)
	must(l.t, err)
	for _, o := range found {
		keys = append(keys, o.Key)
	}
	return keys
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func never(int64) bool { return false }
