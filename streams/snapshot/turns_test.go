package snapshot

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
)

func TestNodesDoNotMakeASnapshotAllAtOnce(t *testing.T) {
	v, c := newVenue(t), codec{version: 1}
	m, _ := v.follow(c, nil, 1000)
	m.last.Sequence, m.made = 0, time.Now()
	for _, x := range []struct{ took, most time.Duration }{{0, leastSpread}, {time.Second, spread * time.Second}, {time.Hour, m.cfg.Interval / spreadPartOf}} {
		m.took = x.took
		due := m.made.Add(effort * time.Hour)
		if m.itsTurn(9, due) || !m.turn.IsZero() {
			t.Error("it waits for one that is not due")
		}
		var shortest, longest time.Duration = x.most, 0
		for range 1000 {
			if m.itsTurn(1000, due) {
				t.Fatal("it does not wait")
			}
			waits := m.turn.Sub(due)
			shortest, longest = min(shortest, waits), max(longest, waits)
			if m.itsTurn(1000, m.turn.Add(-1)) || !m.itsTurn(10, m.turn) || !m.turn.IsZero() {
				t.Fatal("it does not wait for its turn")
			}
		}
		if shortest < 0 || shortest > x.most/10 || longest > x.most || longest < 9*x.most/10 {
			t.Errorf("%v: the waits are between %v and %v", x, shortest, longest)
		}
		m.itsTurn(1000, due)
		if m.itsTurn(9, due) || !m.turn.IsZero() {
			t.Error("it still waits for one that another node has made")
		}
	}
}

// meanwhile is a codec that has something else happen while a maker folds apart.
type meanwhile struct {
	codec
	happens func()
}

func (c meanwhile) Read(b []byte) (decide.State, error) {
	c.happens()
	return c.codec.Read(b)
}

// TestAFoldApartEndsWhereTheLogLostItsEnd has the log end before the position that the node's fold is at.
func TestAFoldApartEndsWhereTheLogLostItsEnd(t *testing.T) {
	v := newVenue(t)
	c := codec{version: 1, size: 2 * holdable}
	v.own(c)
	v.say("one")
	m, f := v.follow(c, nil, 1)
	last := v.say("two", "three")
	v.wait(f, last)
	v.stop()
	journaltest.Cut(t, v.client, "trading", last.Offset)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := m.apart(ctx); !errors.Is(err, journal.ErrNoRecord) {
		t.Errorf("%v", err)
	}
}

func TestASnapshotFoldedApartIsDroppedWhereAnotherNodeWasFaster(t *testing.T) {
	v, c := newVenue(t), codec{version: 1, size: holdable + 1}
	v.own(c)
	m, fold := v.follow(c, nil, 1)
	other, _ := v.follow(codec{version: 1}, nil, 1)
	v.wait(fold, v.say("one"))
	if err := m.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	two := v.say("two")
	v.wait(fold, two)
	v.wait(other.cfg.Fold, two)
	m.took = 0
	m.cfg.Codec = meanwhile{c, func() {
		if err := other.hold(t.Context()); err != nil {
			t.Error(err)
		}
		v.wait(fold, v.say("three"))
	}}
	if err := m.Make(t.Context()); err != nil || !m.last.Equal(two) || m.took != 0 {
		t.Errorf("the last is %v, made in %v: %v", m.last, m.took, err)
	}
	if n := len(v.blobs()); n != 2 {
		t.Errorf("%d snapshots: %v", n, v.blobs())
	}
}
