package reference_test

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
)

// TestMarket runs a market at simulated time: makers, takers, stops, leverage, crashes, halts, silent feeds, funding,
// settlements, and downtimes in which the owner changes. The auditor reads every record and holds it against the rules; a fold
// of all records and one from a snapshot come to the same bytes as the owner's, and the snapshot decides all that follows
// again as the same bytes.
//
// By default it takes two and a half minutes of market. PERPETUA_TEST_SIM_MINUTES is another span (an hour in `make market`), and
// PERPETUA_TEST_SIM_SEED another seed; what fails tells its own. The records of the default market, and of one that makes
// 100,000 of them, have to be those of earlier builds.
func TestMarket(t *testing.T) {
	span := 150 * scalar.Second
	if os.Getenv(recordtest.Long) != "" {
		span = 40 * scalar.Minute
	}
	if n := setting(t, "PERPETUA_TEST_SIM_MINUTES", 0); n > 0 {
		span = scalar.Time(n) * scalar.Minute
	}
	seed := setting(t, "PERPETUA_TEST_SIM_SEED", 1)
	defer func() {
		if t.Failed() {
			t.Logf("PERPETUA_TEST_SIM_SEED=%d PERPETUA_TEST_SIM_MINUTES=%d", seed, span/scalar.Minute)
		}
	}()
	c := holdMarket(t, seed, span, 2)
	c.checkWild(span >= 20*scalar.Minute)
	// The crowd computes with floating-point numbers, which other processors round in other ways.
	if frozen := span == 150*scalar.Second || span == 40*scalar.Minute; frozen && seed == 1 && runtime.GOARCH == "amd64" {
		c.log.Check(t, fmt.Sprintf("market of %d s", span/scalar.Second))
	}
}

// holdMarket runs a market of three mornings, each around the settlement at eight, and returns it at rest. An odd seed makes
// it follow the given rules, an even one rules 1.
func holdMarket(t *testing.T, seed uint64, span scalar.Time, rules int) *crowd {
	t.Helper()
	began := time.Now()
	morning := scalar.TimeOf(time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC))
	v := openVenue(t, seed, morning-span/6)
	c := openCrowd(v, seed, 240, rules)
	for n := range scalar.Time(3) {
		end := morning + n*scalar.Day + span/6
		for c.now < end {
			c.second()
			if !c.calm && c.chance(0.5) {
				span := scalar.Time(2+c.random.IntN(90)) * scalar.Second
				c.fleeting(c.now + span - scalar.Second/2)
				c.away(span)
				c.rush()
			}
		}
		switch n {
		case 0:
			c.delist()
			c.drain()
			fallthrough
		case 1:
			c.away(morning + (n+1)*scalar.Day - span/6 - c.now)
			c.rush()
		}
	}
	c.settle()
	c.compare()
	t.Logf("%d records in %v: %+v; %d repeated; answers %v", c.auditor.Seen.Records, time.Since(began).Round(time.Second), c.auditor.Seen, c.repeats, c.answers)
	t.Logf("decided again: %v; inputs %v of %d bytes in %d bytes of values", c.again, c.inputs, c.inputBytes, c.bytes)
	return c
}

// checkWild fails a market that has become too tame for what it is to prove.
func (c *crowd) checkWild(long bool) {
	c.t.Helper()
	s := c.auditor.Seen
	always := map[string]int{"liquidations": s.Liquidations, "stops": s.Fired, "expiries": s.Expired, "fundings": s.Funding,
		"missed fundings": s.Missed, "settlements": s.Settlement, "stale prices": s.Stale, "premiums": s.Premiums, "self-trades": s.SelfTrades,
		"rejections": s.Rejected, "repetitions": c.repeats}
	if long { // what a short market may come by without
		maps.Copy(always, map[string]int{"takeovers": s.Takeovers, "deleveraging": s.Deleveraged, "sweeps": s.Sweeps, "prices beyond the band": s.PriceProtected})
	}
	for what, n := range always {
		if n == 0 {
			c.t.Errorf("there were no %s", what)
		}
	}
	if c.state.Due(c.now) != decide.Nothing {
		c.t.Error("something is still due")
	}
}

// setting reads a number from the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
