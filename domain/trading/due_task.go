package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// task is the rest of a command's work, done in steps: a taker that needs more than one record, or a mass cancel. At
// most one runs, since it blocks the commands that would start another.
type task struct {
	kind      Work
	command   decide.Recorded
	started   scalar.Time
	account   *account    // of the order or mass cancel
	symbol    *instrument // nil for all instruments
	reason    order.Reason
	canceled  int
	order     scalar.ID // the taker, which is not in the book; it may be final if the task was set aside
	bound     int64
	protected bool
}

// taskWork continues the running task.
type taskWork struct{}

func (taskWork) work(e *dueEntry) Work { return e.task.kind }

// subject returns the command's id. If no command waits for the end, it returns the order that fired and sweeps, or the
// customer.
func (taskWork) subject(e *dueEntry) string {
	switch w := e.task; {
	case !w.command.ID.IsZero():
		return w.command.ID.String()
	case !w.order.IsZero():
		return w.order.String()
	default:
		return w.customer()
	}
}

func (taskWork) visit(v *visit, e *dueEntry) *dueEntry {
	if v.Reading() {
		e.task = new(task)
	}
	if v.task(e.task); v.Reading() {
		e.Time = e.task.started
	}
	return e
}

func (taskWork) step(s *State, at decide.Stamp, entries []*dueEntry, single bool) decide.Decision {
	w := entries[0].task
	switch w.kind {
	case WorkSweep:
		return s.stepTaker(w, at, single)
	case WorkMassCancel, WorkDelisting:
		return w.stepMassCancel(s, at, s.most(single))
	}
	panic("trading: a task of the unknown kind " + string(w.kind)) // WorkStarted opens no other kind: see fold.open
}

// open decides the first record of a mass cancel, with at most n orders. It is the only record if all orders fit.
func (w *task) open(s *State, at decide.Stamp, events []decide.Event, n int) decide.Decision {
	events, canceled, more := w.end(s, at, events, n)
	if more {
		events = append(events, &WorkStarted{Work: w.kind, CommandID: w.command.ID, CustomerCode: w.customer(),
			Symbol: w.onSymbol(), Reason: w.reason, Canceled: canceled})
		return decide.Decision{Outcome: decide.Accepted, Events: events, Pending: !w.command.ID.IsZero()}
	}
	return decide.Decision{Outcome: decide.Accepted, Events: append(events, w.finished(canceled))}
}

// end appends the final events of the next n orders. It returns how many of them it canceled and whether there are
// more. Orders past their expiry time expire instead.
func (w *task) end(s *State, at decide.Stamp, events []decide.Event, n int) (after []decide.Event, canceled int, more bool) {
	orders, more := w.take(s, n)
	for _, o := range orders {
		if isOverdue(o, at.Time) {
			events = append(events, ended(o, at, order.Expired, ""))
			continue
		}
		events = append(events, ended(o, at, order.Canceled, w.reason))
		canceled++
	}
	return events, canceled, more
}

// finished returns the event that ends the task.
func (w *task) finished(canceled int) decide.Event {
	return &WorkFinished{Work: w.kind, CommandID: w.command.ID, CustomerCode: w.customer(), Symbol: w.onSymbol(),
		OrderCode: w.order, Canceled: canceled}
}

func (w *task) customer() string {
	if w.account == nil {
		return ""
	}
	return w.account.code
}

func (w *task) onSymbol() string {
	if w.symbol == nil {
		return ""
	}
	return w.symbol.contract.Symbol
}

// take returns the next n orders of a mass cancel, and whether there are more.
func (w *task) take(s *State, n int) (orders []*resting, more bool) {
	if w.kind == WorkDelisting {
		if orders, more = takeBook(&w.symbol.book, n); !more {
			orders, more = s.takeStops(w.symbol, orders, n)
		}
		return orders, more
	}
	for o := range w.account.orders(w.symbol) {
		if len(orders) == n {
			return orders, true
		}
		orders = append(orders, o)
	}
	return orders, false
}

// takeBook returns the first n orders of a book, bids first, and whether there are more.
func takeBook(b *book.Book[live], n int) (orders []*resting, more bool) {
	for _, side := range [2]book.Side{book.Bid, book.Ask} {
		for l := b.Best(side); l != nil; l = l.Worse() {
			for o := l.Front(); o != nil; o = o.Next() {
				if len(orders) == n {
					return orders, true
				}
				orders = append(orders, o)
			}
		}
	}
	return orders, false
}

// stepMassCancel decides the next record of a running mass cancel.
func (w *task) stepMassCancel(s *State, at decide.Stamp, n int) decide.Decision {
	events, canceled, more := w.end(s, at, nil, n)
	if more {
		return stepped(w.kind, events...)
	}
	decision := stepped(w.kind, append(events, w.finished(w.canceled+canceled))...)
	decision.Finishes = w.command.ID
	return decision
}

// stepTaker decides the next fills of an order that needs more than one record. Its margin was checked for all its
// fills when it started. Expiry is therefore judged as of that time, so that it makes the fills that were checked.
func (s *State) stepTaker(w *task, at decide.Stamp, single bool) decide.Decision {
	o := s.orders.Get(w.order)
	d := s.newRecordBuilder(at, w.symbol)
	d.now, d.limit = w.started, s.bounds(single)
	d.events = append(d.events, &Step{Work: w.kind})
	if o == nil { // canceled while the task was set aside
		return decide.Decision{Outcome: decide.Accepted, Events: append(d.events, w.finished(0)), Finishes: w.command.ID}
	}
	slot := d.reserveSlot()
	t := &taker{order: o, party: d.viewOf(w.account), bound: w.bound, protected: w.protected, price: o.Price, terms: termsOf(o)}
	t.updated = at.Time
	if o.Value.cash != 0 {
		t.cashLeft = o.Value.cash.Sub(o.Value.filledQuote)
		if t.done() > 0 {
			t.at = d.instrument.last
		}
	}
	if o.Value.reduceOnly {
		t.capTo(reducible(t.party.size, action(o.Side)))
	}
	why := d.walk(t, d.limit)
	d.write()
	decision := decide.Decision{Outcome: decide.Accepted}
	if why == stopFull {
		t.status = order.PartiallyFilled
		if t.done() == 0 {
			t.status = order.Open
		}
	} else {
		t.fate(why)
		d.events = append(d.events, w.finished(0))
		decision.Finishes = w.command.ID
	}
	d.finish(t, slot)
	decision.Events = d.check()
	return decision
}

// capTo reduces the taker's remaining amount to allowed.
func (t *taker) capTo(allowed int64) {
	if t.remaining > allowed {
		t.amount -= t.remaining - allowed
		t.remaining = allowed
	}
}
