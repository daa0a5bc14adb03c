package reference

import (
	"cmp"
	"slices"
)

// task is the work of a command that continues in steps.
type task struct {
	kind     string
	order    string // the order that keeps matching
	customer string
	symbol   string
	started  moment
	canceled int
	judged   *judgement
}

// session is a connection. The orders placed on it are canceled when it ends.
type session struct {
	gateway string
	ended   moment
	orders  []string
}

// due is due work: its kind, the time and record that made it due, and its subject.
type due struct {
	work       string
	rank       int
	since      duePosition
	instrument *instrument
	account    *account
}

// compare orders due work by time, then by kind, then by the record that made it due.
func (d due) compare(o due) int {
	return cmp.Or(cmp.Compare(d.since.time, o.since.time), cmp.Compare(d.rank, o.rank), cmp.Compare(d.since.sequence, o.since.sequence))
}

// blocking returns the first work that must be done before any client command.
func (a *Auditor) blocking() (first due, any bool) {
	if a.task != nil {
		return due{work: a.task.kind}, true
	}
	var all []due
	guard := false
	for _, i := range a.listing {
		if i.status != "withdrawn" {
			if i.indexed != 0 && !i.stale && i.IndexStaleSeconds > 0 && i.staleAt() <= a.now {
				all = append(all, due{"stale_guard", 1, duePosition{time: i.staleAt()}, i, nil})
				guard = true
			}
			if i.next != 0 && i.next <= a.now {
				all = append(all, due{"funding", 2, duePosition{time: i.next}, i, nil})
			}
		}
		if i.firing.there {
			all = append(all, due{"trigger", 4, i.firing, i, nil})
		}
		if i.fundMoves.there {
			all = append(all, due{"insurance_order", 6, i.fundMoves, i, nil})
		}
	}
	if a.settlement != 0 && a.settlement <= a.now {
		all = append(all, due{"settlement", 3, duePosition{time: a.settlement}, nil, nil})
	}
	if c := a.firstFailing(); c != nil {
		all = append(all, due{"liquidation", 5, c.failing, nil, c})
	}
	if len(all) == 0 {
		return due{}, false
	}
	first = slices.MinFunc(all, due.compare)
	if first.rank > 3 && guard { // work at market prices waits until all stale prices are guarded
		first = due{work: "stale_guard"}
	}
	return first, true
}

// alternating returns the first work that alternates with client commands.
func (a *Auditor) alternating() (first due, any bool) {
	var all []due
	add := func(work string, rank int, t moment) {
		if t != 0 && t <= a.now {
			all = append(all, due{work: work, rank: rank, since: duePosition{time: t}})
		}
	}
	for _, c := range a.everybody {
		add("cancel_all_after", 7, c.deadMan)
	}
	for _, t := range a.gateways {
		add("gateway", 8, t)
	}
	for _, s := range a.sessions {
		add("session", 9, s.ended)
	}
	for _, x := range a.instants {
		add("posting", 10, x.time)
	}
	add("expiry", 11, a.nextExpiry())
	if len(all) == 0 {
		return due{}, false
	}
	return slices.MinFunc(all, due.compare), true
}

// turn checks that the record may come now: blocking work comes first, in order, and alternating work is delayed by at
// most one client command, unless enough bytes of steps may be in flight.
func (a *Auditor) turn() {
	for len(a.steps) > 0 && a.steps[0].sequence < a.sequence-recordsInFlight {
		a.stepBytes -= a.steps[0].bytes
		a.steps = a.steps[1:]
	}
	first, blocks := a.blocking()
	if a.r.work == "" {
		must(!blocks, "a command is decided while %s is due", first.work)
		if next, exists := a.alternating(); exists {
			must(a.stepped || a.stepBytes >= stepsInFlight, "a second command is decided while %s is due", next.work)
			a.stepped = false
		}
		return
	}
	a.stepped = true
	if !blocks {
		next, exists := a.alternating()
		must(exists, "a step of %s, and nothing is due", a.r.work)
		first = next
		a.steps = append(a.steps, step{a.sequence, a.r.bytes})
		a.stepBytes += a.r.bytes
	}
	must(first.work == a.r.work, "a step of %s, and %s is due first", a.r.work, first.work)
	a.r.due = first
}

// ownerChanged begins the turns of a new owner. A new owner has decided no command and has no step in flight.
func (a *Auditor) ownerChanged() { a.stepped, a.steps, a.stepBytes = false, nil, 0 }

// An owner has at most recordsInFlight records that are not acknowledged. While the alternating steps among them have
// stepsInFlight bytes, the next step waits and commands do not.
const (
	recordsInFlight = 4096
	stepsInFlight   = 128 << 10
)

// step is a record of alternating work.
type step struct {
	sequence int64
	bytes    int
}

// can reports whether a liquidation step for the account is possible: it has a position or an order on an open
// instrument, or it has no position but orders, or the fund can pay.
func (a *Auditor) can(c *account) bool {
	exists := false
	for _, h := range c.positions {
		if h.size != 0 {
			exists = true
			if h.instrument.open() {
				return true
			}
		}
	}
	for _, o := range c.orders {
		if o.instrument.open() {
			return true
		}
	}
	return !exists && (len(c.orders) > 0 || a.fund.balance > 0)
}

// firstFailing returns the account to liquidate next, by the record that made it due, then by code.
func (a *Auditor) firstFailing() (first *account) {
	for _, c := range a.everybody {
		if c.failing.there && (first == nil || c.failing.sequence < first.failing.sequence ||
			c.failing.sequence == first.failing.sequence && c.code < first.code) && a.can(c) {
			first = c
		}
	}
	return first
}

// afterwards checks the invariants that hold after every record, and determines the work that the record made due.
func (a *Auditor) afterwards() {
	a.conserved()
	a.leftovers()
	for c := range a.r.touched {
		if !c.isFund {
			a.look(c)
		}
	}
	for _, c := range a.everybody {
		if c.deleveraging != nil && (c.deleveraging.size == 0 || !a.can(c)) {
			c.deleveraging = nil
		}
	}
	for _, i := range a.listing {
		if len(i.book[0]) > 0 && len(i.book[1]) > 0 {
			must(i.book[0][0].price < i.book[1][0].price, "the book of %s is crossed: %d and %d", i.Symbol, i.book[0][0].price, i.book[1][0].price)
		}
		a.schedule(i)
		a.moveFund(i)
	}
	for c := range a.r.touched {
		a.reduces(c)
	}
	for _, v := range a.r.views {
		a.reduces(a.customer(v.CustomerCode))
	}
	a.finishWork()
	a.finishSessions()
}

// look determines whether an account's equity is below its maintenance margin.
func (a *Auditor) look(c *account) {
	equity, needed := a.health(c)
	switch lacks := equity < needed; {
	case lacks && !c.failing.there:
		c.failing = duePosition{a.now, a.sequence, true}
		for _, h := range c.positions {
			h.began = abs(h.size)
		}
	case !lacks && c.failing.there:
		c.failing, c.deleveraging = duePosition{}, nil
		for _, h := range c.positions {
			h.began = 0
		}
	}
}

// reduces checks that no resting or waiting reduce-only order is larger than the position that it reduces, and that a
// customer has at most 20 of them on an instrument.
func (a *Auditor) reduces(c *account) {
	count := make(map[*instrument]int)
	for _, o := range c.orders {
		if !o.ReduceOnly || !o.resting && !o.waiting {
			continue
		}
		size := c.on(o.instrument).size
		if o.buy {
			size = -size
		}
		must(o.remaining <= max(0, size), "the order %s would reduce %d by %d", o.Code, size, o.remaining)
		if count[o.instrument]++; !c.isFund {
			must(count[o.instrument] <= 20, "%s has more than 20 reduce-only orders on %s", c.code, o.instrument.Symbol)
		}
	}
}

// moveFund determines since when the fund's order on an open instrument differs from the required one: at the mark
// price, for the whole position.
func (a *Auditor) moveFund(i *instrument) {
	h := a.fund.on(i)
	moved := h.size != 0 && i.open()
	for _, o := range a.fund.orders {
		if o.instrument == i && (!o.resting || o.price == max(1, i.mark) && o.remaining == abs(h.size) && o.buy == (h.size < 0)) {
			moved = false
		}
	}
	switch {
	case moved && !i.fundMoves.there:
		i.fundMoves = duePosition{a.now, a.sequence, true}
	case !moved:
		i.fundMoves = duePosition{}
	}
}

// works applies the start or the end of a command's work in steps.
func (a *Auditor) works(started bool, e *workShape) {
	if started {
		must(a.task == nil, "%s begins amid %s", e.Work, a.r.resumed)
		a.task = &task{kind: e.Work, order: e.OrderCode, customer: e.CustomerCode, symbol: e.Symbol, started: a.now}
		if e.Work == "sweep" {
			a.Seen.Sweeps++
		}
		return
	}
	must(a.task == nil || a.task.kind == e.Work && a.task.order == e.OrderCode && a.task.customer == e.CustomerCode, "%s is done, and was not begun", e.Work)
	a.r.done = e
	a.task = nil
}

func (t *task) String() string { return t.kind }

// finishWork checks the count of orders that a mass cancel reports at its end, and that no matching order is live.
func (a *Auditor) finishWork() {
	canceled := 0
	for _, v := range a.r.views {
		if v.Status == "canceled" {
			canceled++
		}
	}
	if a.task != nil {
		a.task.canceled += canceled
	}
	e := a.r.done
	if e == nil || e.Work == "sweep" {
		return
	}
	if t := a.r.resumed; t != nil {
		canceled += t.canceled
	}
	must(e.Canceled == canceled, "%d orders were canceled, not %d", canceled, e.Canceled)
	for _, o := range a.orders {
		must(e.CustomerCode != "" && o.CustomerCode != e.CustomerCode || e.Symbol != "" && o.Symbol != e.Symbol, "all orders of %s%s were canceled, and %s is live", e.CustomerCode, e.Symbol, o.Code)
	}
}

// session applies an event about sessions and gateways.
func (a *Auditor) session(name string, e *accountShape) {
	switch name {
	case "session.opened":
		must(a.sessions[e.Session] == nil, "the session %s is opened twice", e.Session)
		a.sessions[e.Session] = &session{gateway: e.Gateway}
		a.gateways[e.Gateway] = e.ExpiresAt
	case "gateway.seen":
		must(a.gateways[e.Gateway] != 0, "the gateway %s has no session", e.Gateway)
		a.gateways[e.Gateway] = e.ExpiresAt
	case "gateway.lost":
		must(a.r.work == "gateway" && a.gateways[e.Gateway] != 0 && a.gateways[e.Gateway] <= a.now, "the gateway %s is lost at %d", e.Gateway, a.gateways[e.Gateway])
		for _, s := range a.sessions {
			if s.gateway == e.Gateway && s.ended == 0 {
				s.ended = a.now
			}
		}
		delete(a.gateways, e.Gateway)
	case "session.ended":
		s := a.sessions[e.Session]
		must(s != nil && s.ended == 0, "the session %s has ended", e.Session)
		s.ended = a.now
		others := false
		for _, o := range a.sessions {
			others = others || o.gateway == s.gateway && o.ended == 0
		}
		if !others {
			delete(a.gateways, s.gateway)
		}
		a.r.session = e
	case "session.swept":
		must(a.r.work == "session" && a.sessions[e.Session] != nil && a.sessions[e.Session].ended != 0, "the session %s is swept", e.Session)
		a.r.session = e
	}
}

// finishSessions records the orders placed on a session, and checks how many orders of an ended session are left.
func (a *Auditor) finishSessions() {
	if s := a.sessions[a.r.Command.Data.Session]; s != nil && a.r.Command.Type == "order.place" {
		must(s.ended == 0, "an order comes over the session %s, which has ended", a.r.Command.Data.Session)
		for code, v := range a.r.views {
			if v.Created == a.now && a.orders[code] != nil {
				s.orders = append(s.orders, code)
			}
		}
	}
	if e := a.r.session; e != nil {
		left := 0
		for _, code := range a.sessions[e.Session].orders {
			if a.orders[code] != nil {
				left++
			}
		}
		must(left == e.Left, "%d orders of the session %s are left, not %d", left, e.Session, e.Left)
		if left == 0 {
			delete(a.sessions, e.Session)
		}
	}
}
