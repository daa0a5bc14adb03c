package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

const topicName = "trading"

// topic builds the records of a topic, valid and not.
type topic struct {
	t        testing.TB
	random   *rand.Rand
	id       scalar.ID
	sequence int64
	prev     record.Hash
	offset   int64
	term     int64
	time     scalar.Time
	records  []*kgo.Record

	base  *record.Base // of a topic that was trimmed
	first int          // index of the record from which on a trimmed topic has them
}

func newTopic(t testing.TB, seed uint64) *topic {
	p := &topic{t: t, random: rand.New(rand.NewPCG(seed, 0)), id: scalar.ID{9, byte(seed)},
		time: scalar.TimeOf(time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC))}
	p.encode(record.TypeGenesis, &record.Genesis{Journal: "trading", JournalID: p.id, Partitions: 1})
	return p
}

// encode appends a record of the journal itself.
func (p *topic) encode(kind string, e decide.Event) {
	p.t.Helper()
	r := &record.Record{Sequence: p.sequence, Prev: p.prev, Time: p.time, Outcome: decide.Accepted, Events: []decide.Event{e},
		Command: decide.Recorded{ID: scalar.ID{1}, Type: kind, Actor: decide.Engine}}
	value, err := record.Encode(nil, r)
	if err != nil {
		p.t.Fatal(err)
	}
	p.valid(value)
}

// valid appends a valid record.
func (p *topic) valid(value []byte) {
	head, err := record.DecodeHead(value)
	if err != nil {
		p.t.Fatalf("%v: %s", err, value)
	}
	r := journal.KafkaRecord(topicName, "trading", 0, p.id, head, value)
	p.append(r)
	p.sequence, p.prev = p.sequence+1, sha256.Sum256(value)
}

func (p *topic) append(r *kgo.Record) {
	r.Offset, r.Topic = p.offset, topicName
	p.offset++
	p.records = append(p.records, r)
}

// value returns the value of the next record, with an event of a type that no build knows.
func (p *topic) value(data string) []byte {
	p.time += scalar.Time(p.random.IntN(1000))
	var id scalar.ID
	for i := range id {
		id[i] = byte(p.random.Uint32())
	}
	id[6], id[8] = id[6]&15|0x70, id[8]&63|128
	return fmt.Appendf(nil, `{"sequence":%d,"prev":"%s","time":"%s","command":{"id":"%s","type":"future.act","actor":{"sub":"s%d"},"data":{"key":"k%d"}},"outcome":"accepted","events":[{"type":"future.event","version":7,"data":%s}]}`,
		p.sequence, p.prev, p.time, id, p.random.IntN(9), p.sequence, data)
}

// grow appends valid records until there are n, and sometimes what readers skip.
func (p *topic) grow(n int64) *topic {
	for p.sequence < n {
		switch p.random.IntN(40) {
		case 0:
			p.odd()
		case 1:
			p.offset += int64(p.random.IntN(3))
		case 2:
			p.encode(record.TypeTermStarted, &record.TermStarted{Term: p.term + 1, Node: "n", URL: "http://n"})
			p.term++
		default:
			own := decide.Stamp{Journal: p.id, Sequence: p.sequence}.Derive(0)
			older := decide.Stamp{Journal: p.id, Sequence: max(p.sequence-int64(p.random.IntN(50)), 0)}.Derive(0)
			p.valid(p.value(fmt.Sprintf(`{"code":"%s","of":["%s"],"customer_code":"c%d","amount":"%d.%02d","created":"%s","done":true,"none":null,"n":%d}`,
				own, older, p.random.IntN(5), p.random.IntN(1000), p.random.IntN(100), p.time, p.random.IntN(3))))
		}
	}
	return p
}

// odd appends a record that readers skip.
func (p *topic) odd() {
	switch p.random.IntN(6) {
	case 0:
		p.append(&kgo.Record{Key: []byte("k"), Value: []byte("not JSON \x00\xff"), Timestamp: time.UnixMilli(12345)})
	case 1:
		p.append(&kgo.Record{Timestamp: time.UnixMilli(-1)})
	case 2:
		p.append(&kgo.Record{Key: []byte{}, Value: []byte{}, Timestamp: time.UnixMilli(1), Headers: []kgo.RecordHeader{{Key: "a"}, {Key: "a", Value: []byte{}}, {Key: "", Value: []byte("b")}}})
	case 3: // the loser of a race
		value := []byte(strings.Replace(string(p.value(`{}`)), p.prev.String(), strings.Repeat("ab", 32), 1))
		head, err := record.DecodeHead(value)
		if err != nil {
			p.t.Fatal(err)
		}
		p.append(journal.KafkaRecord(topicName, "trading", 0, p.id, head, value))
	default: // a batch that a producer sent twice
		last := *p.records[len(p.records)-1]
		p.append(&last)
	}
}

// memory is a Store in memory that fails after a number of writes.
type memory struct {
	mu     sync.Mutex
	blobs  map[string][]byte
	now    time.Time // of writes
	times  map[string]time.Time
	away   bool // every operation fails
	writes int
	fails  int // the write that fails; 0 is none
	after  bool
}

func newMemory() *memory {
	return &memory{blobs: make(map[string][]byte), times: make(map[string]time.Time)}
}

var (
	errCrash = errors.New("the process ends")
	errAway  = errors.New("the bucket is away")
)

// leave makes the bucket unreachable, or reachable again.
func (m *memory) leave(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = away
}

// crashes counts a write, and reports whether the process ends at it: before it, or after it without an answer.
func (m *memory) crashes() (before, after bool) {
	m.writes++
	if m.fails == 0 || m.writes < m.fails {
		return false, false
	}
	return m.writes > m.fails || !m.after, m.after
}

func (m *memory) put(key string, content []byte, replace bool) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return false, errAway
	}
	before, after := m.crashes()
	if before {
		return false, errCrash
	}
	_, there := m.blobs[key]
	if !there || replace {
		m.blobs[key] = append([]byte(nil), content...)
		if m.times != nil {
			m.times[key] = m.now
		}
	}
	if after {
		return false, errCrash
	}
	return !there, nil
}

func (m *memory) Write(_ context.Context, key string, content []byte, _ time.Duration) error {
	_, err := m.put(key, content, true)
	return err
}

func (m *memory) Create(_ context.Context, key string, content []byte, _ time.Duration) (bool, error) {
	return m.put(key, content, false)
}

func (m *memory) CreateLocked(context.Context, string, []byte, time.Duration, blob.Lock) (bool, error) {
	return false, blob.ErrNoLocks
}

func (m *memory) Lock(ctx context.Context, key string) (blob.Lock, error) {
	_, err := m.Read(ctx, key, 1)
	return blob.Lock{}, err
}

func (m *memory) Read(_ context.Context, key string, _ int64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return nil, errAway
	}
	b, ok := m.blobs[key]
	if !ok {
		return nil, errMissing
	}
	return append([]byte(nil), b...), nil
}

func (m *memory) Delete(_ context.Context, keys ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return errAway
	}
	if before, _ := m.crashes(); before {
		return errCrash
	}
	for _, k := range keys {
		delete(m.blobs, k)
	}
	return nil
}

func (m *memory) List(_ context.Context, prefix string) (all []*gocloud.ListObject, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return nil, errAway
	}
	for k := range m.blobs {
		if strings.HasPrefix(k, prefix) {
			all = append(all, &gocloud.ListObject{Key: k, ModTime: m.times[k]})
		}
	}
	return all, nil
}

// errMissing is what a bucket says of a blob that is not there.
var errMissing = func() error {
	b, err := blob.Open(context.Background(), "mem://")
	if err == nil {
		_, err = blob.NewStore(b).Read(context.Background(), "none", 1)
	}
	return err
}()

// sharedCodec saves each writer the tables of its own.
var sharedCodec = sync.OnceValues(newCodec)

// testConfig returns the archive of ranges of 128 records in small chunks.
func testConfig(t testing.TB, s Store) Config {
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	c, err := sharedCodec()
	if err != nil {
		t.Fatal(err)
	}
	return Config{Store: s, Box: box, Journal: "trading", sizes: sizes{128, 24_000}, codec: c}
}

// archive writes the records of a topic, and the tail.
func (p *topic) archive(ctx context.Context, cfg Config) error {
	w, err := NewWriter(ctx, cfg)
	if err != nil {
		return err
	}
	for _, r := range p.records {
		if r.Offset < w.Next() {
			continue
		}
		if err := w.Add(ctx, r); err != nil {
			return err
		}
	}
	return w.Tail(ctx)
}

// read returns the records that an archive holds.
func read(t testing.TB, cfg Config, from, to int64) []*kgo.Record {
	t.Helper()
	a, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var all []*kgo.Record
	for r, err := range a.Records(t.Context(), topicName, from, to) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// checkStored compares what a reader of the log gets with the records as the topic had them.
func checkStored(t testing.TB, cfg Config, from, to int64, want []*kgo.Record) {
	t.Helper()
	a, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for s, err := range a.Stored(t.Context(), from, to) {
		if err != nil {
			t.Fatal(err)
		}
		if n == len(want) {
			t.Fatalf("more than %d records", n)
		}
		w := want[n]
		if s.Offset != w.Offset || !bytes.Equal(s.Value, w.Value) || s.Hash != sha256.Sum256(w.Value) {
			t.Fatalf("%v is stored as %v", w, s)
		}
		if !s.Plain && (!bytes.Equal(s.Key, w.Key) || len(s.Headers) != len(w.Headers) || !s.Timestamp.Equal(w.Timestamp)) {
			t.Fatalf("%v is not plain and is stored as %v", w, s)
		}
		n++
	}
	if n != len(want) {
		t.Fatalf("%d stored records, not %d", n, len(want))
	}
}

// checkEqual compares records, with null and empty bytes.
func checkEqual(t testing.TB, got, want []*kgo.Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d records, not %d", len(got), len(want))
	}
	show := func(r *kgo.Record) string {
		return fmt.Sprintf("%d %d %v %#v %#v %#v", r.Offset, r.Partition, r.Timestamp.UnixMilli(), r.Key, string(r.Value), r.Headers) + fmt.Sprint(r.Value == nil)
	}
	for i := range got {
		if show(got[i]) != show(want[i]) {
			t.Fatalf("record %d is\n%s\nnot\n%s", i, show(got[i]), show(want[i]))
		}
	}
}
