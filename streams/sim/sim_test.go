package sim

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// episodeSteps is the number of steps of one episode.
const episodeSteps = 2000

// episode runs one world to its end. It is the same for the same seed.
func episode(seed uint64) *world {
	w := newWorld(seed, 2+int(seed/3%3))
	cut := -1 // one log in four loses its end
	if seed%4 == 0 {
		cut = 500 + w.random.IntN(1000)
	}
	for i := range episodeSteps - 300 {
		if i == cut {
			w.loseEnd()
		}
		if w.act(); w.failure != nil {
			return w
		}
	}
	w.calm = true
	for _, n := range w.nodes {
		n.paused, n.blind, n.offset, n.drift = 0, 0, 0, 0
	}
	for range 300 {
		if w.act(); w.failure != nil {
			return w
		}
	}
	w.verify()
	return w
}

// stepsOf returns the number of steps of a run, and its first seed.
func stepsOf(t *testing.T) (steps int, seed uint64) {
	t.Helper()
	steps, seed = 1_000_000, 1
	if testing.Short() {
		steps = 100_000
	}
	if s := os.Getenv(stepsVariable); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		steps = n
	}
	if s := os.Getenv(seedVariable); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	return steps, seed
}

// The environment variables of the first seed and of the number of steps.
const (
	seedVariable  = "PERPETUA_TEST_TERM_SEED"
	stepsVariable = "PERPETUA_TEST_TERM_STEPS"
)

var verbose = flag.Bool("trace", false, "print the latest actions of a world that fails")

// TestTerms runs the protocol through a million steps. PERPETUA_TEST_TERM_STEPS is another number (`make sim`). A failure
// prints the seed of its episode, and PERPETUA_TEST_TERM_SEED begins with it.
func TestTerms(t *testing.T) {
	steps, seed := stepsOf(t)
	began := time.Now()
	var all clients
	records, terms, cuts := 0, int64(0), 0
	for last := seed + uint64(max(1, steps/episodeSteps)); seed < last; seed++ {
		w := episode(seed)
		if w.failure != nil {
			if *verbose {
				t.Log(strings.Join(w.trace, "\n"))
			}
			t.Fatalf("%s=%d: %v", seedVariable, seed, w.failure)
		}
		all.add(w.clients)
		records, terms = records+len(w.valid), terms+max(0, w.chain.Term())
		if w.cut {
			cuts++
		}
	}
	t.Logf("%d steps in %v: %d records, %d terms, %d logs that lost their end; requests: %+v", steps, time.Since(began).Round(time.Millisecond), records, terms, cuts, all)
	if steps >= 1_000_000 && (records < 10_000 || terms < 2_000 || cuts < 10 || all.applied < 5_000 || all.repeated < 100 || all.refused < 2_000 ||
		all.notAccepted < 1_000 || all.unknown < 500 || all.failed < 100) {
		t.Error("the world has become too tame")
	}
}

func (c *clients) add(d clients) {
	c.requests += d.requests
	c.applied += d.applied
	c.repeated += d.repeated
	c.refused += d.refused
	c.notAccepted += d.notAccepted
	c.unknown += d.unknown
	c.failed += d.failed
}

// TestASeedRepeatsARun: the same seed gives the same log, byte by byte, and the same answers.
func TestASeedRepeatsARun(t *testing.T) {
	run := func() string {
		w := episode(7)
		h := sha256.New()
		for _, s := range w.log {
			h.Write(s.value)
		}
		return fmt.Sprintf("%x %+v %v %v", h.Sum(nil), w.clients, w.now, w.failure)
	}
	if first, second := run(), run(); first != second {
		t.Errorf("%s and %s", first, second)
	}
}
