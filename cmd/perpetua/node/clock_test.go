package node

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// wrongClock is the machine's with a wall clock that is off.
type wrongClock struct {
	journal.Clock
	by time.Duration
}

func (c wrongClock) Wall() time.Time { return c.Clock.Wall().Add(c.by) }

// metric returns a metric of a node whose labels hold all these words, or -1.
func (n *Node) metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	r, err := http.Get(n.URL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
lines:
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, name+"{") {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(line, label) {
				continue lines
			}
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return -1
}

// tradingLog returns the records of the trading journal.
func (b *bench) tradingLog(t *testing.T) (all []record.Entry) {
	t.Helper()
	client, err := b.config.Settings.NewClient(b.config.Brokers, b.config.Logger)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r := journal.NewReader(client, trading.Rules(), 0, record.Before)
	r.Audit()
	defer r.Close()
	if err := r.ToTip(t.Context(), func(entries []record.Entry) error { all = append(all, entries...); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// order has the engine of a node decide a trading command, and returns its record. What a busy machine refuses for the time
// being is sent again.
func (n *Node) do(t *testing.T, payload decide.Payload) *record.Record {
	t.Helper()
	var made *record.Record
	eventually(t, payload.CommandType()+" to be decided", func() string {
		r, err := n.try(t, payload)
		if err != nil {
			return err.Error()
		}
		made = r
		return ""
	})
	return made
}

// try is do for a command that may be refused.
func (n *Node) try(t *testing.T, payload decide.Payload) (*record.Record, error) {
	t.Helper()
	c := decide.Command{ID: record.NewCommandID(time.Now()), Type: payload.CommandType(), Actor: decide.Actor{Sub: "broker-a", Broker: "alpha"}, Payload: payload}
	r, err := n.engine.owners.Submit(t.Context(), journals.Trading, c)
	return r.Entry.Record, err
}

// open has a node list an instrument and fund two customers, each with an order: ANNA's expires so many seconds after it is
// placed, and BEN's is canceled by his dead-man switch as many seconds after that was set.
func (n *Node) open(t *testing.T, seconds int) {
	t.Helper()
	d := func(coef int64, scale uint8) fixed.Decimal { return fixed.Decimal{Coef: coef, Scale: scale} }
	n.do(t, &trading.ListInstrument{Instrument: market.Instrument{Symbol: "BTCUSDC_PERP", Underlying: "BTC", QuoteCurrency: "USDC",
		SettlementCurrency: "USDC", Status: market.Open, PriceTick: d(1, 1), AmountStep: d(1, 3), MinAmount: d(1, 3), MaxAmount: d(1000, 0),
		ContractSize: d(1, 0), InitMarginReq: d(500, 2), MaintMarginReq: d(250, 2), MaxLeverage: 13, FundingIntervalSeconds: 3600,
		PriceBand: d(500, 2), LimitBand: d(2000, 2), MakerFee: d(2, 0), TakerFee: d(5, 0)}})
	index := &trading.SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: d(65000, 0)}
	n.do(t, index)
	for _, customer := range []string{"ANNA", "BEN"} {
		n.do(t, &trading.RegisterCustomer{CustomerCode: customer})
		n.do(t, &trading.MakeDeposit{CustomerCode: customer, Currency: "USDC", Amount: 10_000 * fixed.Unit})
	}
	entry := trading.PlaceOrder{CustomerCode: "ANNA", Symbol: "BTCUSDC_PERP", Action: order.Buy, Type: order.Limit, TimeInForce: order.GTD,
		Amount: d(1, 3), LimitPrice: d(64000, 0)}
	eventually(t, "an order that is placed before it expires", func() string { // on a busy machine, not the first one
		entry.ExpireTime = n.do(t, index).Time + scalar.Time(seconds)*scalar.Second
		if _, err := n.try(t, &entry); err != nil {
			return err.Error()
		}
		return ""
	})
	entry.CustomerCode, entry.TimeInForce, entry.ExpireTime = "BEN", order.GTC, 0
	n.do(t, &entry)
	n.do(t, &trading.SetCancelAllAfter{CustomerCode: "BEN", TimeoutSeconds: seconds})
}

// TestAVenueGoesOnAfterAClockThatWasAhead opens a venue with a clock that is an hour ahead, and starts it again when
// the clock is right. It takes no term unless it is told to. Then time goes on from the log's last: what was due soon
// comes soon, and not an hour later; no two records share a time; and it says what is the matter.
func TestAVenueGoesOnAfterAClockThatWasAhead(t *testing.T) {
	b := newBench(t, journals.All())
	accepting := *b.config.Settings
	accepting.Writer.AcceptClock = true
	ahead, told := b.config, b.config
	ahead.Settings, ahead.Clock = &accepting, wrongClock{journal.SystemClock(), time.Hour}
	told.Settings = &accepting

	n, stop := b.run(t, ahead)
	n.open(t, 5)
	stop()
	before := int64(len(b.tradingLog(t)))

	b.takesNoTerm(t)
	if now := int64(len(b.tradingLog(t))); now != before {
		t.Errorf("%d records were appended with a clock that is behind the log", now-before)
	}

	n, stop = b.run(t, told)
	n.Announce()
	b.readiness(t, n, "ready", nil)
	if alarms := n.metric(t, "perpetua_journal_alarms_total", `journal="trading"`, `kind="clock"`); alarms < 1 { // one for each term
		t.Errorf("%v alarms", alarms)
	}
	eventually(t, "the order to expire and the switch to go off", func() string {
		var left []order.Order
		if fold, err := n.Fold(journals.Trading); err == nil {
			fold.View(func(s decide.State, _ record.Position) {
				left = append(s.(*trading.State).OpenOrders("ANNA"), s.(*trading.State).OpenOrders("BEN")...)
			})
		}
		if len(left) > 0 {
			return left[0].CustomerCode + "'s order rests"
		}
		return ""
	})
	eventually(t, "the metric to say how far ahead time is", func() string {
		if off := n.metric(t, "perpetua_journal_clock_off_seconds", `journal="trading"`); off < 3000 || off > 3700 {
			return strconv.FormatFloat(off, 'g', -1, 64)
		}
		return ""
	})
	stop()
	checkTimes(t, b.tradingLog(t))
}

// takesNoTerm runs a node whose clock is behind the log until it has said so.
func (b *bench) takesNoTerm(t *testing.T) {
	t.Helper()
	n, err := Open(t.Context(), b.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	defer sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the node ended with %v", err)
		}
		n.Close()
	})()
	n.Announce()
	eventually(t, "an alarm for each journal", func() string {
		for _, name := range journals.All().Names() {
			if n.metric(t, "perpetua_journal_alarms_total", `journal="`+name+`"`, `kind="clock"`) < 1 {
				return "none of " + name
			}
		}
		return ""
	})
	b.readiness(t, n, "unready", every("trading: no node owns it with a valid term; this node takes none, since its clock is off (CLOCK_OFF)"))
}

// checkTimes wants no two records to share a time, and what was due to have come by it.
func checkTimes(t *testing.T, all []record.Entry) {
	t.Helper()
	var last, expires, fires scalar.Time
	for _, e := range all {
		r := e.Record
		if r.Time <= last {
			t.Errorf("record %d has the time %v, after %v", r.Sequence, r.Time, last)
		}
		last = r.Time
		for _, event := range r.Events {
			switch event := event.(type) {
			case *trading.OrderOpened:
				expires = max(expires, event.Order.ExpireTime)
			case *trading.CancelAllAfterSet:
				fires = event.ExpiresAt
			case *trading.OrderExpired:
				due(t, "the order expired", r.Time, expires)
			case *trading.CancelAllAfterFired:
				due(t, "the switch went off", r.Time, fires)
			}
		}
	}
	if expires == 0 || fires == 0 {
		t.Error("nothing was due")
	}
}

// due wants something to have come when it was due, and within the patience of a test.
func due(t *testing.T, what string, at, when scalar.Time) {
	t.Helper()
	if late := at - when; late < 0 || late > scalar.Time(patience.Microseconds()) {
		t.Errorf("%s at %v, and was due at %v", what, at, when)
	}
}
