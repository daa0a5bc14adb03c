package journal_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestKnownPositionsOfATrimmedLog are found in the log, vouched for, or refused.
func TestKnownPositionsOfATrimmedLog(t *testing.T) {
	const n, at = 300, 200
	b := newBased(newRig(t), n, rand.New(rand.NewPCG(1, 1)))
	b.trim(at)
	p := func(sequence int64) record.Position { return b.valid[sequence].Position }
	wrong := func(sequence int64) record.Position {
		p := b.valid[sequence].Position
		p.Hash[0]++
		return p
	}
	var diverged *record.DivergedError
	var trimmed *record.TrimmedError
	for what, c := range map[string]struct {
		known []journal.Known
		as    any // the error; nil for none
	}{
		"in the log":               {[]journal.Known{knows{p(at), p(at + 50), p(n - 1)}}, nil},
		"just before the base":     {[]journal.Known{knows{p(at - 1)}}, nil},
		"vouched for":              {[]journal.Known{knows{p(3), wrong(9), p(at - 1)}, knows{p(7), p(n - 1)}}, nil},
		"another at the base":      {[]journal.Known{knows{wrong(at - 1)}}, &diverged},
		"another in the log":       {[]journal.Known{knows{p(3), wrong(at + 1)}}, &diverged},
		"beyond the end":           {[]journal.Known{knows{{Sequence: n + 5, Offset: 1 << 20, Hash: record.Hash{1}}}}, &diverged},
		"a source of old ones":     {[]journal.Known{knows{p(3)}, knows{p(n - 1)}}, &trimmed},
		"a source of old ones too": {[]journal.Known{knows{p(3), p(at - 2)}}, &trimmed},
	} {
		err := b.client.HoldsKnown(b.context(), b.rules, 0, c.known...)
		if c.as == nil && err != nil || c.as != nil && !errors.As(err, c.as) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestTheNewestPositionVouches: only the newest position of each source is compared, and every source counts.
func TestTheNewestPositionVouches(t *testing.T) {
	const n = 30
	b := newBased(newRig(t), n, rand.New(rand.NewPCG(1, 1)))
	p := func(sequence int64) record.Position { return b.valid[sequence].Position }
	wrong := p(n - 1)
	wrong.Hash[0]++
	stale := p(3)
	stale.Hash[0]++
	if err := b.client.HoldsNewest(b.context(), b.rules, 0, knows{stale, p(n - 1)}, knows{p(9), p(7)}, knows{}); err != nil {
		t.Error(err)
	}
	var diverged *record.DivergedError
	if err := b.client.HoldsNewest(b.context(), b.rules, 0, knows{p(n - 2)}, knows{wrong, p(3)}); !errors.As(err, &diverged) {
		t.Errorf("another last record: %v", err)
	}
}

// TestADeletedPositionIsNotSearchedFor: the offset of the base says that the topic can't hold it. A search takes some twenty fetches,
// and is repeated three times before a position is believed to be missing.
func TestADeletedPositionIsNotSearchedFor(t *testing.T) {
	const n, at = 3000, 2000
	b := newBased(newFake(t), n, rand.New(rand.NewPCG(1, 1)))
	b.trim(at)
	var fetches atomic.Int64
	b.fake.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.fake.KeepControl()
		fetches.Add(1)
		return nil, nil, false
	})
	var trimmed *record.TrimmedError
	if err := b.client.HoldsKnown(b.context(), b.rules, 0, knows{b.valid[3].Position}); !errors.As(err, &trimmed) {
		t.Error(err)
	}
	if n := fetches.Load(); n > 2 {
		t.Errorf("%d fetches for a record that the topic can't hold", n)
	}
}

// TestOnePositionOfASourceVouchesForTheEarlierOnes: otherwise rows that end before the base would have each of their anchors looked
// for, thousands in a long log.
func TestOnePositionOfASourceVouchesForTheEarlierOnes(t *testing.T) {
	const n, at = 300, 200
	b := newBased(newRig(t), n, rand.New(rand.NewPCG(1, 1)))
	for what, c := range map[string]struct {
		trim        bool
		known, want []int64
	}{
		"nothing":            {true, nil, nil},
		"before the base":    {true, []int64{3, at - 2, 7}, []int64{at - 2}},
		"to the base":        {true, []int64{3, at - 2, at - 1}, []int64{at - 1}},
		"beyond the base":    {true, []int64{at + 9, 3, at - 1, at}, []int64{at + 9, at - 1, at}},
		"of a log untrimmed": {false, []int64{3, at, 7}, []int64{3, at, 7}},
	} {
		client := b.client
		if !c.trim {
			client = newBased(newRig(t), n, rand.New(rand.NewPCG(1, 1))).client
		} else if b.kept.Load() == nil {
			b.trim(at)
		}
		var known []record.Position
		for _, s := range c.known {
			known = append(known, b.valid[s].Position)
		}
		left, err := client.Unvouched(b.context(), "trading", 0, known)
		var got []int64
		for _, p := range left {
			got = append(got, p.Sequence)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", what, got, err, c.want)
		}
	}
}
