package demo

import (
	"slices"
	"testing"
)

func steps(w *walk, n int) []int64 {
	var out []int64
	for range n {
		out = append(out, w.step())
	}
	return out
}

func TestWalkRepeats(t *testing.T) {
	path := func(seed uint64) []int64 { return steps(newWalk(newDraws(seed, 0), 650000, 60, 650000), 1000) }
	if !slices.Equal(path(7), path(7)) {
		t.Error("the same seed gives another path")
	}
	if slices.Equal(path(7), path(8)) {
		t.Error("another seed gives the same path")
	}
	// What a seed means must not change from build to build.
	if got, want := path(1)[:4], []int64{650007, 650060, 650069, 650053}; !slices.Equal(got, want) {
		t.Errorf("seed 1 begins %v, it began %v", got, want)
	}
}

func TestWalkStaysInBounds(t *testing.T) {
	for _, c := range []struct{ base, volatility int64 }{{650000, 60}, {150000, 95}, {320000, 5000}, {100, 20000}} {
		for seed := range uint64(5) {
			w := newWalk(newDraws(seed, 3), c.base, c.volatility, c.base)
			before, still := c.base, 0
			for n := range 50_000 {
				p := w.step()
				if p < c.base*3/4-1 || p > c.base*4/3+1 {
					t.Fatalf("base %d, seed %d: %d after %d steps", c.base, seed, p, n)
				}
				if d := max(p-before, before-p); d*million/before > 8*c.volatility+million/before {
					t.Fatalf("base %d, seed %d: a step from %d to %d", c.base, seed, before, p)
				}
				if p == before {
					still++
				}
				before = p
			}
			if still > 40_000 {
				t.Errorf("base %d, seed %d: the price stood still for %d steps of 50000", c.base, seed, still)
			}
		}
	}
}

// A walk that is pulled to its base stays around it without being pressed against a bound.
func TestWalkReturns(t *testing.T) {
	const base = 650000
	w := newWalk(newDraws(2, 0), base, 60, base*6/5)
	above, below := 0, 0
	for range 500_000 {
		switch p := w.step(); {
		case p > base*11/10:
			above++
		case p < base*9/10:
			below++
		}
	}
	if above > 100_000 || below > 100_000 {
		t.Errorf("%d steps a tenth above the base, %d below", above, below)
	}
}

func TestWalkFollowsTheOperator(t *testing.T) {
	w := newWalk(newDraws(1, 0), 650000, 60, 1_000_000)
	for _, p := range steps(w, 1000) {
		if p < 900_000 || p > 1_100_000 {
			t.Fatalf("from 1000000 to %d", p)
		}
	}
}
