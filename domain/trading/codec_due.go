package trading

import (
	"maps"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// visitSessions visits the sessions of each gateway and then the sessions that have ended, all with their live orders.
func (v *visit) visitSessions() {
	pack.List(v.Coder, &v.gateways, func(g *gateway) {
		v.Raw(g.id[:])
		v.entry(&g.due, dueEntry{Slot: schedule.Slot{Kind: dueGateway}, gateway: g})
		pack.List(v.Coder, &g.sessions, func(w *session) {
			if v.session(w); v.Reading() {
				w.gateway = g
			}
		})
		if v.Reading() {
			v.check(g.due != nil && len(g.sessions) > 0)
		}
	})
	over := v.endedSessions()
	pack.List(v.Coder, &over, func(w *session) {
		v.entry(&w.due, dueEntry{Slot: schedule.Slot{Kind: dueSession}, session: w})
		v.check(w.due != nil)
		v.session(w)
	})
}

// endedSessions returns the sessions that have ended, by their ids. While reading there is none yet.
func (v *visit) endedSessions() (over []*session) {
	if v.Reading() {
		return nil
	}
	for _, id := range slices.SortedFunc(maps.Keys(v.sessions), compareIDs) {
		if w := v.sessions[id]; w.gateway == nil {
			over = append(over, w)
		}
	}
	return over
}

func (v *visit) session(w *session) {
	v.Raw(w.id[:])
	pack.String(v.Coder, &w.username)
	pack.Word(v.Coder, &w.broker)
	codes := v.live(w)
	pack.Slice(v.Coder, &codes, func(code *scalar.ID, c *pack.Coder) { c.Raw(code[:]) })
	if !v.Reading() {
		return
	}
	for _, code := range codes {
		o := v.State.orders.Get(code)
		if o == nil || o.Value.session != nil {
			v.Fail(errContradiction)
			return
		}
		w.add(o)
	}
	v.check(v.sessions[w.id] == nil)
	v.sessions[w.id] = w
}

// charges visits the charges that some position has not posted, and the holders in their order. The positions that
// owe a charge follow from the last charge that each has posted.
func (v *visit) instants() {
	pack.Int(v.Coder, &v.State.fixed)
	for _, i := range v.listing {
		pack.List(v.Coder, &i.charges, func(x *charge) { v.instant(i, x) })
		v.visitHolders(i)
		if v.Reading() {
			for _, x := range i.charges {
				v.check(x.owing > 0)
			}
		}
	}
}

func (v *visit) instant(i *instrument, x *charge) {
	c := v.Coder
	pack.Int(c, &x.number)
	pack.Byte(c, &x.kind)
	pack.Int(c, &x.time)
	pack.Int(c, &x.mark)
	pack.Int(c, &x.rate)
	pack.Int(c, &x.left)
	if c.Reading() {
		v.check(x.kind < chargeKinds)
		x.instrument = i
		x.posting = &dueEntry{Slot: schedule.At(x.time, duePosting), instant: x}
		v.outstanding++
		v.due.alternating.Append(x.posting)
	}
	pack.Int(c, &x.posting.arrival)
}

func (v *visit) visitHolders(i *instrument) {
	h := i.holders.first
	for range v.Len(i.holders.length) {
		if pack.Ref(v.Coder, &h, &v.positions); v.Reading() {
			if v.Err() != nil || h.instrument != i || h.size == 0 || h.inHolders.before != nil || i.holders.first == h {
				v.Fail(errContradiction)
				return
			}
		}
		pack.Int(v.Coder, &h.posted)
		if !v.Reading() {
			h = h.inHolders.after
			continue
		}
		i.holders.push(h)
		for _, x := range i.charges {
			if x.number > h.posted {
				x.owing++
			}
		}
	}
}

// dueWork visits the entries that are set aside, and the running task. Other due work is visited with its orders and
// accounts.
func (v *visit) dueWork() {
	c := v.Coder
	pack.Slice(c, &v.aside, func(a *asideEntry, c *pack.Coder) {
		if c.Reading() {
			a.dueEntry = new(dueEntry)
		}
		if pack.Byte(c, &a.Kind); a.Kind >= dueKinds {
			v.Fail(errContradiction)
			return
		}
		e := dueTable[a.Kind].visit(v, a.dueEntry)
		if c.Reading() {
			if e == nil || e != a.dueEntry && !e.Queued() || c.Err() != nil {
				v.Fail(errContradiction)
				return
			}
			v.due.remove(e)
			a.dueEntry = e
		}
		pack.Int(c, &a.arrival)
		pack.String(c, &a.cause)
	})
	running := v.running != nil
	if c.Bool(&running); !running {
		return
	}
	if c.Reading() {
		v.running = new(task)
		v.due.tasks.Append(&dueEntry{Slot: schedule.Slot{Kind: dueTask}, task: v.running})
	}
	v.task(v.running)
	for _, e := range v.due.tasks.Entries() {
		if e.task == v.running {
			if c.Reading() {
				e.Time = v.running.started
			}
			pack.Int(c, &e.arrival)
		}
	}
}

func (v *visit) task(w *task) {
	c := v.Coder
	pack.Word(c, &w.kind)
	w.command.Visit(c)
	pack.Int(c, &w.started)
	pack.OptionalRef(c, &w.account, &v.accounts)
	symbol := 0
	if w.symbol != nil {
		symbol = w.symbol.index + 1
	}
	if n := v.Index(symbol, len(v.listing)+1); c.Reading() && n > 0 {
		w.symbol = v.listing[n-1]
	}
	pack.Word(c, &w.reason)
	pack.Small(c, &w.canceled)
	c.Raw(w.order[:])
	pack.Int(c, &w.bound)
	c.Bool(&w.protected)
	v.check(w.kind == WorkSweep && w.symbol != nil && w.account != nil ||
		w.kind == WorkMassCancel && w.account != nil || w.kind == WorkDelisting && w.symbol != nil)
}
