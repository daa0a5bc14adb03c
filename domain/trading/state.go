// Package trading decides the commands of the journal "trading": customers and their accounts, instruments and their
// order books, orders, margin and money.
//
// A *State is the result of applying all records of the journal in order. Decide returns the events that a command
// causes, Step returns the events of the next due work (due.go), and Evolve applies the events of one record. Only
// Evolve changes the state. The read methods (views.go) serve readers of the journal; they may be called concurrently
// with each other, but not with Evolve.
//
// Internally, prices are int64 ticks, amounts are int64 steps, and money is int64 units of 10⁻⁸ USDC; package market
// defines how they relate. An event carries the full state of the subject after the record, in the terms of the public
// interface. A reader therefore needs only the last record that changed an order to show it, and Evolve takes balances
// from the events instead of computing them.
//
// # Where to start
//
// Start with commands.go and events*.go, which declare the inputs and the events. check.go, together with the table in
// package order, checks an order without the state of the market. admin.go, money.go, leverage.go, place.go, amend.go
// and cancel.go decide commands. match.go walks through the book, recordbuilder.go builds a record, and orderview.go
// makes the view of an order that events carry. stops.go has the orders that wait for a price, and triggers.go the
// lists of their prices and the bound of the prices reached. evolve.go and evolve_order.go apply records. margin.go
// computes margin, views.go answers queries, and codec*.go write and read snapshots. due.go has the table of due work and
// its queues (package schedule), and each due_*.go one kind of due work. whatif.go serves runs under other parameters, and
// foureyes.go describes the actions that may need two persons (decide.Core.Govern). opening.go imports balances and positions from
// another venue, and opening_build.go builds the record.
//
// # Prices, funding, risk
//
// Formulas that need no state are in packages market and margin, where they are tested alone. This package decides when
// a formula applies, to which accounts, and in which records:
//
//   - Mark price and stale guard: market (mark.go) has the median, its clamp and the window; prices.go has their inputs.
//     due_stale.go sets the guard. It blocks clients, and is due the instrument's IndexStaleSeconds after the index time.
//   - Funding: market (funding.go) has the premium, the rate and its cap. due_funding.go, which blocks clients, fixes the
//     rate and mark price of a funding charge for all positions. due_posting.go, which alternates with clients, posts it
//     account by account. A record that touches a position first posts everything that the position owes, and as much of
//     what the account owes on other instruments as fits the record. charges.go computes the amounts, houseaccounts.go posts them.
//   - Settlement: due_settlement.go, which blocks clients, fixes it; due_posting.go posts it.
//   - Liquidation: margin (liquidation.go) has the bankruptcy price, the step size, the fee and the deleveraging score.
//     bounds.go finds the accounts that a price brings below maintenance margin; margin (slack.go) computes its bounds.
//     due_liquidation.go, which blocks clients, liquidates an account step by step, one record each: first its orders, then
//     its positions through the book, then takeover.go (the insurance fund) or deleverage.go (the ranking). fund.go has the
//     fund's account, and due_insurance.go the orders that reduce the fund's positions.
//
// To add a kind of due work, add a row to dueTable, at its position in the order, and a file. To add an event, add its
// type and a row in eventTable, which names the method of fold that applies it. A new event that moves money must
// implement ledger.Posted, and one that changes positions PositionEvent: transaction rows, sockets and Evolve find them
// by these interfaces. To add a command, add a payload and a row in commandTable, which names the method of request that
// decides it; reconstruct.go says how the payload follows from the events.
package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Bounds of a record and of the memory of the state.
const (
	maxRecord  = 256 << 10 // bytes
	maxFills   = 100
	maxChanges = 64
	// maxCharges is about how many postings of unpaid charges a record begins with for each account that it touches.
	// With those of a taker, a maker and the insurance fund, the record still has room for a trade.
	maxCharges     = 32
	rulesSupported = rulesOfReasons // the newest rules that this build supports

	// MaxReduceOnly is the maximum number of reduce-only orders of a customer on an instrument, resting or untriggered.
	MaxReduceOnly = 20
	// MaxReferences is the maximum number of reference_ids of final orders that the state remembers for a customer.
	MaxReferences = 100_000
)

// Rules returns the rules of the trading journal.
func Rules() decide.Rules { return rules{} }

type rules struct{}

func (rules) Journal() string            { return "trading" }
func (rules) NewState() decide.State     { return NewState() }
func (rules) Registry() *decide.Registry { return eventTable.Registry() }
func (rules) Limit() int                 { return maxRecord }
func (rules) Newest() int                { return rulesSupported }

// State is the state of the trading journal after a record. Only Evolve changes it, by the methods of fold.
type State struct {
	decide.Facts
	core decide.Core
	time scalar.Time // of the last record
	markets
	customers
	orders book.Orders[live]
	recent recent
	money
	pendingWork
	statements
	openings
	connections
	limit bounds // bounds of a record
	lastRecord
	// sheet collects the calculations of a decision; nil, except in a copy that Arithmetic makes. It is not part of the state.
	sheet *arithmetic.Sheet
}

// markets are the instruments.
type markets struct {
	instruments map[string]*instrument
	listing     []*instrument // in the order of listing, withdrawn ones included
	firing      []*instrument // instruments with a stop to fire, in the order of listing
}

// customers holds all accounts, that of the insurance fund included.
type customers struct {
	accounts   map[string]*account
	registered []*account // in the order of registration
	// registeredOf holds the accounts of each broker, in the order of registration.
	registeredOf map[string][]*account
	fund         *account   // the insurance fund
	solvent      bool       // whether the fund had money after the last record
	waiting      []*account // accounts to liquidate when an instrument opens or the fund has money
	balances     fixed.Wide // sum of the absolute balances of all customers
}

// money holds the withdrawals and the balances of the venue's own accounts.
type money struct {
	withdrawals map[scalar.ID]*withdrawal
	venue       map[ledger.Account]fixed.Money
}

// pendingWork is the due work and the charges that steps have yet to post.
type pendingWork struct {
	due         agenda
	settlement  *dueEntry    // next settlement; nil before the first index price
	fixed       int64        // number of the last charge
	outstanding int          // charges that some position has not posted
	aside       []asideEntry // failed due work, in the order in which it was set aside
	running     *task        // running task, which is also on the agenda; nil for none
}

// connections are the sessions with orders that end with them.
type connections struct {
	sessions map[scalar.ID]*session
	gateways []*gateway // gateways that hold sessions, in the order of their first session
}

// lastRecord is what Evolve collects while it applies a record. No decision depends on it.
type lastRecord struct {
	tracking bool
	changes  []touchedLevel
	affected []*account // accounts that the record affects
	looks    int        // accounts that lookAround has looked at so far
	fold     fold       // the record that is being applied; used again for the next one
}

// NewState returns the state before the first record.
func NewState() *State {
	s := &State{
		core:    decide.NewCore(decide.Numbers{Newest: rulesSupported, Commitments: rulesOfInputs, FourEyes: rulesOfFourEyes, Reasons: rulesOfReasons, CheckpointKeys: rulesOfFourEyes}),
		limit:   recordBounds(),
		markets: markets{instruments: make(map[string]*instrument)},
		customers: customers{accounts: make(map[string]*account), registeredOf: make(map[string][]*account),
			fund: newFund()},
		money:       money{withdrawals: make(map[scalar.ID]*withdrawal), venue: make(map[ledger.Account]fixed.Money)},
		openings:    openings{bySHA: make(map[string]*OpeningImport)},
		connections: connections{sessions: make(map[scalar.ID]*session)},
	}
	s.Facts = &s.core
	return s
}

// instrument is a listed instrument with its book and prices.
type instrument struct {
	contract *market.Contract
	index    int         // position in State.listing
	created  scalar.Time // time of listing
	book     book.Book[live]
	mark     int64 // marks; 0 before the first index price
	prices
	last              int64 // ticks; 0 before the first trade
	openInterest      int64 // steps, one side
	clearing          fixed.Money
	costs             fixed.Wide // sum of the absolute costs of all positions
	holders           holders    // open positions
	charges           []*charge  // charges that some position has not posted, in the order in which they were fixed
	triggerIndexes    [len(watched)]triggerIndex
	stops             int64     // stops that were enqueued so far
	putBack           []*stop   // stops that an operator put back and that have not fired
	triggers          *dueEntry // set while a stop is due and the instrument is open
	open              bool      // whether the status was Open after the last record
	fundMoves         *dueEntry // set while the insurance fund's order must move
	bounds            thresholdHeaps
	rankings          [2]*ranking // long and short holders by deleveraging rank; nil unless cached
	cumulativeFunding int64       // marks × 10⁻⁸: cumulative funding since it last restarted at 0
}

func newInstrument(c *market.Contract, index int) *instrument {
	return &instrument{contract: c, index: index, bounds: newThresholdHeaps()}
}

// resting is a live order as the book holds it.
type resting = book.Order[live]

// live holds the data of a live order besides its price, side and remaining amount.
type live struct {
	instruction
	position    *position
	inPosition  links[resting]
	amount      int64 // steps
	filledQuote fixed.Money
	created     scalar.Time
	updated     scalar.Time
	sequence    int64 // of the last record that changed the order
	due         *dueEntry
	stop        *stop    // set for conditional types, fired or not; otherwise nil
	session     *session // session over which the order was placed; nil for none
}

// filled returns how many steps of the order have traded.
func filled(o *resting) int64 { return o.Value.amount - o.Remaining }

// account is a customer's account.
type account struct {
	code, broker, name    string
	created, updated      scalar.Time
	balance               fixed.Money
	pending               fixed.Money // withdrawals requested and not yet paid out
	leverage              int         // leverage of the default margins; 0 if they were set as percentages
	initialMargin         fixed.Decimal
	maintenanceMargin     fixed.Decimal
	initial               fixed.Rate
	maintenance           fixed.Rate
	positions             []*position // by instrument, in the order of listing
	liveOrders            int
	references            references
	transfers             map[string]transfer // deposits and withdrawals by reference
	cancelAllAfter        *dueEntry
	cancelAllAfterSeconds int
	failing               *dueEntry // set while equity is below maintenance margin
	opened                bool      // whether a file has brought its balance
	waits                 bool      // whether the account is in State.waiting
	deleveraging          *position // position that the next step continues to deleverage; nil for none
	affected              bool      // whether the account is in lastRecord.affected
}

// position is the position of an account on one instrument.
type position struct {
	account    *account
	instrument *instrument
	size       int64       // steps, signed
	cost       fixed.Money // signed
	bids, asks fixed.Money // notional of resting orders at their limit prices, without reduce-only orders
	leverage   int         // override of the initial margin; 0 for none
	ownFees    bool
	maker      int64 // own fees, in parts of 10⁸, where ownFees is set
	taker      int64
	orders     chain[resting, orderLinks] // live orders, in order of arrival
	reduceOnly []*resting                 // live reduce-only orders, in order of arrival
	updated    scalar.Time
	inHolders  links[position] // of an open position
	// posted is, for an open position, the number of the last charge that it has posted, or that was fixed before it was
	// opened.
	posted     int64
	lots       int64 // the lots that files have brought, one bit each
	began      int64 // steps: the absolute size when the account's liquidation began; 0 for none
	thresholds [thresholdKinds]threshold
	rank       rank
}

// fees returns the maker and taker fees in force, as parts of 10⁸.
func (h *position) fees() (maker, taker int64) {
	if h.ownFees {
		return h.maker, h.taker
	}
	return h.instrument.contract.Maker, h.instrument.contract.Taker
}

// floor returns the least initial margin rate: the rate of the override, or the account's default.
func (h *position) floor() fixed.Rate {
	if h.leverage != 0 {
		return fixed.Leverage(h.leverage)
	}
	return h.account.initial
}

// on returns the account's position on an instrument, or a new empty one that is not part of the state.
func (a *account) on(i *instrument) *position {
	for _, h := range a.positions {
		if h.instrument == i {
			return h
		}
	}
	return &position{account: a, instrument: i, ownFees: a.isFund()} // the fund pays no fees
}

// hold is like on, but adds a new position to the state. Only Evolve may call it.
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

// withdrawal is a withdrawal in any status.
type withdrawal struct {
	transaction ledger.Transaction
	account     *account
}

// transfer identifies the request of a remembered deposit or withdrawal, and its record.
type transfer struct {
	fingerprint string
	sequence    int64
}
