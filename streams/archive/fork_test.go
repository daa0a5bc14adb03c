package archive

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// fork returns a copy of a topic that gets records of its own.
func (p *topic) fork(seed uint64) *topic {
	q := *p
	q.random, q.records = rand.New(rand.NewPCG(seed, 1)), slices.Clone(p.records)
	return &q
}

// forkedAt returns the record from which an error says that the tail of an archive is of another history, or -1.
func forkedAt(err error, cfg Config) int64 {
	var wrong *Error
	var diverged *record.DivergedError
	if !errors.As(err, &wrong) || wrong.Key != cfg.tailKey() || wrong.Damage != Forked || !errors.As(err, &diverged) {
		return -1
	}
	return wrong.Sequence
}

// TestAForkLeavesTheTail grows a copy of a topic by records of its own. It MUST NOT replace the tail of the original, nor seal a range
// in place of that.
func TestAForkLeavesTheTail(t *testing.T) {
	for name, c := range map[string]struct{ common, original, fork, at int64 }{
		"a longer fork":              {150, 170, 200, 150},
		"a fork as long":             {150, 170, 170, 150},
		"a shorter fork":             {150, 170, 160, 150},
		"a fork that fills a range":  {150, 170, 300, 150},
		"a fork of the first range":  {50, 70, 90, 50},
		"another log":                {0, 70, 90, 0},
		"another, shorter log":       {0, 70, 60, 0},
		"a fork at the end":          {199, 200, 201, 199},
		"a fork of the first record": {128, 140, 150, 128},
	} {
		for when, late := range map[string]bool{"opened before the tail was written": true, "opened afterwards": false} {
			s := newMemory()
			cfg, p := testConfig(t, s), newTopic(t, 50)
			q := newTopic(t, 51)
			if c.common > 0 {
				q = p.grow(c.common).fork(51)
			}
			p.grow(c.original)
			q.grow(c.fork)
			before := c.common / 128 * 128 // what is in full ranges already
			if err := p.fork(0).until(before).archive(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			w, err := NewWriter(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.archive(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			if !late {
				if w, err = NewWriter(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
			}
			want := maps.Clone(s.blobs)
			err = w.all(t, q)
			if at := forkedAt(err, cfg); at != c.at {
				t.Errorf("%s, %s: forked at %d: %v", name, when, at, err)
			}
			if !maps.EqualFunc(s.blobs, want, slices.Equal) {
				t.Errorf("%s, %s: the bucket was changed: %v, before %v", name, when, s.keys(), slices.Sorted(maps.Keys(want)))
			}
		}
	}
}

// until returns the topic without the records from a sequence on.
func (p *topic) until(n int64) *topic {
	for i, r := range p.records {
		if _, sequence, ok := record.PrevOf(r.Value); ok && sequence == n {
			p.records = p.records[:i]
			break
		}
	}
	return p
}

// all has a writer take all records of a topic, and write the tail.
func (w *Writer) all(t *testing.T, p *topic) error {
	for _, r := range p.records {
		if r.Offset < w.Next() {
			continue
		}
		if err := w.Add(t.Context(), r); err != nil {
			return err
		}
	}
	return w.Tail(t.Context())
}

// TestAShorterLogLeavesTheTail archives the beginning of a log, with a record after it that readers skip and with a higher offset than the
// tail ends with.
func TestAShorterLogLeavesTheTail(t *testing.T) {
	s := newMemory()
	cfg, p := testConfig(t, s), newTopic(t, 52).grow(150)
	q := p.fork(52)
	if err := p.grow(170).archive(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	q.offset = p.offset + 10
	q.append(&kgo.Record{Value: []byte("junk"), Timestamp: time.UnixMilli(1)})
	want := maps.Clone(s.blobs)
	if err := q.archive(t.Context(), cfg); err != nil {
		t.Error(err)
	}
	if !maps.EqualFunc(s.blobs, want, slices.Equal) {
		t.Errorf("the bucket was changed: %v", s.keys())
	}
}

// TestASealerFindsAFork at its start, before a tail is due, also if the log ends before the tail.
func TestASealerFindsAFork(t *testing.T) {
	for name, n := range map[string]int64{"a longer fork": 200, "a shorter fork": 160, "the same log, shorter": 150} {
		s := newMemory()
		cfg, p := testConfig(t, s), newTopic(t, 53).grow(150)
		q := p.fork(54).grow(n)
		if err := p.grow(170).archive(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		r := sealsAfter(t, q, cfg, time.Hour)
		r.until(name+" to be found", func(st Status) bool { return st.Halted })
		r.end()
	}
}

// TestATailOfAnotherChain does not continue the manifests. Readers and writers name it and its first record when they open the archive.
func TestATailOfAnotherChain(t *testing.T) {
	s, other := newMemory(), newMemory()
	cfg, p := testConfig(t, s), newTopic(t, 57).grow(100)
	if err := p.fork(58).grow(150).archive(t.Context(), testConfig(t, other)); err != nil {
		t.Fatal(err)
	}
	if err := p.grow(150).archive(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	s.blobs[cfg.tailKey()] = other.blobs[cfg.tailKey()]
	_, opened := Open(t.Context(), cfg)
	_, ranges := OpenRanges(t.Context(), cfg)
	_, writes := NewWriter(t.Context(), cfg)
	for who, err := range map[string]error{"a reader": opened, "a reader of full ranges": ranges, "a writer": writes} {
		var wrong *Error
		if !errors.As(err, &wrong) || wrong.Damage != Forked || wrong.Key != cfg.tailKey() || wrong.Sequence != 128 {
			t.Errorf("%s: %v", who, err)
		}
	}
}

// TestASealerContinuesOnAMendedArchive is not halted when the tail of another chain is gone, although its own tail is not due yet.
func TestASealerContinuesOnAMendedArchive(t *testing.T) {
	s, other := newMemory(), newMemory()
	cfg, p := testConfig(t, s), newTopic(t, 59).grow(100)
	if err := p.fork(60).grow(150).archive(t.Context(), testConfig(t, other)); err != nil {
		t.Fatal(err)
	}
	if err := p.grow(150).archive(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	key := cfg.tailKey()
	own, foreign := s.blobs[key], other.blobs[key]
	replace := func(b []byte) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.blobs[key] = b
	}
	replace(foreign)
	r := sealsAfter(t, p, cfg, time.Hour)
	r.until("the tail of another chain to be found", func(st Status) bool { return st.Halted })
	replace(own)
	r.until("the sealer to continue", func(st Status) bool { return !st.Halted && st.Tailed == 149 })
	r.end()
}
