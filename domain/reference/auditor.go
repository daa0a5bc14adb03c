package reference

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
)

// Auditor checks one trading journal. Use New to create one.
type Auditor struct {
	sequence int64
	tip      [sha256.Size]byte
	now      moment

	customers
	trading
	timetable
	governance
	fourEyes
	imported

	Seen Seen
	// Single says that the owner decided the next record with a single due entry, after a larger step had failed. From rules 3
	// on the record says so. Before, the caller may set it.
	Single bool

	r *reading
}

// customers holds the accounts and their money.
type customers struct {
	accounts    map[string]*account
	everybody   []*account // in the order of registration
	fund        *account
	venue       map[string]int64 // balances of the venue's accounts by name
	funding     int64            // the sum of the postings to the funding account for instants that some accounts have not posted
	withdrawals map[string]*withdrawal
	owed        *owed // after the last record that fixed funding; nil before the first
	lastStated  int64 // the record that the last statement of liabilities is about
}

// trading holds the instruments and the orders.
type trading struct {
	instruments map[string]*instrument
	listing     []*instrument
	orders      map[string]*order // live orders by code
	final       map[string]bool
	arrivals    int64 // the number of orders and stops so far; orders by arrival
	expiries    expiries
	gateways    map[string]moment
	sessions    map[string]*session
}

// timetable holds the work that falls due.
type timetable struct {
	instants   []*instant
	settlement moment // the next settlement; 0 before the first index price
	task       *task
	stepped    bool   // since the last step, no command was decided while alternating work was due
	steps      []step // the steps of alternating work that may be in flight
	stepBytes  int    // of steps
}

// governance holds the rules in force and the keys.
type governance struct {
	rules      int                        // the number of the rules in force; 0 before the first activation
	generation int                        // of the venue's secret; 0 before the first rotation
	logKeys    map[string]keyRotatedShape // the last rotation of the key of each transparency log
}

// imported holds what files have brought.
type imported struct {
	files map[string]bool // their hashes
	lots  map[string]bool // the lots of positions, and the balances
}

// Seen counts what happened in the audited records. A test uses it to assert that its scenario covered enough.
type Seen struct {
	Records, Steps, Trades, Liquidations, Takeovers, Deleveraged, Fired, Expired, Funding, Settlement, MadeUp, Stale int
	Missed, Sweeps, SelfTrades, PriceProtected, Marks, Premiums, Rejected, Amended, Stated, Confirmed, Opened        int
}

// UncoveredError says that a record is about something that the model does not have, so that it can check neither this record
// nor any later one.
type UncoveredError struct {
	Sequence int64
	Event    string // the type
}

// Error names the record and the event.
func (e *UncoveredError) Error() string {
	return fmt.Sprintf("record %d: the model does not cover %s", e.Sequence, e.Event)
}

// brokenRule is a broken rule. The audit panics with it and Check returns it as an error.
type brokenRule string

// New returns an auditor for a journal, before its first record.
func New() *Auditor {
	a := &Auditor{sequence: -1,
		customers:  customers{accounts: make(map[string]*account), venue: make(map[string]int64), withdrawals: make(map[string]*withdrawal)},
		trading:    trading{instruments: make(map[string]*instrument), orders: make(map[string]*order), final: make(map[string]bool), gateways: make(map[string]moment), sessions: make(map[string]*session)},
		governance: governance{logKeys: make(map[string]keyRotatedShape)},
		imported:   imported{files: make(map[string]bool), lots: make(map[string]bool)}}
	a.fund = &account{code: "insurance-fund", isFund: true, initial: rate{0, 1}, maintenance: rate{0, 1}, orders: make(map[string]*order)}
	return a
}

// reading is the state of the audit of one record.
type reading struct {
	record
	bytes   int
	views   map[string]*orderView // the states of the record's orders after it, by code
	fills   map[string]*fills     // the fills of the record's orders in this record, by code
	work    string                // the kind of the step; "" for a client's command
	touched map[*account]bool
	posted  map[*account]int // how many instants each account posted in this record
	due     due
	resumed *task // the task that was running before the record
	done    *workShape
	session *accountShape
	judged  *judgement
	fires   *order // the stop that fired
	others  int    // how many orders changed without a trade
	funded  moment // the last instant of funding that the record fixes; 0 for none
	opening *opening

	// State of a liquidation step: the account, the code of the closing order, the bankruptcy price in ticks, the
	// accounts that must receive the rest of the position, and how many of them already have.
	about   *account
	closing string
	price   int64
	heirs   []heir
	handed  int
	on      *position
}

// orderView is the state of an order after the record, with the type of the order's event and the index of the event in
// the record.
type orderView struct {
	orderShape
	event string
	index int
}

// fills sums the fills of one order in one record.
type fills struct{ steps, quote int64 }

// must fails the audit with a message unless ok is true.
func must(ok bool, format string, args ...any) {
	if !ok {
		panic(brokenRule(fmt.Sprintf(format, args...)))
	}
}

// Check audits the value of the next record. It returns an error that names the record and the broken rule. After an
// error, the Auditor must not be used.
func (a *Auditor) Check(value []byte) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case brokenRule:
			err = fmt.Errorf("record %d: %s", a.sequence, string(p))
		case *UncoveredError:
			err = p
		default:
			panic(p)
		}
	}()
	a.read(value)
	return nil
}

func (a *Auditor) read(value []byte) {
	r := &reading{bytes: len(value), views: make(map[string]*orderView), fills: make(map[string]*fills), touched: make(map[*account]bool), posted: make(map[*account]int), resumed: a.task}
	if err := json.Unmarshal(value, &r.record); err != nil {
		panic(brokenRule(fmt.Sprintf("it can't be read: %v", err)))
	}
	a.r = r
	a.sequence++
	must(r.Sequence == a.sequence, "its sequence is %d", r.Sequence)
	must(r.Prev == hex.EncodeToString(a.tip[:]), "prev is not the hash of the record before")
	must(r.Time >= a.now, "its time is before that of the record before")
	must(len(value) <= 256<<10, "it has %d bytes", len(value))
	a.tip, a.now = sha256.Sum256(value), r.Time
	a.Seen.Records++
	if strings.HasPrefix(r.Command.Type, "journal.") {
		a.ownerChanged()
		return
	}
	must(len(r.Events) > 0, "it has no events")
	if input := r.Command.Data.Input; len(input) > 0 && r.Command.Actor.System == "engine" && parse[stepShape](input).Single {
		defer func(before bool) { a.Single = before }(a.Single)
		a.Single = true
	}
	a.views()
	a.turn()
	a.governed()
	for n, e := range r.Events {
		a.event(n, e.Type, e.Data)
	}
	a.finishOpening()
	a.finishOrders()
	a.finishLiquidation()
	a.finishJudgement()
	a.afterwards()
	if r.funded != 0 {
		a.owe(r.funded)
	}
}

// parse decodes the data of an event.
func parse[T any](data []byte) *T {
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		panic(brokenRule(fmt.Sprintf("an event can't be read: %v: %s", err, data)))
	}
	return v
}

// views decodes the events of orders before all other events, since a trade may come before the events of the two
// orders.
func (a *Auditor) views() {
	r := a.r
	for n, e := range r.Events {
		if name, ok := strings.CutPrefix(e.Type, "order."); ok {
			v := &orderView{*parse[orderShape](e.Data), name, n}
			must(r.views[v.Code] == nil, "two events of the order %s", v.Code)
			r.views[v.Code] = v
		}
	}
	if r.Events[0].Type == "engine.step" {
		r.work = parse[workShape](r.Events[0].Data).Work
		must(r.Command.Type == "engine.step" && r.Command.Actor.System == "engine", "a step is %s of %s", r.Command.Type, r.Command.Actor.System)
		a.Seen.Steps++
		if r.work == "set_aside" { // due work whose step failed, which the model cannot tell
			panic(&UncoveredError{a.sequence, "due.set_aside"})
		}
	}
}

// event checks an event against the rules and applies it.
func (a *Auditor) event(n int, name string, data []byte) {
	switch name {
	case "engine.step":
		must(n == 0, "a step inside of a record")
	case "customer.registered":
		a.register(parse[accountShape](data).CustomerCode)
	case "instrument.listed":
		a.list(parse[instrumentShape](data))
	case "instrument.changed", "instrument.delisted":
		a.change(parse[instrumentShape](data), name == "instrument.delisted")
	case "deposit.completed":
		a.deposit(parse[transactionShape](data))
	case "withdrawal.requested", "withdrawal.completed", "withdrawal.canceled":
		a.withdrawal(parse[transactionShape](data))
	case "insurance.deposited":
		e := parse[accountShape](data)
		a.settled(a.fund, nil)
		a.named(e.ReferenceID, e.Code)
		a.openedBalance(a.fund, e.Amount.v, e.ReferenceID)
		a.post(e.Postings, []movement{{a.fund, "", "insurance", e.Amount.v}, {nil, "external", "insurance", -e.Amount.v}})
	case "insurance.paid":
		a.madeUp(parse[accountShape](data))
	case "fee_profile.set", "margin_profile.set", "leverage.set", "leverage.changed":
		a.settings(name, parse[accountShape](data))
	case "index.updated":
		a.index(parse[indexShape](data))
	case "guard.set":
		a.guard(parse[guardShape](data))
	case "funding.fixed":
		e := parse[fundingShape](data)
		a.r.funded = max(a.r.funded, e.Timestamp)
		a.fundingFixed(e)
	case "settlement.fixed":
		a.settlementFixed(parse[settlementShape](data))
	case "funding.posted", "settlement.posted":
		a.posted(name == "funding.posted", parse[debtShape](data))
	case "trade.executed":
		a.trade(parse[tradeShape](data))
	case "rules.activated":
		e := parse[rulesShape](data)
		must(e.Rules == max(a.rules, 1)+1, "rules %d are activated after rules %d", e.Rules, max(a.rules, 1))
		a.rules = e.Rules
	case "commitment.rotated":
		e := parse[rotatedShape](data)
		must(a.rules >= 3, "a generation is put in force under rules %d", a.rules)
		must(e.Generation == a.generation+1, "generation %d comes after %d", e.Generation, a.generation)
		a.generation = e.Generation
	case "commitment.disclosed":
		e := parse[disclosedShape](data)
		must(a.rules >= 3 && e.From >= 0 && e.From <= e.To, "the keys of %d to %d are disclosed under rules %d", e.From, e.To, a.rules)
	case "checkpoint_key.rotated":
		a.keyRotated(*parse[keyRotatedShape](data))
	case "four_eyes.set":
		a.setPolicy(parse[policyShape](data))
	case "proposal.made":
		a.propose(parse[proposalShape](data))
	case "proposal.confirmed", "proposal.rejected", "proposal.withdrawn", "proposal.voided":
		a.endProposal(n, strings.TrimPrefix(name, "proposal."), parse[proposalShape](data))
	case "opening.imported":
		a.openingImported(n, parse[openingShape](data))
	case "position.opened":
		a.positionOpened(parse[openedShape](data))
	case "liabilities.recorded":
		a.stated(parse[statedShape](data))
	case "trigger.fired":
		a.fired(parse[firedShape](data))
	case "work.started", "work.finished":
		a.works(name == "work.started", parse[workShape](data))
	case "cancel_all_after.set", "cancel_all_after.fired":
		e := parse[accountShape](data)
		c := a.customer(e.CustomerCode)
		must(name != "cancel_all_after.fired" || c.deadMan != 0 && c.deadMan <= a.now, "the switch of %s goes off at %d", c.code, c.deadMan)
		c.deadMan = e.ExpiresAt
	case "due.put_back": // what the model does not know to be set aside
		panic(&UncoveredError{a.sequence, name})
	case "session.opened", "gateway.seen", "gateway.lost", "session.ended", "session.swept":
		a.session(name, parse[accountShape](data))
	default:
		// Every event of an order contains the whole order after it. An unknown event type fails the audit, since the
		// event may have moved money.
		view, ok := strings.CutPrefix(name, "order.")
		must(ok, "an event of the unknown type %s", name)
		a.orderEvent(n, view)
	}
}

// Sequence returns the sequence of the last record.
func (a *Auditor) Sequence() int64 { return a.sequence }

// keyRotated checks the rotation of the key of a transparency log, which the text before the first plus sign names.
func (a *Auditor) keyRotated(e keyRotatedShape) {
	log, _, _ := strings.Cut(e.Key, "+")
	of, _, _ := strings.Cut(e.Previous, "+")
	last, rotated := a.logKeys[log]
	must(a.rules >= 4 && of == log && e.Key != e.Previous, "the key %s follows %s under rules %d", e.Key, e.Previous, a.rules)
	must(e.Generation == max(last.Generation, 1)+1, "the key of generation %d follows %d", e.Generation, last.Generation)
	must(!rotated || e.Previous == last.Key && a.now >= last.Until, "the key %s is replaced while the one before %s still signs", e.Previous, last.Key)
	must(e.Until == a.now+30*day, "the previous key signs until %d", e.Until)
	a.logKeys[log] = e
}
