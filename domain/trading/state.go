// Package trading composes the venue's rules into one decider for the journal "trading": customers and their accounts,
// instruments and their books, orders, margin, money.
//
// A *State is the fold of the journal. Decide says what a command causes, as events; Evolve applies the events of a
// record; due work (due.go) is decided by Step. Only Evolve changes the state. The read methods (views.go) are for
// whoever follows the journal and may be called concurrently with each other, not with Evolve.
//
// Inside, prices are int64 ticks, amounts int64 steps, money int64 units of 10⁻⁸ USDC; package market says how they
// relate. What is in an event is always the state afterwards, in full, in the interface's own terms: whoever shows an
// order needs the one record that changed it last, and Evolve needs no arithmetic of its own for money.
//
// # Where things are
//
// commands.go and events*.go are what comes in and what is recorded; check.go, with the table in package order, what may
// be said of an order at all; admin.go, money.go, leverage.go, place.go, amend.go and cancel.go decide commands; match.go
// is the walk through the book, draft.go the record in the making, orderview.go what events show of it; stops.go is the
// orders that wait for a price, triggers.go their lists beside the book and the bound of the prices reached; evolve.go and
// evolve_order.go are the fold; margin.go is what accounts need and have, views.go what followers may ask; save.go and load.go
// are the snapshot. due.go is the table of due work, duelist.go its lists, and each due_*.go one kind of work.
//
// # Prices, funding, risk
//
// Arithmetic that needs no state stands in the packages that the field has words for, so that it is tested by its
// formulas alone. What decides when, for whom and in which records stands here, a file for each.
//
//   - Mark, stale guard: the median, its clamp and the window are market (mark.go); the inputs are prices.go; the guard is
//     due_stale.go, blocking, at index time plus the instrument's seconds.
//   - Funding: premium, rate and cap are market (funding.go). due_funding.go, blocking, fixes the instant, for all;
//     due_posting.go, alternating, posts it account by account, and whoever touches a position first posts what it owes, and
//     of what the account owes elsewhere as much as goes into the record: instants.go is what is owed, till.go how a record
//     posts it.
//   - Settlement: due_settlement.go, blocking, fixes it; its postings are those of due_posting.go.
//   - Liquidation: bankruptcy price, step size, the fee and the score of deleveraging are margin (liquidation.go).
//     bounds.go finds whom a price brings below, by bounds of which slack.go in margin says how far they are.
//     due_liquidation.go, blocking, takes an account to its end, a step a record: its orders, its steps through the book,
//     then takeover.go (the insurance fund) or deleverage.go (the ranking). fund.go is the fund's account, and
//     due_insurance.go its orders, with which it works its positions off.
//
// A new kind of due work is a line in dueTable, in its place in the order, and its file. A new event that moves money
// implements ledger.Posted, one that changes positions PositionEvent: rows, sockets and the fold find it by that. A new
// command is a payload with its three methods, and a line in Payloads.
package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Bounds of a record, and of what is remembered.
const (
	maxRecord  = 256 << 10 // bytes
	maxFills   = 100
	maxChanges = 64
	// maxDebts is about how many postings of one account a record that touches it begins with: with those of a taker, a
	// maker and the insurance fund there is still room for a trade.
	maxDebts       = 32
	rulesSupported = 2 // the newest that this build knows

	// MaxReduceOnly is how many reduce-only orders a customer may have on an instrument, resting or untriggered.
	MaxReduceOnly = 20
	// MaxReferences is how many reference_ids of final orders are remembered of a customer.
	MaxReferences = 100_000
)

// Rules returns the rules of the trading journal.
func Rules() decide.Rules { return rules{} }

type rules struct{}

func (rules) Journal() string            { return "trading" }
func (rules) NewState() decide.State     { return NewState() }
func (rules) Registry() *decide.Registry { return registry() }
func (rules) Limit() int                 { return maxRecord }
func (rules) Newest() int                { return rulesSupported }

// State is the fold of the trading journal.
type State struct {
	core        decide.Core
	time        scalar.Time // of the last record
	instruments map[string]*instrument
	listing     []*instrument // in the order of listing, withdrawn ones included
	accounts    map[string]*account
	registered  []*account // in the order of registration
	// registeredOf are those of each broker.
	registeredOf map[string][]*account
	fund         *account   // the insurance fund
	solvent      bool       // the fund had money when it was last looked at
	waiting      []*account // that are to be liquidated when an instrument opens or the fund has money
	orders       book.Orders[live]
	recent       recent
	withdrawals  map[scalar.ID]*withdrawal
	venue        map[ledger.Account]fixed.Money
	balances     fixed.Wide // of all customers, without their signs
	due          agenda
	settlement   *dueEntry     // nil before the first index price
	fixed        int64         // the number of the last instant
	outstanding  int           // instants that are not posted by all
	aside        []asideEntry  // due work that failed, in the order in which it was set aside
	running      *task         // which is on the agenda too; nil for none
	firing       []*instrument // with a stop to fire, in the order of listing
	sessions     map[scalar.ID]*session
	gateways     []*gateway // that hold sessions, in the order in which they opened one
	limit        bounds     // of a record
	tracking     bool
	changes      []touchedLevel
	affected     []*account // by the record that is being folded
	looks        int        // at accounts, so far
}

// NewState returns the state before the first record.
func NewState() *State {
	return &State{
		core:         decide.NewCore(rulesSupported),
		registeredOf: make(map[string][]*account),
		limit:        recordBounds(),
		instruments:  make(map[string]*instrument),
		accounts:     make(map[string]*account),
		fund:         newFund(),
		withdrawals:  make(map[scalar.ID]*withdrawal),
		venue:        make(map[ledger.Account]fixed.Money),
		sessions:     make(map[scalar.ID]*session),
	}
}

// instrument is a listed instrument with its book and prices.
type instrument struct {
	contract *market.Contract
	index    int         // in the listing
	created  scalar.Time // when it was listed
	book     book.Book[live]
	mark     int64 // marks; 0 before the first index price
	prices
	last         int64 // ticks; 0 before the first trade
	openInterest int64 // steps, one side
	clearing     fixed.Money
	costs        fixed.Wide // of all positions, without their signs
	holders      holders    // open positions
	instants     []*instant // that are not posted by all, in the order in which they were fixed
	watches      [len(watched)]watch
	stops        int64     // that began to wait so far
	putBack      []*stop   // that were set aside, and are to fire
	triggers     *dueEntry // while a stop is to fire and the instrument is open
	open         bool      // what the status was when it was last looked at
	fundMoves    *dueEntry // while the insurance fund's order is to be moved
	bounds       boundLists
	rankings     [2]*ranking // of those who are long and short, while they are kept
	levy         int64       // marks × 10⁻⁸: the sum of mark × rate of all funding instants, as far back as it matters
}

func newInstrument(c *market.Contract, index int) *instrument {
	return &instrument{contract: c, index: index, bounds: newBoundLists()}
}

// resting is a live order with its place in the book.
type resting = book.Order[live]

// live is what is kept of a live order beside price, side and what remains of it.
type live struct {
	position    *position
	prev, next  *resting // of the position, in order of arrival
	amount      int64    // steps
	filledQuote fixed.Money
	cash        fixed.Money // of a cash order that sweeps
	created     scalar.Time
	updated     scalar.Time
	sequence    int64  // of the record that changed it last
	reference   string // "" for the code
	due         *dueEntry
	stop        *stop    // of the types that wait for a price, fired or not
	session     *session // over which it was placed; nil for none
	kind        order.Type
	tif         order.TimeInForce
	postOnly    bool
	reduceOnly  bool
}

// filled returns how many steps of the order have traded.
func filled(o *resting) int64 { return o.Value.amount - o.Remaining }

// account is a customer's account.
type account struct {
	code, broker, name string
	created, updated   scalar.Time
	balance            fixed.Money
	pending            fixed.Money // withdrawals requested and not yet paid out
	leverage           int         // of the default margins; 0 where percentages were given
	initialMargin      fixed.Decimal
	maintenanceMargin  fixed.Decimal
	initial            fixed.Rate
	maintenance        fixed.Rate
	positions          []*position // by instrument, in the order of listing
	liveOrders         int
	references         references
	transfers          map[string]transfer // deposits and withdrawals by reference
	deadMan            *dueEntry
	deadManSeconds     int
	failing            *dueEntry // while equity is below maintenance margin
	waits              bool      // is among those that wait
	deleveraging       *position // whose rest the next record goes on with: the last one was full
	affected           bool      // by the record that is being folded
}

// position is what an account has on one instrument.
type position struct {
	account     *account
	instrument  *instrument
	size        int64       // steps, signed
	cost        fixed.Money // signed
	bids, asks  fixed.Money // what rests, at its limit prices, without reduce-only orders
	leverage    int         // override; 0 for none
	ownFees     bool
	maker       int64 // fees as parts of 10⁸, where ownFees is set
	taker       int64
	first, last *resting // live orders in order of arrival
	liveOrders  int
	reduceOnly  []*resting // live ones, in order of arrival
	updated     scalar.Time
	// Of an open position: its neighbours among the instrument's holders, and the last instant that it posted or was not
	// there for.
	before, behind *position
	posted         int64
	began          int64 // steps: the size when the account's liquidation began
	bounds         [boundKinds]bound
	rank           rank
}

// fees returns the maker and taker fees in force, as parts of 10⁸.
func (h *position) fees() (maker, taker int64) {
	if h.ownFees {
		return h.maker, h.taker
	}
	return h.instrument.contract.Maker, h.instrument.contract.Taker
}

// floor is the least initial margin rate: the override's, or the account's default.
func (h *position) floor() fixed.Rate {
	if h.leverage != 0 {
		return fixed.Leverage(h.leverage)
	}
	return h.account.initial
}

// on returns the account's position on an instrument, or an empty one that is not part of the state.
func (a *account) on(i *instrument) *position {
	for _, h := range a.positions {
		if h.instrument == i {
			return h
		}
	}
	return &position{account: a, instrument: i, ownFees: a.isFund()} // the fund pays none
}

// hold is on for Evolve: it makes the position part of the state.
func (a *account) hold(i *instrument) *position {
	at := len(a.positions)
	for n, h := range a.positions {
		if h.instrument == i {
			return h
		}
		if h.instrument.index > i.index {
			at = n
			break
		}
	}
	h := &position{account: a, instrument: i, ownFees: a.isFund()}
	a.positions = append(a.positions, nil)
	copy(a.positions[at+1:], a.positions[at:])
	a.positions[at] = h
	return h
}

// withdrawal is a withdrawal that was requested.
type withdrawal struct {
	transaction ledger.Transaction
	account     *account
}

// transfer is a remembered deposit or withdrawal.
type transfer struct {
	fingerprint string
	sequence    int64
}
