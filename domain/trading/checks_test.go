package trading

import (
	"cmp"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// checkPostings checks that the record's postings sum to zero and that their balances are the running sums.
func (j *testJournal) checkPostings(events []decide.Event) {
	j.t.Helper()
	var total fixed.Money
	for _, e := range events {
		posted, ok := e.(ledger.Posted)
		if !ok {
			continue
		}
		for _, p := range posted.Postings() {
			total += p.Amount
			name := "customer " + p.CustomerCode
			if p.Account != "" {
				name = "venue " + string(p.Account)
			}
			j.sums[name] += p.Amount
			if p.Amount == 0 || j.sums[name] != p.Balance {
				j.t.Fatalf("%s: a posting of %s says the balance is %s, the sum of its postings is %s", name, p.Amount, p.Balance, j.sums[name])
			}
		}
	}
	if total != 0 {
		j.t.Fatalf("the record's postings sum to %s", total)
	}
}

// checkOrderView checks that an order's view is consistent in itself and with the event's type.
func checkOrderView(t fataler, e OrderEvent) {
	t.Helper()
	o := e.After()
	bad := func(is bool, what string) {
		if is {
			t.Fatalf("%s %+v: %s", e.EventType(), *o, what)
		}
	}
	bad(e.EventType() != "order."+string(o.Status) && e.EventType() != "order.opened" && e.EventType() != "order.amended", "type and status differ")
	bad(e.EventType() == "order.opened" && o.Status != order.Open, "opened and not open")
	bad(o.FilledAmount.Cmp(o.Amount) > 0, "filled above amount")
	bad(o.Status == order.Filled && o.FilledAmount.Cmp(o.Amount) != 0, "filled and not in full")
	bad(o.Status.Live() && o.FilledAmount.Cmp(o.Amount) >= 0 && o.CashAmount == 0, "live and nothing left")
	bad((o.Status == order.Open || o.Status == order.Rejected) && o.FilledAmount.Sign() != 0, "has fills")
	bad(o.Status == order.PartiallyFilled && o.FilledAmount.Sign() == 0, "has no fills")
	bad((o.FilledAmount.Sign() == 0) != (o.FilledQuote == 0) || (o.FilledAmount.Sign() == 0) != o.AverageFillPrice.IsZero(), "fill figures differ")
	bad((o.Status == order.Rejected || o.Status == order.Canceled) != (o.Reason != ""), "reason")
	bad(o.CashAmount != 0 && o.FilledQuote > o.CashAmount, "spent too much")
	bad(o.Updated < o.Created || o.ReferenceID == "" || o.Broker == "", "missing")
	bad((o.TimeInForce == order.GTD) != (o.ExpireTime != 0), "expire time")
	bad(o.Type.Limited() == o.LimitPrice.IsZero(), "limit price")
	combo := o.Type == order.TakeProfitStopLoss
	bad((o.Type.Conditional() && !combo) == o.TriggerPrice.IsZero(), "trigger price")
	bad(combo == o.StopLossPrice.IsZero() || combo == o.TakeProfitPrice.IsZero(), "prices of the legs")
	bad(o.TriggerPriceType != o.Type.Trigger(), "trigger price type")
}

// checkState checks what must hold after every record.
func checkState(t fataler, s *State) {
	t.Helper()
	checkInstants(t, s)
	checkSessions(t, s)
	var money fixed.Money
	for _, b := range s.venue {
		money += b
	}
	var balances fixed.Wide
	for _, a := range s.registered {
		balances = balances.Add(a.balance.Wide().Abs())
	}
	if balances != s.balances {
		t.Fatalf("balances are %s without signs, and counted as %s", balances.Big(), s.balances.Big())
	}
	resting := 0
	for _, i := range s.listing {
		checkBook(t, s, i)
		checkStops(t, s, i)
		resting += i.book.Len()
		var sizes, long int64
		var costs fixed.Money
		var unsigned fixed.Wide
		for _, a := range s.holders() {
			h := a.on(i)
			sizes += h.size
			long += max(h.size, 0)
			costs += h.cost
			unsigned = unsigned.Add(h.cost.Wide().Abs())
			if h.size == 0 && h.cost != 0 {
				t.Fatalf("%s has no position and a cost of %s", a.code, h.cost)
			}
		}
		if sizes != 0 || long != i.openInterest {
			t.Fatalf("%s: sizes sum to %d, long %d, open interest %d", i.contract.Symbol, sizes, long, i.openInterest)
		}
		if unsigned != i.costs {
			t.Fatalf("%s: costs are %s without signs, and counted as %s", i.contract.Symbol, unsigned.Big(), i.costs.Big())
		}
		if costs+i.clearing != 0 {
			t.Fatalf("%s: costs %s and clearing %s", i.contract.Symbol, costs, i.clearing)
		}
	}
	live := 0
	for _, a := range s.holders() {
		if !a.isFund() { // whose money is among the venue's
			money += a.balance
		}
		live += a.liveOrders
		for o := range a.orders(nil) {
			if s.orders.Get(o.Code) != o {
				t.Fatalf("%s has an order that is not among the live ones", a.code)
			}
		}
		for _, h := range a.positions {
			checkList(t, h)
			checkReserves(t, h)
			for _, ahead := range []scalar.Time{0, scalar.Second, 10 * scalar.Second} {
				checkOverdue(t, s, h, s.time+ahead)
			}
		}
		var pending fixed.Money
		for _, w := range s.withdrawals {
			if w.account == a && w.transaction.Status == ledger.Pending {
				pending -= w.transaction.Amount
			}
		}
		if pending != a.pending {
			t.Fatalf("%s: pending withdrawals are %s, not %s", a.code, pending, a.pending)
		}
	}
	if money != 0 {
		t.Fatalf("all balances sum to %s", money)
	}
	if s.fund.balance != s.venue[ledger.Insurance] {
		t.Fatalf("the insurance fund has %s, its account %s", s.fund.balance, s.venue[ledger.Insurance])
	}
	checkFailing(t, s)
	checkObligations(t, s)
	if live != s.orders.Len() || resting > live {
		t.Fatalf("%d live orders, %d by account, %d resting", s.orders.Len(), live, resting)
	}
}

// checkFailing looks at every account, which the engine does not: those with less equity than maintenance margin, and no
// others, are on the due list, wait or were set aside; and every open position of a customer is watched at its place.
func checkFailing(t fataler, s *State) {
	t.Helper()
	waiting := 0
	for _, a := range s.registered {
		m := s.standing(a, 0, nil)
		if lacks := m.Lacks(); lacks != (a.failing != nil) {
			t.Fatalf("%s has %s and needs %s, and is to be liquidated: %t", a.code, m.Equity().Capped(), m.Maintenance.Capped(), a.failing != nil)
		}
		if a.waits {
			waiting++
		}
		if e := a.failing; e != nil {
			aside := slices.ContainsFunc(s.aside, func(x asideEntry) bool { return x.dueEntry == e })
			can := s.canLiquidate(a)
			if listed := e.Queued(); listed != (can && !aside) || a.waits != (!can && !aside) {
				t.Fatalf("%s is to be liquidated: listed %t, waits %t, set aside %t, can be %t", a.code, listed, a.waits, aside, can)
			}
		}
		for _, h := range a.positions {
			for kind, figure := range [thresholdKinds]int64{h.instrument.mark, h.instrument.cumulativeFunding} {
				b := h.thresholds[kind]
				if (b.list != nil) != (h.size != 0) || b.list != nil && b.list.Entries()[b.index] != h {
					t.Fatalf("%s on %s has its bound %d at the wrong place", a.code, h.instrument.contract.Symbol, kind)
				}
				if b.list != nil && (b.list.Order.above && figure > b.last || !b.list.Order.above && figure < b.last) {
					t.Fatalf("%s on %s: %d has passed the bound %d, and nobody looked", a.code, h.instrument.contract.Symbol, figure, b.last)
				}
			}
		}
	}
	checkRankings(t, s)
	if waiting != len(s.waiting) {
		t.Fatalf("%d accounts wait, %d are listed", waiting, len(s.waiting))
	}
}

// checkRankings holds the rankings that are kept against new ones.
func checkRankings(t fataler, s *State) {
	t.Helper()
	for _, i := range s.listing {
		for side, kept := range i.rankings {
			if kept == nil {
				continue
			}
			var want []*position
			for _, a := range s.registered {
				if h := a.on(i); h.size != 0 && sideOfSize(h.size > 0) == side {
					want = append(want, h)
				}
			}
			slices.SortFunc(want, func(a, b *position) int {
				x, y := a.asCounterparty(), b.asCounterparty()
				return cmp.Or(y.score.Cmp(x.score), cmp.Compare(a.account.code, b.account.code))
			})
			n := 0
			for c := range kept.InOrder() {
				if n >= len(want) || c.position != want[n] || *c != *want[n].asCounterparty() {
					t.Fatalf("%s: the ranking has %s at %d, with %v, not %v", i.contract.Symbol, c.position.account.code, n, *c, *want[min(n, len(want)-1)].asCounterparty())
				}
				n++
			}
			if n != len(want) {
				t.Fatalf("%s: the ranking has %d of %d", i.contract.Symbol, n, len(want))
			}
		}
	}
}

// checkBook checks that the book is uncrossed, sorted and adds up.
func checkBook(t fataler, s *State, i *instrument) {
	t.Helper()
	bid, ask := i.book.Best(book.Bid), i.book.Best(book.Ask)
	if bid != nil && ask != nil && bid.Price >= ask.Price {
		t.Fatalf("%s: crossed, bid %d, ask %d", i.contract.Symbol, bid.Price, ask.Price)
	}
	for _, side := range [2]book.Side{book.Bid, book.Ask} {
		for l := i.book.Best(side); l != nil; l = l.Worse() {
			amount, orders := int64(0), 0
			for o := l.Front(); o != nil; o = o.Next() {
				amount += o.Remaining
				orders++
				if s.orders.Get(o.Code) != o || o.Price != l.Price || o.Remaining <= 0 {
					t.Fatalf("an order rests wrongly: %+v", o)
				}
			}
			if amount != l.Amount || orders != l.Orders || orders == 0 {
				t.Fatalf("level %d: %d in %d orders, not %d in %d", l.Price, amount, orders, l.Amount, l.Orders)
			}
			if w := l.Worse(); w != nil && !side.Better(l.Price, w.Price) {
				t.Fatalf("levels %d and %d are in the wrong order", l.Price, w.Price)
			}
		}
	}
}

// checkStops checks that what waits for prices on an instrument stands where it should, and that its triggers are on the
// due list as long as a stop is to fire.
func checkStops(t fataler, s *State, i *instrument) {
	t.Helper()
	listed := make(map[*stop]int)
	for n := range i.triggerIndexes {
		w := &i.triggerIndexes[n]
		if w.low != 0 && !i.isDue() {
			t.Fatalf("%s: a bound of %d to %d, and nothing is due", i.contract.Symbol, w.low, w.high)
		}
		for l := range w.each() {
			listed[l.Value]++
			if o := l.Value.order; s.orders.Get(o.Code) != o || o.Value.stop != l.Value || o.Resting() || !l.Value.fired.IsZero() || l.Value.triggerIndex() != w {
				t.Fatalf("%s waits wrongly: %+v", o.Code, *l.Value)
			}
		}
	}
	for _, a := range s.registered {
		for o := range a.orders(i) {
			want := 0
			if o.Value.untriggered() && o.Value.stop.held == "" {
				want = 1
				if o.Value.kind == order.TakeProfitStopLoss {
					want = 2
				}
			}
			if o.Value.kind.Conditional() != (o.Value.stop != nil) || listed[o.Value.stop] != want {
				t.Fatalf("%s is listed %d times, not %d", o.Code, listed[o.Value.stop], want)
			}
			delete(listed, o.Value.stop)
		}
	}
	due := i.isDue() && i.status() == market.Open
	if len(listed) > 0 || due != (i.triggers != nil) || due != slices.Contains(s.due.blocking.Entries(), i.triggers) || i.isDue() != slices.Contains(s.firing, i) {
		t.Fatalf("%s: %d stops of nobody, due %t, on the list %t", i.contract.Symbol, len(listed), due, i.triggers != nil)
	}
}

// checkList checks that the position's orders hang together in both directions, are its own and in order of arrival, and
// are as many as are counted.
func checkList(t fataler, h *position) {
	t.Helper()
	orders, before := 0, (*resting)(nil)
	for o := h.orders.first; o != nil; o = o.Value.inPosition.after {
		if o.Value.position != h || o.Value.inPosition.before != before || before != nil && before.Value.created > o.Value.created {
			t.Fatalf("%s on %s: an order hangs wrongly in the list: %+v", h.account.code, h.instrument.contract.Symbol, o)
		}
		orders, before = orders+1, o
	}
	if before != h.orders.last || orders != h.orders.length {
		t.Fatalf("%s on %s: %d orders hang in the list, %d are counted", h.account.code, h.instrument.contract.Symbol, orders, h.orders.length)
	}
}

// checkReserves computes anew what the position's orders reserve.
func checkReserves(t fataler, h *position) {
	t.Helper()
	var bids, asks fixed.Money
	reducing := 0
	for o := range h.account.orders(nil) {
		if o.Value.position == h {
			b, a := reserve(o)
			bids, asks = bids+b, asks+a
			if o.Value.reduceOnly && (o.Resting() || o.Value.untriggered()) {
				reducing++
				if o.Remaining > reducible(h.size, action(o.Side)) {
					t.Fatalf("%s: a reduce-only order of %d on a position of %d", h.account.code, o.Remaining, h.size)
				}
			}
		}
	}
	if bids != h.bids || asks != h.asks || reducing != len(h.reduceOnly) || reducing > MaxReduceOnly {
		t.Fatalf("%s on %s: reserves %s and %s, %d reduce-only; recomputed %s and %s, %d", h.account.code, h.instrument.contract.Symbol,
			h.bids, h.asks, len(h.reduceOnly), bids, asks, reducing)
	}
}

// checkOverdue computes anew what the position's orders past their time reserve.
func checkOverdue(t fataler, s *State, h *position, now scalar.Time) {
	t.Helper()
	var bids, asks fixed.Money
	for o := range h.account.orders(nil) {
		if o.Value.position == h && isOverdue(o, now) {
			b, a := reserve(o)
			bids, asks = bids+b, asks+a
		}
	}
	if b, a := s.overdue(h, now); b != bids || a != asks {
		t.Fatalf("%s on %s: %s and %s are overdue, not %s and %s", h.account.code, h.instrument.contract.Symbol, bids, asks, b, a)
	}
}
