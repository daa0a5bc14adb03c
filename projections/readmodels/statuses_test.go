package readmodels_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
)

// TestInstrumentStatuses: the view has what is in force on each instrument, the operator's status or the guard's, as the
// fold of the log has it after every record: before the first index price, with one, with an old one and with a fresh one,
// under each status of the operator's.
func TestInstrumentStatuses(t *testing.T) {
	v, pool := projectiontest.NewVenue(1), projectiontest.Database(t)
	entries := v.Entries(7) // genesis, a term, two instruments, three customers
	const symbol = "BTCUSDC_PERP"
	operator := decide.Actor{Sub: "operator", Broker: "venue"}
	state, folded := trading.NewState(), 0
	seen := map[market.Status]int{}
	holds := func(what string) {
		t.Helper()
		for ; folded < len(entries); folded++ {
			r := entries[folded].Record
			state.Evolve(entries[folded].Stamp(), r.Command, r.Outcome, r.Events)
		}
		apply(t, pool, "trading", readmodels.Trading(), entries)
		for _, s := range projectiontest.Symbols() {
			var got market.Status
			if err := pool.QueryRow(t.Context(), "SELECT status FROM instrument_statuses WHERE symbol = $1", s).Scan(&got); err != nil {
				t.Fatal(err)
			}
			want, _ := state.Status(s)
			if got != want {
				t.Errorf("%s: the status of %s is %s, the fold says %s", what, s, got, want)
			}
			if s == symbol {
				seen[got]++
			}
		}
	}
	index := func() decide.Event {
		price := fixed.Decimal{Coef: 650_000, Scale: 1}
		return &trading.IndexUpdated{Symbol: symbol, IndexPrice: price, MarkPrice: price}
	}
	statuses := func(guard string) {
		for _, status := range []market.Status{market.PostOnly, market.CancelOnly, market.TradeHalt, market.Open} {
			i := projectiontest.Instrument(symbol)
			i.Status = status
			entries = append(entries, v.Entry("instrument.change", operator, decide.Accepted, &trading.InstrumentChanged{Instrument: i}))
			holds(guard + ", " + string(status))
		}
	}
	holds("as listed")
	statuses("before the first index price")
	entries = append(entries, v.Entry("index.set", operator, decide.Accepted, index()))
	holds("with an index price")
	statuses("with an index price")
	entries = append(entries, v.Entry("engine.step", decide.Engine, decide.Accepted, &trading.Step{Work: trading.WorkStaleGuard},
		&trading.GuardSet{Symbol: symbol, Stale: true, Status: market.PostOnly}))
	holds("with an old one")
	statuses("with an old one")
	entries = append(entries, v.Entry("index.set", operator, decide.Accepted, index(), &trading.GuardSet{Symbol: symbol, Status: market.Open}))
	holds("with a fresh one")
	for _, status := range []market.Status{market.Open, market.PostOnly, market.CancelOnly, market.TradeHalt} {
		if seen[status] == 0 {
			t.Errorf("it was never %s", status)
		}
	}
}
