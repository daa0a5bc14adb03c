package trading

import (
	"maps"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// saveSessions writes the sessions of each gateway and then the sessions that have ended, all with their live orders.
func (v *saver) saveSessions() {
	v.Len(len(v.gateways))
	for _, g := range v.gateways {
		v.Raw(g.id[:])
		v.saveEntry(g.due)
		v.Len(len(g.sessions))
		for _, w := range g.sessions {
			v.saveSession(w)
		}
	}
	var over []*session
	for _, id := range slices.SortedFunc(maps.Keys(v.sessions), compareIDs) {
		if w := v.sessions[id]; w.gateway == nil {
			over = append(over, w)
		}
	}
	v.Len(len(over))
	for _, w := range over {
		v.saveEntry(w.due)
		v.saveSession(w)
	}
}

func (v *saver) saveSession(w *session) {
	v.Raw(w.id[:])
	v.String(w.username)
	v.Word(w.broker)
	codes := v.live(w)
	v.Len(len(codes))
	for _, code := range codes {
		v.Raw(code[:])
	}
}

func (v *loader) loadSessions() {
	for range v.Len(20) {
		g := &gateway{id: v.id()}
		if g.due = v.loadEntry(); g.due == nil {
			v.Fail(errContradiction)
			return
		}
		g.due.kind, g.due.gateway = dueGateway, g
		v.due.alternating.heap = append(v.due.alternating.heap, g.due)
		for range v.Len(18) {
			g.sessions = append(g.sessions, v.loadSession(g))
		}
		if len(g.sessions) == 0 {
			v.Fail(errContradiction)
			return
		}
		v.gateways = append(v.gateways, g)
	}
	for range v.Len(19) {
		due := v.loadEntry()
		if due == nil {
			v.Fail(errContradiction)
			return
		}
		w := v.loadSession(nil)
		w.due = due
		due.kind, due.session = dueSession, w
		v.due.alternating.heap = append(v.due.alternating.heap, due)
	}
}

func (v *loader) loadSession(g *gateway) *session {
	w := &session{id: v.id(), gateway: g, username: v.String(), broker: v.Word()}
	for range v.Len(16) {
		o := v.orders.Get(v.id())
		if o == nil || o.Value.session != nil {
			v.Fail(errContradiction)
			return w
		}
		w.add(o)
	}
	if v.sessions[w.id] != nil {
		v.Fail(errContradiction)
	}
	v.sessions[w.id] = w
	return w
}

func (v *loader) id() (id scalar.ID) {
	v.Raw(id[:])
	return id
}
