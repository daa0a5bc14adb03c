package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// oldTopic returns a topic whose records are old enough for the tail.
func oldTopic(t testing.TB, seed uint64) *topic {
	p := newTopic(t, seed)
	p.records, p.sequence, p.prev, p.offset = nil, 0, record.Hash{}, 0
	p.time = scalar.TimeOf(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	p.encode(record.TypeGenesis, &record.Genesis{Journal: "trading", JournalID: p.id, Partitions: 1})
	return p
}

// reading is a Source of the records of a topic, which may grow.
type reading struct {
	mu      *sync.Mutex
	topic   *topic
	at      record.Position
	next    int // index of the next record
	records *int
}

func (r *reading) all() []*kgo.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.topic.records
}

// gone returns an error if the topic was trimmed beyond the next record.
func (r *reading) gone() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next < r.topic.first {
		return &record.TrimmedError{Base: *r.topic.base, Have: r.at}
	}
	return nil
}

func (r *reading) Locate(context.Context) (record.Position, error) {
	if r.at.IsBefore() {
		return r.at, r.gone()
	}
	for i, k := range r.all() {
		if sha256.Sum256(k.Value) == r.at.Hash {
			r.next, r.at.Offset = i+1, k.Offset
			return r.at, r.gone()
		}
	}
	return r.at, &record.DivergedError{Journal: "trading", Have: r.at}
}

func (r *reading) Poll(ctx context.Context) ([]*kgo.Record, error) {
	all := r.all()
	if err := r.gone(); err != nil {
		return nil, err
	}
	for r.AtTip() {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Millisecond):
			if err := r.gone(); err != nil {
				return nil, err
			}
			all = r.all()
		}
	}
	to := min(r.next+13, len(all))
	out := all[r.next:to]
	r.next = to
	r.mu.Lock()
	*r.records += len(out)
	r.mu.Unlock()
	return out, nil
}

func (r *reading) AtTip() bool { return r.next >= len(r.all()) }
func (r *reading) Close()      {}

// running is a sealer at work.
type running struct {
	*Sealer
	t    testing.TB
	stop context.CancelFunc
	done chan error
	mu   sync.Mutex
	read int // records
}

// seals starts a sealer of a topic.
func seals(t testing.TB, p *topic, cfg Config, copies ...Heads) *running {
	return sealsAfter(t, p, cfg, time.Millisecond, copies...)
}

// sealsAfter is seals with the age from which records belong in the tail.
func sealsAfter(t testing.TB, p *topic, cfg Config, every time.Duration, copies ...Heads) *running {
	s := &running{t: t, done: make(chan error, 1)}
	s.Sealer = NewSealer(SealerConfig{Config: cfg, Copies: copies, Retry: time.Millisecond, TailEvery: every,
		From: func(at record.Position) Source { return &reading{mu: &s.mu, topic: p, at: at, records: &s.read} }})
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.done <- s.Run(ctx) }()
	t.Cleanup(s.end)
	return s
}

// end stops the sealer.
func (s *running) end() {
	s.stop()
	if err := <-s.done; !errors.Is(err, context.Canceled) {
		s.t.Errorf("the sealer ended with %v", err)
	}
	s.done <- context.Canceled
}

// until waits for a status.
func (s *running) until(what string, is func(Status) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for !is(s.Status()) {
		select {
		case <-ctx.Done():
			s.t.Fatalf("waiting for %s: %+v", what, s.Status())
		case <-time.After(time.Millisecond):
		}
	}
}

// sound checks that what is in a store is an archive.
func sound(t interface {
	Helper()
	Fatal(...any)
}, cfg Config) *Archive {
	t.Helper()
	a, err := Open(context.Background(), cfg)
	if err == nil {
		_, err = a.Verify(context.Background(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestASealerIsKilled at any write, as often as it likes: what is in the bucket is a sound archive each time, and the next sealer
// continues to the end. Its copies then have the newest manifest.
func TestASealerIsKilled(t *testing.T) {
	p := oldTopic(t, 20).grow(150)
	p.odd()
	tiny := func(s *memory) Config {
		cfg := testConfig(t, s)
		cfg.sizes = sizes{64, 12_000}
		return cfg
	}
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		s, folder := newMemory(), HeadFolder{Dir: filepath.Join(dir, strconv.Itoa(n))}
		for range rapid.IntRange(1, 3).Draw(r, "kills") {
			s.mu.Lock()
			s.writes, s.fails, s.after = 0, rapid.IntRange(1, 6).Draw(r, "write"), rapid.Bool().Draw(r, "after")
			s.mu.Unlock()
			w := seals(t, p, tiny(s), folder)
			w.until("an error or the end", func(st Status) bool { return st.Failures > 0 || st.Tailed == p.sequence-1 })
			w.end()
			s.mu.Lock()
			s.fails = 0
			s.mu.Unlock()
			a := sound(r, tiny(s))
			kept, err := folder.Head(t.Context(), "trading", 0)
			if err != nil {
				r.Fatal(err)
			}
			if kept != nil && (a.Head() == nil || kept.Range > a.Head().Range) {
				r.Fatalf("the copy %+v is ahead of the archive", kept)
			}
		}
		w := seals(t, p, tiny(s), folder)
		w.until("the end", func(st Status) bool { return st.Tailed == p.sequence-1 && st.Sealed == 127 })
		w.end()
		a := sound(r, tiny(s))
		if kept, err := folder.Head(t.Context(), "trading", 0); err != nil || kept == nil || *kept != *a.Head() {
			r.Fatalf("the copy is %+v, the archive's head %+v: %v", kept, a.Head(), err)
		}
		if st := w.Status(); st.Bytes == 0 || st.Values == 0 || st.Read != p.sequence-1 || st.Runs {
			r.Fatalf("%+v", st)
		}
	})
}

// TestABucketThatIsAway delays a sealer. The last manifest stays true, and the range that could not be sealed is not read again.
func TestABucketThatIsAway(t *testing.T) {
	p := oldTopic(t, 21).grow(200)
	s := newMemory()
	w := seals(t, p, testConfig(t, s))
	w.until("the first range and the tail", func(st Status) bool { return st.Sealed == 127 && st.Tailed == 199 })
	s.leave(true)
	w.mu.Lock()
	p.grow(300)
	w.mu.Unlock()
	w.until("errors", func(st Status) bool { return st.Failures >= 3 })
	if st := w.Status(); st.Sealed != 127 || st.Halted || !st.Runs {
		t.Errorf("%+v", st)
	}
	s.leave(false)
	w.until("the rest", func(st Status) bool { return st.Sealed == 255 && st.Tailed == 299 })
	w.end()
	if a := sound(t, testConfig(t, s)); a.Tail() == nil || a.Tail().Base.Sequence != 300 {
		t.Errorf("%+v", a.Tail())
	}
	if w.read != len(p.records) {
		t.Errorf("%d records were read of %d", w.read, len(p.records))
	}
	checkEqual(t, read(t, testConfig(t, s), 0, math.MaxInt64), p.records)
}

// TestTwoSealers archive the same topic at the same time, one of them slowed down by a bucket that fails now and then.
func TestTwoSealers(t *testing.T) {
	p := oldTopic(t, 22).grow(600)
	s := newMemory()
	second := testConfig(t, s)
	codec, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	second.codec = codec
	a, b := seals(t, p, testConfig(t, s)), seals(t, p, second)
	for range 5 {
		s.leave(true)
		failures := a.Status().Failures
		a.until("an error", func(st Status) bool { return st.Failures > failures || st.Tailed == 599 })
		s.leave(false)
	}
	for _, w := range []*running{a, b} {
		w.until("the end", func(st Status) bool { return st.Sealed == 511 && st.Tailed == 599 })
		w.end()
	}
	sound(t, testConfig(t, s))
	checkEqual(t, read(t, testConfig(t, s), 0, math.MaxInt64), p.records)
}

// TestYoungRecords are in no tail, whatever the clock said that gave them their times.
func TestYoungRecords(t *testing.T) {
	p := oldTopic(t, 23).grow(150)
	s := newMemory()
	w := sealsAfter(t, p, testConfig(t, s), time.Hour)
	w.until("the range and the rest", func(st Status) bool { return st.Sealed == 127 && st.Read == 149 })
	w.mu.Lock()
	p.grow(160)
	w.mu.Unlock()
	w.until("more", func(st Status) bool { return st.Read == 159 })
	w.end()
	if a := sound(t, testConfig(t, s)); a.Tail() != nil {
		t.Errorf("the tail is %+v", a.Tail())
	}
}

// TestATailFromTheFuture is written when it is due by the clock here, although its records have later times.
func TestATailFromTheFuture(t *testing.T) {
	p, s := oldTopic(t, 29), newMemory()
	p.time = scalar.TimeOf(time.Now().Add(24 * time.Hour))
	w := seals(t, p.grow(50), testConfig(t, s))
	w.until("the tail", func(st Status) bool { return st.Tailed == 49 })
	w.end()
}

// TestALogThatContradictsItsArchive is not archived any more.
func TestALogThatContradictsItsArchive(t *testing.T) {
	s := newMemory()
	w := seals(t, oldTopic(t, 24).grow(150), testConfig(t, s))
	w.until("the first range", func(st Status) bool { return st.Sealed == 127 })
	w.end()
	other := oldTopic(t, 24).grow(100)
	other.valid(other.value(`{"forked":1}`))
	w = seals(t, other.grow(300), testConfig(t, s))
	w.until("the halt", func(st Status) bool { return st.Halted })
	w.end()
	if a := sound(t, testConfig(t, s)); len(a.Sealed()) != 1 {
		t.Errorf("%d ranges", len(a.Sealed()))
	}
}

// TestACopiedTopic has lower offsets. Its archive goes on with the former ones.
func TestACopiedTopic(t *testing.T) {
	p := oldTopic(t, 25).grow(150)
	s := newMemory()
	w := seals(t, p, testConfig(t, s))
	w.until("the first range", func(st Status) bool { return st.Sealed == 127 && st.Tailed == 149 })
	w.end()
	p.grow(400)
	copied := *p
	copied.records = nil
	shift := p.records[60].Offset
	for _, r := range p.records[60:] {
		k := *r
		k.Offset -= shift
		copied.records = append(copied.records, &k)
	}
	w = seals(t, &copied, testConfig(t, s))
	w.until("the rest", func(st Status) bool { return st.Sealed == 383 && st.Tailed == 399 })
	w.end()
	sound(t, testConfig(t, s))
	checkEqual(t, read(t, testConfig(t, s), 0, math.MaxInt64), p.records)
}

// TestTailsAreSwept, each after the next one was replaced, and so are those that nothing ever named.
func TestTailsAreSwept(t *testing.T) {
	ctx := t.Context()
	p := oldTopic(t, 26).grow(128)
	s := newMemory()
	cfg := testConfig(t, s)
	w, err := NewWriter(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	step := func(records int64) {
		t.Helper()
		s.now = s.now.Add(time.Hour)
		for _, r := range p.grow(records).records {
			if r.Offset >= w.Next() {
				if err := w.Add(ctx, r); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := errors.Join(w.Sweep(ctx), w.Tail(ctx)); err != nil {
			t.Fatal(err)
		}
		sound(t, cfg)
	}
	tails := func() []string {
		var all []string
		for k := range s.blobs {
			all = append(all, k)
		}
		return cfg.folderOf(all, tailName+"-")
	}
	step(140)
	first := tails()
	if _, err := s.Create(ctx, cfg.folder()+tailName+"-00000000000000000128-ab", []byte("orphan"), 0); err != nil {
		t.Fatal(err)
	}
	step(150)
	if now := tails(); len(now) != 3 || !slices.Contains(now, first[0]) {
		t.Errorf("a reader may still read the object of the tail before: %v", now)
	}
	step(160)
	if now := tails(); len(now) != 2 || slices.Contains(now, first[0]) {
		t.Errorf("of two former tails and an orphan there are %v", now)
	}
	step(160)
	step(300)
	step(310)
	step(320)
	if now := tails(); len(now) != 2 {
		t.Errorf("after a range was sealed: %v", now)
	}
	// Another writer that has read less leaves the longer tail.
	behind, err := NewWriter(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.records {
		if r.Offset >= behind.Next() && r.Offset < w.Next()-20 {
			if err := behind.Add(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := behind.Tail(ctx); err != nil {
		t.Fatal(err)
	}
	if a := sound(t, cfg); a.Tail().Base.Sequence != 320 || behind.archive.Tail().Base.Sequence != 320 {
		t.Errorf("the tail ends before %d", a.Tail().Base.Sequence)
	}
}

// TestALogThatIsTrimmedMeanwhile by what another sealer has sealed: this one goes on after that. If nothing was sealed, it halts.
func TestALogThatIsTrimmedMeanwhile(t *testing.T) {
	p, s := oldTopic(t, 27).grow(100), newMemory()
	w := seals(t, p, testConfig(t, s))
	w.until("the first records", func(st Status) bool { return st.Read == 99 })
	w.mu.Lock()
	p.grow(300)
	if err := p.archive(t.Context(), testConfig(t, s)); err != nil {
		t.Fatal(err)
	}
	p.trimTo(sound(t, testConfig(t, s)).Base())
	w.mu.Unlock()
	w.until("the end", func(st Status) bool { return st.Halted || st.Read == 299 && st.Sealed == 255 })
	w.mu.Lock()
	p.grow(400)
	w.mu.Unlock()
	w.until("the next range", func(st Status) bool { return st.Halted || st.Sealed == 383 })
	w.end()
	if w.Status().Halted {
		t.Error("it has halted")
	}
	sound(t, testConfig(t, s))
	checkEqual(t, read(t, testConfig(t, s), 0, 384), p.records[:p.after(p.records, 383)])

	w = seals(t, p, testConfig(t, newMemory()))
	w.until("the halt", func(st Status) bool { return st.Halted })
	w.end()
}

// trimTo trims the topic.
func (p *topic) trimTo(b *record.Base) { p.base, p.first = b, p.after(p.records, b.Sequence-1) }

// after returns the index of the record after the first copy of a valid one.
func (p *topic) after(all []*kgo.Record, sequence int64) int {
	return 1 + slices.IndexFunc(all, func(r *kgo.Record) bool {
		prev, n, ok := record.PrevOf(r.Value)
		return ok && n == sequence && prev != record.Hash(bytes.Repeat([]byte{0xab}, 32))
	})
}

// TestRecordsThatFillNoRange are not held without a bound.
func TestRecordsThatFillNoRange(t *testing.T) {
	p := newTopic(t, 28)
	w, err := NewWriter(t.Context(), testConfig(t, newMemory()))
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		noise := make([]byte, 1000)
		for i := range noise {
			noise[i] = byte(p.random.Uint32())
		}
		p.append(&kgo.Record{Value: noise, Timestamp: time.UnixMilli(1)})
	}
	for i, r := range p.records {
		if err = w.Add(t.Context(), r); err != nil {
			if i < 100 || !strings.Contains(err.Error(), "do not fill a range") {
				t.Errorf("record %d: %v", i, err)
			}
			return
		}
	}
	t.Errorf("the writer holds %d bytes", len(w.current.chunks))
}

// naming is a bucket in which another writer does something once the manifest of the tail was read.
type naming struct {
	*memory
	do func()
}

// Read implements Store.
func (n *naming) Read(ctx context.Context, key string, limit int64) ([]byte, error) {
	b, err := n.memory.Read(ctx, key, limit)
	if do := n.do; do != nil && strings.HasSuffix(key, "/"+tailName) {
		n.do = nil
		do()
	}
	return b, err
}

// TestATailIsNamedWhileItIsSwept: the object of a former tail that another writer names again stays.
func TestATailIsNamedWhileItIsSwept(t *testing.T) {
	ctx, p, s := t.Context(), oldTopic(t, 30), newMemory()
	n := &naming{memory: s}
	cfg := testConfig(t, n)
	s.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w, err := NewWriter(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for _, records := range []int64{20, 30, 40} {
		for _, r := range p.grow(records).records {
			if r.Offset >= w.Next() {
				if err := w.Add(ctx, r); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Tail(ctx); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = s.blobs[cfg.tailKey()]
		}
		s.now = s.now.Add(time.Hour)
	}
	n.do = func() { s.blobs[cfg.tailKey()] = first }
	if err := w.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if a := sound(t, cfg); a.Tail() == nil || a.Tail().Records != 20 {
		t.Errorf("the tail is %+v", a.Tail())
	}
}
