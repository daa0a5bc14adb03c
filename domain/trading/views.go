package trading

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// Customer is a registered customer account.
type Customer struct {
	Code    string
	Broker  string
	Name    string
	Created scalar.Time
}

// Level is the total amount that rests at one price.
type Level struct {
	Price  fixed.Decimal
	Amount fixed.Decimal
}

// Instruments returns the listed instruments, in the order of their listing, with the operator's status.
func (s *State) Instruments() []market.Instrument {
	out := make([]market.Instrument, 0, len(s.listing))
	for _, i := range s.listing {
		if i.contract.Status != market.Withdrawn {
			out = append(out, i.contract.Instrument)
		}
	}
	return out
}

// Instrument returns an instrument, withdrawn or not.
func (s *State) Instrument(symbol string) (market.Instrument, bool) {
	if i := s.instruments[symbol]; i != nil {
		return i.contract.Instrument, true
	}
	return market.Instrument{}, false
}

// Listed returns when an instrument was listed, or zero if it never was.
func (s *State) Listed(symbol string) scalar.Time {
	if i := s.instruments[symbol]; i != nil {
		return i.created
	}
	return 0
}

// Contract returns an instrument with its conversions between decimals, ticks, steps and money, or nil.
func (s *State) Contract(symbol string) *market.Contract {
	if i := s.instruments[symbol]; i != nil {
		return i.contract
	}
	return nil
}

// Status returns the status in force on an instrument: the stricter of the operator's setting and the automatic guard.
func (s *State) Status(symbol string) (market.Status, bool) {
	if i := s.instruments[symbol]; i != nil {
		return i.status(), true
	}
	return "", false
}

// Customer returns a customer.
func (s *State) Customer(code string) (Customer, bool) {
	if a := s.accounts[code]; a != nil {
		return a.customer(), true
	}
	return Customer{}, false
}

func (a *account) customer() Customer { return Customer{a.code, a.broker, a.name, a.created} }

// CustomerBroker returns the broker that a customer belongs to.
func (s *State) CustomerBroker(code string) (string, bool) {
	if a := s.accounts[code]; a != nil {
		return a.broker, true
	}
	return "", false
}

// CustomersOf returns a broker's customers in the order of their registration; all customers for "".
func (s *State) CustomersOf(broker string) []Customer {
	out := []Customer{}
	for _, a := range s.of(broker) {
		out = append(out, a.customer())
	}
	return out
}

// Order returns a live order.
func (s *State) Order(code scalar.ID) (order.Order, bool) {
	if o := s.orders.Get(code); o != nil {
		return orderView(o), true
	}
	return order.Order{}, false
}

// OpenOrders returns the live orders of a customer or of the insurance fund in the order of account.orders.
func (s *State) OpenOrders(customer string) []order.Order {
	out := []order.Order{}
	s.EachOpenOrder(customer, func(o *order.Order, _ int64) { out = append(out, *o) })
	return out
}

// EachOpenOrder calls see with a customer's live orders in order of arrival, each with the sequence of the last record
// that changed it.
func (s *State) EachOpenOrder(customer string, see func(o *order.Order, sequence int64)) {
	if a := s.holder(customer); a != nil {
		for o := range a.orders(nil) {
			v := orderView(o)
			see(&v, o.Value.sequence)
		}
	}
}

// Depth returns the best n levels of each side, bids descending, asks ascending. If n is below 1 it returns all levels.
func (s *State) Depth(symbol string, n int) (bids, asks []Level) {
	bids, asks = []Level{}, []Level{}
	if i := s.instruments[symbol]; i != nil {
		bids, asks = i.depth(book.Bid, n), i.depth(book.Ask, n)
	}
	return bids, asks
}

func (i *instrument) depth(side book.Side, n int) []Level {
	out := []Level{}
	for l := i.book.Best(side); l != nil && (n < 1 || len(out) < n); l = l.Worse() {
		out = append(out, Level{i.contract.Price(l.Price), i.contract.Amount(l.Amount)})
	}
	return out
}

// BestBidAsk returns the best level of each side, zero for an empty side.
func (s *State) BestBidAsk(symbol string) (bid, ask Level) {
	if i := s.instruments[symbol]; i != nil {
		if l := i.book.Best(book.Bid); l != nil {
			bid = Level{i.contract.Price(l.Price), i.contract.Amount(l.Amount)}
		}
		if l := i.book.Best(book.Ask); l != nil {
			ask = Level{i.contract.Price(l.Price), i.contract.Amount(l.Amount)}
		}
	}
	return bid, ask
}

// MarkPrice returns the mark price, zero before the first index price.
func (s *State) MarkPrice(symbol string) fixed.Decimal {
	if i := s.instruments[symbol]; i != nil && i.mark != 0 {
		return i.contract.MarkPrice(i.mark)
	}
	return fixed.Decimal{}
}

// IndexPrice returns the last index price and the time at which it was set, or zero before the first.
func (s *State) IndexPrice(symbol string) (fixed.Decimal, scalar.Time) {
	if i := s.instruments[symbol]; i != nil && i.indexPrice != 0 {
		return i.contract.IndexPrice(i.indexPrice), i.indexTime
	}
	return fixed.Decimal{}, 0
}

// IndexStale reports whether the index price is too old to be used.
func (s *State) IndexStale(symbol string) bool {
	i := s.instruments[symbol]
	return i != nil && i.stale
}

// Funding returns the rate, with 8 decimals, at which the current interval would be charged if it ended now, and when
// it ends. It returns false before the first index price.
func (s *State) Funding(symbol string) (estimate fixed.Decimal, next scalar.Time, ok bool) {
	i := s.instruments[symbol]
	if i == nil || i.funding == nil {
		return fixed.Decimal{}, 0, false
	}
	return market.Rate(i.contract.FundingRate(i.premiums)), i.funding.Time, true
}

// LastPrice returns the price of the last trade, zero before the first.
func (s *State) LastPrice(symbol string) fixed.Decimal {
	if i := s.instruments[symbol]; i != nil && i.last != 0 {
		return i.contract.Price(i.last)
	}
	return fixed.Decimal{}
}

// OpenInterest returns the number of contracts that are held long, which equals the number held short.
func (s *State) OpenInterest(symbol string) fixed.Decimal {
	if i := s.instruments[symbol]; i != nil {
		return i.contract.Amount(i.openInterest)
	}
	return fixed.Decimal{}
}

// Balance returns a customer's balance: the sum of all completed transactions.
func (s *State) Balance(customer string) (fixed.Money, bool) {
	if a := s.accounts[customer]; a != nil {
		return a.balance, true
	}
	return 0, false
}

// VenueBalance returns the balance of one of the venue's own accounts.
func (s *State) VenueBalance(a ledger.Account) fixed.Money { return s.venue[a] }

// Withdrawal returns a withdrawal after its last record.
func (s *State) Withdrawal(code scalar.ID) (ledger.Transaction, bool) {
	if w := s.withdrawals[code]; w != nil {
		return w.transaction, true
	}
	return ledger.Transaction{}, false
}

// Time returns the time of the last record.
func (s *State) Time() scalar.Time { return s.time }

// DueEntries returns up to n entries of the due list after the first ones, in the order in which they will be done, and
// the number of all entries. It implements decide.Agenda.
func (s *State) DueEntries(first, n int) ([]decide.DueEntry, int) {
	turn := func(e *dueEntry) int {
		switch {
		case e.Kind == dueTask:
			return 0
		case e.Time <= s.time && dueTable[e.Kind].urgency == decide.Blocking:
			return 1
		}
		return 2 // everything else, in the order of time
	}
	all := s.due.all()
	slices.SortFunc(all, func(a, b *dueEntry) int { return cmp.Or(cmp.Compare(turn(a), turn(b)), schedule.Compare(a, b)) })
	first = min(first, len(all))
	out := []decide.DueEntry{}
	for _, e := range all[first:min(first+n, len(all))] {
		out = append(out, decide.DueEntry{Entry: e.name(), Time: e.Time, Urgency: dueTable[e.Kind].urgency})
	}
	return out, len(all)
}

// SetAsideEntries returns the due work that failed and waits for an operator to put it back, in the order in which it
// was set aside. It implements decide.Agenda.
func (s *State) SetAsideEntries() []decide.DueEntry {
	out := []decide.DueEntry{}
	for _, e := range s.aside {
		out = append(out, decide.DueEntry{Entry: e.name(), Time: e.Time, Urgency: dueTable[e.Kind].urgency, Error: e.cause})
	}
	return out
}

// NamesDueWork reports whether a name has the form of a due entry's name. It implements decide.Agenda.
func (s *State) NamesDueWork(entry string) bool {
	kind, _, ok := strings.Cut(entry, "/")
	return ok && slices.Contains(dueWorks(), Work(kind))
}

// FeeProfile has a customer's fees on an instrument, in basis points.
type FeeProfile struct {
	Symbol   string
	MakerFee fixed.Decimal
	TakerFee fixed.Decimal
}

// FeeProfile returns a customer's fees on every listed instrument: the customer's own or the defaults.
func (s *State) FeeProfile(customer string) ([]FeeProfile, bool) {
	a := s.accounts[customer]
	if a == nil {
		return nil, false
	}
	out := []FeeProfile{}
	for _, i := range s.listing {
		if i.contract.Status == market.Withdrawn {
			continue
		}
		maker, taker := a.on(i).fees()
		out = append(out, FeeProfile{i.contract.Symbol, market.FeePoints(maker), market.FeePoints(taker)})
	}
	return out, true
}

// actionOf returns the action of a trade of signed steps.
func actionOf(steps int64) order.Action {
	if steps > 0 {
		return order.Buy
	}
	return order.Sell
}

// action returns the action of the orders on a side.
func action(s book.Side) order.Action {
	if s == book.Bid {
		return order.Buy
	}
	return order.Sell
}

func sideOf(a order.Action) book.Side {
	if a == order.Buy {
		return book.Bid
	}
	return book.Ask
}

// Holds reports whether a customer has an open position on an instrument.
func (s *State) Holds(customer, symbol string) bool {
	h := s.existing(customer, symbol)
	return h != nil && h.size != 0
}

// NeedsMargin reports whether a customer has an open position on an instrument, or resting orders that reserve margin.
func (s *State) NeedsMargin(customer, symbol string) bool {
	h := s.existing(customer, symbol)
	return h != nil && (h.size != 0 || h.bids != 0 || h.asks != 0)
}

// existing returns a customer's position on an instrument, open or not, or nil.
func (s *State) existing(customer, symbol string) *position {
	if a := s.accounts[customer]; a != nil {
		for _, h := range a.positions {
			if h.instrument.contract.Symbol == symbol {
				return h
			}
		}
	}
	return nil
}

// Held yields the symbols on which a customer has an open position.
func (s *State) Held(customer string) iter.Seq[string] {
	return func(yield func(string) bool) {
		a := s.accounts[customer]
		if a == nil {
			return
		}
		for _, h := range a.positions {
			if h.size != 0 && !yield(h.instrument.contract.Symbol) {
				return
			}
		}
	}
}
