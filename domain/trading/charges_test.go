package trading

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// checkInstants checks that the holders of every instrument are its open positions, whoever owes a charge first; that
// as many owe a charge as are counted; and that what is in the venue's account for funding is what the charges left
// there.
func checkInstants(t fataler, s *State) {
	t.Helper()
	outstanding, left := 0, fixed.Money(0)
	for _, i := range s.listing {
		open, before := 0, (*position)(nil)
		owing, done := make(map[*charge]int), make(map[*charge]bool)
		for h := i.holders.first; h != nil; h = h.inHolders.after {
			if h.inHolders.before != before || h.size == 0 || h.instrument != i || h.account.on(i) != h {
				t.Fatalf("%s hangs wrongly among the holders of %s", h.account.code, i.contract.Symbol)
			}
			for _, x := range i.charges {
				switch {
				case x.number <= h.posted:
					done[x] = true
				case done[x]:
					t.Fatalf("%s owes the instant of %s, and stands behind one who does not", h.account.code, x.time)
				default:
					owing[x]++
				}
			}
			open, before = open+1, h
		}
		held := 0
		for _, a := range append(slices.Clone(s.registered), s.fund) {
			if a.on(i).size != 0 {
				held++
			}
		}
		if before != i.holders.last || open != i.holders.length || open != held {
			t.Fatalf("%s: %d holders in the list, %d counted, %d there are", i.contract.Symbol, open, i.holders.length, held)
		}
		for _, x := range i.charges {
			if x.owing != owing[x] || x.owing == 0 || x.number > s.fixed {
				t.Fatalf("%s: %d owe the instant of %s, not %d", i.contract.Symbol, owing[x], x.time, x.owing)
			}
			left += x.left
			outstanding++
		}
	}
	if outstanding != s.outstanding || left != s.venue[ledger.Funding] {
		t.Fatalf("%d instants outstanding and %s for funding, not %d and %s", s.outstanding, s.venue[ledger.Funding], outstanding, left)
	}
}

// twoVenues are two venues that get the same commands at the same times. The first posts whatever falls due at once; the
// second, whose steps post one account each, does so when it likes.
type twoVenues struct {
	*rapid.T
	prompt, slow *testJournal
	live         []order.Order // of the prompt one, with the slow one's codes beside
	codes        map[scalar.ID]scalar.ID
}

var holdersOfTwo = []string{"a1", "a2", "b1", "b2", "c1"}

// TestPostingInStepsIsPayingAtOnce: whatever commands come between the postings of funding and settlement, whomever they
// touch, and however little of what an account owes goes into a record, the slow venue decides as the prompt one and, once
// all is posted, every account of customers and of the venue, every position and every row is the same to the unit.
func TestPostingInStepsIsPayingAtOnce(t *testing.T) {
	posted := 0
	rapid.Check(t, func(t *rapid.T) {
		v := &twoVenues{T: t, prompt: newTestJournal(t), slow: newTestJournal(t), codes: make(map[scalar.ID]scalar.ID)}
		v.slow.state.limit.others = 1
		v.slow.state.limit.charges = rapid.SampledFrom([]int{0, 1, 2, maxCharges}).Draw(t, "debts") // of four on two instruments
		v.open()
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			v.pass()
			v.command()
			v.compare()
		}
		v.slow.drain()
		v.compare()
		v.compareAll()
		for _, row := range v.rows(v.prompt) {
			if strings.Contains(row, " "+string(ledger.Settlement)+" ") || strings.Contains(row, " "+string(ledger.FundingPayment)+" ") {
				posted++
			}
		}
		v.slow.checkReplay()
	})
	if posted == 0 {
		t.Error("nothing was ever posted")
	}
}

func (v *twoVenues) open() {
	for n, symbol := range []string{"BTCUSDC_PERP", "ETHUSDC_PERP"} {
		i := btc()
		i.Symbol = symbol
		if n == 1 {
			i.FundingIntervalSeconds, i.ContractSize, i.AmountStep, i.MinAmount = 4*3600, number("0.37"), number("0.01"), number("0.01")
		}
		v.both(decide.Command{Actor: operator, Payload: &ListInstrument{Instrument: i}})
		v.both(decide.Command{Actor: operator, Payload: &SetIndexPrice{Symbol: symbol, Price: number("100")}})
	}
	for _, code := range holdersOfTwo {
		v.both(decide.Command{Actor: operator, Payload: &RegisterCustomer{CustomerCode: code, Broker: code[:1]}})
		v.both(decide.Command{Actor: operator, Payload: &MakeDeposit{CustomerCode: code, Currency: currency, Amount: 200_000 * fixed.Unit}})
	}
	// Somebody offers enough on both sides for a premium, the bids above the index, and all have positions.
	v.both(decide.Command{Actor: operator, Payload: &RegisterCustomer{CustomerCode: "m1", Broker: "m"}})
	v.both(decide.Command{Actor: operator, Payload: &MakeDeposit{CustomerCode: "m1", Currency: currency, Amount: 10_000_000 * fixed.Unit}})
	offer := func(customer, symbol string, a order.Action, amount, price string) {
		p := &PlaceOrder{CustomerCode: customer, Symbol: symbol, Action: a, Type: order.Limit, Amount: number(amount), LimitPrice: number(price)}
		v.both(decide.Command{Actor: trader(customer[:1]), Payload: p})
	}
	for _, symbol := range []string{"BTCUSDC_PERP", "ETHUSDC_PERP"} {
		for n, code := range holdersOfTwo {
			side := []order.Action{order.Buy, order.Sell}[n%2]
			offer("m1", symbol, side.Opposite(), "33.33", "100.1")
			offer(code, symbol, side, "33.33", "100.1")
		}
		offer("m1", symbol, order.Buy, "1000", "101.3")
		offer("m1", symbol, order.Sell, "1000", "101.7")
	}
}

// pass lets time go by, which may bring charges, and has the slow venue post some of what it owes.
func (v *twoVenues) pass() {
	span := rapid.SampledFrom([]scalar.Time{0, scalar.Second, 10 * scalar.Minute, 40 * scalar.Minute, scalar.Hour, 5 * scalar.Hour}).Draw(v.T, "time")
	v.prompt.now += span
	v.slow.now += span
	v.prompt.drain()
	for v.slow.state.Due(v.slow.now) == decide.Blocking {
		v.slow.step(false)
	}
	if rapid.IntRange(0, 4).Draw(v.T, "save") == 0 { // what is read back goes on as the other, amid the postings
		v.slow.save()
	}
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(v.T, "steps") {
		if v.slow.state.Due(v.slow.now) == decide.Alternate {
			v.slow.step(rapid.Bool().Draw(v.T, "single"))
		}
	}
}

// both gives a command to both venues, and holds what they say against each other.
func (v *twoVenues) both(c decide.Command) (decide.Decision, decide.Decision) {
	v.Helper()
	a, errA := v.prompt.do(c)
	switch p := c.Payload.(type) { // the slow one's orders have other codes
	case *CancelOrder:
		c.Payload = &CancelOrder{CustomerCode: p.CustomerCode, OrderCode: v.codes[p.OrderCode]}
	case *CompleteWithdrawal:
		c.Payload = &CompleteWithdrawal{Code: v.codes[p.Code]}
	}
	b, errB := v.slow.do(c)
	said := func(err error) string {
		if r := new(decide.Refusal); errors.As(err, &r) {
			return r.Code
		}
		return ""
	}
	if said(errA) != said(errB) || a.Outcome != b.Outcome {
		v.Fatalf("%+v: one venue says %v %s, the other %v %s", c.Payload, errA, a.Outcome, errB, b.Outcome)
	}
	v.prompt.drain()
	return a, b
}

func (v *twoVenues) command() {
	customer := rapid.SampledFrom(holdersOfTwo).Draw(v.T, "customer")
	by, symbol := trader(customer[:1]), rapid.SampledFrom([]string{"BTCUSDC_PERP", "ETHUSDC_PERP"}).Draw(v.T, "symbol")
	switch n := rapid.IntRange(0, 19).Draw(v.T, "command"); {
	case n < 11:
		v.place(customer, by, symbol)
	case n < 15:
		price := fixed.Decimal{Coef: rapid.Int64Range(97_00000000, 103_00000000).Draw(v.T, "index"), Scale: 8}
		v.both(decide.Command{Actor: operator, Payload: &SetIndexPrice{Symbol: symbol, Price: price}})
	case n < 16 && len(v.live) > 0:
		o := rapid.SampledFrom(v.live).Draw(v.T, "order")
		v.both(decide.Command{Actor: trader(o.Broker), Payload: &CancelOrder{CustomerCode: o.CustomerCode, OrderCode: o.Code}})
	case n < 17:
		v.both(decide.Command{Actor: operator, Payload: &MakeDeposit{CustomerCode: customer, Currency: currency, Amount: fixed.Money(rapid.Int64Range(1, 1e12).Draw(v.T, "amount"))}})
	default:
		amount := fixed.Money(rapid.Int64Range(1, 2e12).Draw(v.T, "amount"))
		a, b := v.both(decide.Command{Actor: operator, Payload: &RequestWithdrawal{CustomerCode: customer, Currency: currency, Amount: amount}})
		if len(a.Events) > 0 {
			code := a.Events[len(a.Events)-1].(*WithdrawalRequested).Code
			v.codes[code] = b.Events[len(b.Events)-1].(*WithdrawalRequested).Code
			v.both(decide.Command{Actor: operator, Payload: &CompleteWithdrawal{Code: code}})
		}
	}
}

func (v *twoVenues) place(customer string, by decide.Actor, symbol string) {
	p := &PlaceOrder{CustomerCode: customer, Symbol: symbol, Action: rapid.SampledFrom([]order.Action{order.Buy, order.Sell}).Draw(v.T, "action"),
		Type: order.Limit, Amount: fixed.Decimal{Coef: rapid.Int64Range(1, 500).Draw(v.T, "amount")},
		LimitPrice: fixed.Decimal{Coef: rapid.Int64Range(980, 1020).Draw(v.T, "price"), Scale: 1}}
	switch rapid.IntRange(0, 7).Draw(v.T, "kind") {
	case 0:
		p.Type, p.LimitPrice = order.Market, fixed.Decimal{}
	case 1:
		p.TimeInForce = order.FOK
	case 2:
		p.ReduceOnly = true
	case 3:
		p.Leverage = rapid.IntRange(1, 13).Draw(v.T, "leverage")
	}
	a, b := v.both(decide.Command{Actor: by, Payload: p})
	own := func(events []decide.Event) (o order.Order, ok bool) {
		for _, e := range events {
			if e, is := e.(OrderEvent); is && e.After().CustomerCode == customer && e.After().Reason != order.SelfTrade {
				return *e.After(), true
			}
		}
		return o, false
	}
	mine, ok := own(a.Events)
	theirs, also := own(b.Events)
	if !ok || !also || mine.Status != theirs.Status || mine.Reason != theirs.Reason || mine.FilledAmount != theirs.FilledAmount || mine.FilledQuote != theirs.FilledQuote {
		v.Fatalf("one venue makes %+v of an order, the other %+v", mine, theirs)
	}
	v.codes[mine.Code] = theirs.Code
	if mine.Status.Live() {
		v.live = append(v.live, mine)
	}
}

// compare holds what the slow venue will be against what the prompt one is.
func (v *twoVenues) compare() {
	v.Helper()
	for _, code := range holdersOfTwo {
		a, _ := v.prompt.state.Summary(code)
		b, _ := v.slow.state.Summary(code)
		owed := fixed.Money(0)
		for _, d := range v.slow.state.unpaidCharges(v.slow.state.accounts[code]) {
			owed += d.amount
		}
		if a.TotalEquity != b.TotalEquity || a.AvailableMargin != b.AvailableMargin || a.Withdrawable != b.Withdrawable ||
			a.MaintenanceMargin != b.MaintenanceMargin || a.Balance != b.Balance+owed {
			v.Fatalf("%s: one venue says %+v, the other %+v, and owes %s", code, a, b, owed)
		}
		v.compareDrafts(code)
	}
	for n, i := range v.prompt.state.listing {
		if o := v.slow.state.listing[n]; i.mark != o.mark || i.rate != o.rate || i.openInterest != o.openInterest || i.premiums != o.premiums {
			v.Fatalf("%s: mark %d and %d, rate %d and %d", i.contract.Symbol, i.mark, o.mark, i.rate, o.rate)
		}
	}
}

// compareDrafts checks that what a record posts first, however much of what an account owes that is, changes nothing of
// what the account has and needs.
func (v *twoVenues) compareDrafts(code string) {
	v.Helper()
	s := v.slow.state
	a := s.accounts[code]
	want := s.standing(a, v.slow.now, nil)
	for _, i := range s.listing {
		d := s.newRecordBuilder(v.slow.stamp(), i)
		if got := d.standing(d.viewOf(a)); got != want {
			v.Fatalf("%s is %+v, and %+v in a record on %s that posts %d first", code, want, got, i.contract.Symbol, len(d.events))
		}
	}
}

// compareAll holds everything that was posted against each other.
func (v *twoVenues) compareAll() {
	v.Helper()
	for _, account := range ledger.Accounts() {
		if a, b := v.prompt.state.VenueBalance(account), v.slow.state.VenueBalance(account); a != b {
			v.Fatalf("the venue's account %s has %s in one venue, %s in the other", account, a, b)
		}
	}
	for _, code := range holdersOfTwo {
		a, b := v.prompt.state.Positions(code), v.slow.state.Positions(code)
		for n := range a {
			a[n].Updated, b[n].Updated = 0, 0
		}
		if !slices.Equal(a, b) {
			v.Fatalf("%s holds %+v in one venue, %+v in the other", code, a, b)
		}
	}
	if a, b := v.rows(v.prompt), v.rows(v.slow); !slices.Equal(a, b) {
		v.Fatalf("the rows of one venue are\n%v\nthose of the other\n%v", a, b)
	}
}

// rows are the rows of all customers on all instruments: of each customer on each instrument in their order, funding before
// settlement before what was traded after it.
func (v *twoVenues) rows(j *testJournal) (out []string) {
	of := make(map[string][]string)
	for i := range j.records {
		r := &j.records[i]
		for _, e := range r.built {
			ledger.Rows(r.stamp, e, func(row *ledger.Row) {
				if row.Symbol != "" {
					on := row.CustomerCode + " " + row.Symbol
					of[on] = append(of[on], fmt.Sprintf("%s %s %s %v", on, row.Type, row.Amount, row.FundingTerms))
				}
			})
		}
	}
	for _, on := range slices.Sorted(maps.Keys(of)) {
		out = append(out, of[on]...)
	}
	return out
}

// unpaidCharges returns the unpaid charges of an account in the order in which the charges were fixed. Funding comes
// before settlement fixed at the same time.
func (s *State) unpaidCharges(a *account) []unpaidCharge {
	var list []unpaidCharge
	for _, h := range a.positions {
		list = h.unpaidCharges(list)
	}
	sortDebts(list)
	return list
}
