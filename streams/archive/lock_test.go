package archive

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/blob/blobtest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// logged is the text of a log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

// keys returns the keys of a memory.
// keys returns the keys in order.
func (m *memory) keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.blobs))
}

const future = 1000 * time.Hour

// locking are buckets that keep a tail, each in another way, and the objects of tails that they hold at most.
var locking = map[string]struct {
	policy blobtest.Policy
	tails  int
}{
	"tells the locks":        {blobtest.Policy{Until: time.Now().Add(future), Tells: true}, 1},
	"does not tell them":     {blobtest.Policy{Until: time.Now().Add(future)}, 1},
	"replaces without locks": {blobtest.Policy{Until: time.Now().Add(future), Replaces: true}, 2},
}

// TestABucketThatKeepsEverything gets all full ranges and a bounded number of tails, also from sealers that start again. It is warned
// of once.
func TestABucketThatKeepsEverything(t *testing.T) {
	for name, c := range locking {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			m.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			worm := blobtest.NewWorm(m, c.policy)
			cfg := testConfig(t, worm)
			p := oldTopic(t, 31).grow(100)
			var log logged
			run := func() *running {
				return runs(t, p, SealerConfig{Config: cfg, TailEvery: time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			}
			s := run()
			s.until("the first tail", func(st Status) bool { return st.Tailed == 99 })
			for round := range 3 {
				for i := range 3 {
					m.mu.Lock()
					m.now = m.now.Add(time.Hour) // so that the objects of former tails are swept
					m.mu.Unlock()
					to := int64(130 + 130*round + 40*i)
					s.mu.Lock()
					p.grow(to)
					s.mu.Unlock()
					s.until("the ranges", func(st Status) bool { return st.Read >= to-1 && st.Sealed >= to/128*128-1 })
					before := worm.Refused()
					s.until("another tail", func(st Status) bool { return worm.Refused() > before+3 || c.policy.Tells || st.Tailed == st.Read })
				}
				s.end()
				s = run()
			}
			s.until("the last range", func(st Status) bool { return st.Sealed == 383 })
			s.end()
			if tails := cfg.folderOf(m.keys(), tailName+"-"); len(tails) > c.tails {
				t.Errorf("%d tails are in the bucket: %v", len(tails), tails)
			}
			if n := log.count("full ranges are"); n < 1 || n > 4 { // there were four sealers
				t.Errorf("it was warned of %d times:\n%s", n, &log.text)
			}
			a := sound(t, cfg)
			checkEqual(t, read(t, cfg, 0, a.Base().Sequence), p.records[:p.after(p.records, a.Base().Sequence-1)])
			checkEqual(t, read(t, cfg, 0, math.MaxInt64)[:10], p.records[:10])
		})
	}
}

// runs starts a sealer of a topic.
func runs(t testing.TB, p *topic, c SealerConfig) *running {
	s := &running{t: t, done: make(chan error, 1)}
	c.Retry = time.Millisecond
	c.From = func(at record.Position) Source { return &reading{mu: &s.mu, topic: p, at: at, records: &s.read} }
	s.Sealer = NewSealer(c)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.done <- s.Run(ctx) }()
	t.Cleanup(s.end)
	return s
}

// TestALockThatEnds lets the tail be written again.
func TestALockThatEnds(t *testing.T) {
	ctx := t.Context()
	m := newMemory()
	p := oldTopic(t, 32).grow(50)
	cfg := testConfig(t, m)
	if err := p.archive(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	for _, tells := range []bool{true, false} {
		cfg.Store = blobtest.NewWorm(m, blobtest.Policy{Until: time.Now().Add(future), Tells: tells})
		before := len(m.keys())
		if err := p.grow(p.sequence+10).archive(ctx, cfg); !errors.Is(err, ErrTailKept) || len(m.keys()) != before {
			t.Errorf("%v, %v", err, m.keys())
		}
		cfg.Store = blobtest.NewWorm(m, blobtest.Policy{Until: time.Now().Add(-time.Second), Tells: tells})
		if err := p.archive(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		if a := sound(t, cfg); a.Tail().Records != p.sequence {
			t.Errorf("the tail has %d of %d records", a.Tail().Records, p.sequence)
		}
	}
}

// TestRetention locks what is written once, and nothing else.
func TestRetention(t *testing.T) {
	ctx := t.Context()
	m := newMemory()
	p := oldTopic(t, 33).grow(140)
	worm := blobtest.NewWorm(m, blobtest.Policy{})
	cfg := testConfig(t, worm)
	if err := p.archive(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	cfg.Retention = blob.Retention{For: future, Mode: blob.Compliance}
	least := time.Now().Add(future - time.Second)
	for _, n := range []int64{300, 310, 320} { // the tails replace each other
		if err := p.grow(n).archive(ctx, cfg); err != nil {
			t.Fatal(err)
		}
	}
	old := 0
	for _, key := range m.keys() {
		l := worm.Locked(key)
		sealed := strings.Contains(key, "/"+rangeName+"-") || strings.Contains(key, "/"+manifestName)
		switch {
		case sealed && l == blob.Lock{}:
			old++
		case sealed && (l.Mode != blob.Compliance || l.Until.Before(least) || l.Until.After(time.Now().Add(future))):
			t.Errorf("%s is locked until %v, %s", key, l.Until, l.Mode)
		case !sealed && l != blob.Lock{}:
			t.Errorf("%s is locked until %v", key, l.Until)
		}
	}
	found, err := FindLocks(ctx, cfg)
	if err != nil || found.Blobs != 4 || found.Open != old || old != 2 || found.First == "" || found.Until.Before(least) || found.Mode != blob.Compliance {
		t.Errorf("%+v, %v; %d are not locked", found, err, old)
	}
}

// TestAStoreWithoutLocks gets nothing that was to be locked.
func TestAStoreWithoutLocks(t *testing.T) {
	m := newMemory()
	cfg := testConfig(t, m)
	cfg.Retention = blob.Retention{For: future, Mode: blob.Governance}
	if err := oldTopic(t, 34).grow(140).archive(t.Context(), cfg); !errors.Is(err, blob.ErrNoLocks) || len(m.keys()) > 0 {
		t.Errorf("%v, %v", err, m.keys())
	}
}

// silent is a Worm that does not tell locks.
type silent struct{ *blobtest.Worm }

func (s silent) Lock(ctx context.Context, key string) (blob.Lock, error) {
	_, err := s.Worm.Lock(ctx, key)
	return blob.Lock{}, err
}

// TestAStoreThatIgnoresLocks is warned of, once.
func TestAStoreThatIgnoresLocks(t *testing.T) {
	for ignores, want := range map[bool]int{true: 1, false: 0} {
		worm := blobtest.NewWorm(newMemory(), blobtest.Policy{})
		cfg := testConfig(t, worm)
		if ignores {
			cfg.Store = silent{worm}
		}
		cfg.Retention = blob.Retention{For: future, Mode: blob.Governance}
		var log logged
		s := runs(t, oldTopic(t, 35).grow(400), SealerConfig{Config: cfg, TailEvery: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s.until("the ranges", func(st Status) bool { return st.Read == 399 })
		s.end()
		if n := log.count("does not report the requested lock"); n != want {
			t.Errorf("%d warnings of a store that ignores locks (%t):\n%s", n, ignores, &log.text)
		}
	}
}

// blunt is a bucket that refuses to replace and delete tails with an error of no known kind.
type blunt struct{ *memory }

var errBlunt = errors.New("400 InvalidRequest")

func (blunt) Delete(context.Context, ...string) error                    { return errBlunt }
func (blunt) Write(context.Context, string, []byte, time.Duration) error { return errBlunt }

// TestATailThatFails stops no full range, whatever the error is, and is tried again.
func TestATailThatFails(t *testing.T) {
	p := oldTopic(t, 36).grow(100)
	cfg := testConfig(t, blunt{newMemory()})
	s := runs(t, p, SealerConfig{Config: cfg, TailEvery: time.Millisecond})
	s.until("two failed tails", func(st Status) bool { return st.Failures >= 2 })
	s.mu.Lock()
	p.grow(400)
	s.mu.Unlock()
	s.until("the ranges", func(st Status) bool { return st.Sealed == 383 })
}

// TestAnOldTailWithoutLaterRecords is no error in a bucket that keeps it, and readers ignore it.
func TestAnOldTailWithoutLaterRecords(t *testing.T) {
	ctx := t.Context()
	for name, c := range locking {
		m := newMemory()
		m.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		p := oldTopic(t, 37).grow(50)
		worm := blobtest.NewWorm(m, c.policy)
		cfg := testConfig(t, worm)
		if _, err := worm.Create(ctx, cfg.folder()+tailName+"-00000000000000000000-ab", []byte("orphan"), 0); err != nil {
			t.Fatal(err)
		}
		if err := p.archive(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		m.now = m.now.Add(time.Hour)
		w, err := NewWriter(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.grow(128).records {
			if err := w.Add(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Sweep(ctx), w.Tail(ctx)); err != nil || worm.Refused() != 2 {
			t.Errorf("%s: %v; refused %d times", name, err, worm.Refused())
		}
		if a := sound(t, cfg); a.Tail() != nil || a.Base().Sequence != 128 {
			t.Errorf("%s: the archive ends with %+v, %+v", name, a.Base(), a.Tail())
		}
		checkEqual(t, read(t, cfg, 0, math.MaxInt64), p.records)
	}
}
