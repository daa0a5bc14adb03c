package trading

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// session is a connection to a node. When it ends, the live orders that were placed over it are canceled. Commands that
// are sent over it carry its id.
type session struct {
	id       scalar.ID
	gateway  *gateway // nil once the session has ended
	username string
	broker   string
	orders   []scalar.ID // placed over the session, in their order; some may be final
	live     int         // number of orders that are live
	full     int         // length of orders at which placedOver drops those that are final
	due      *dueEntry   // set once the session has ended
}

// gateway is a process that has connections. It must report regularly that it is alive, because a process that died
// cannot report that its connections ended.
type gateway struct {
	id       scalar.ID
	sessions []*session // in the order in which they were opened; at least one
	due      *dueEntry
}

// gatewayPatience is the time within which a gateway must report again.
const gatewayPatience = 15 * scalar.Second

// nodesOnly refuses every actor but the nodes of the venue.
func nodesOnly(c decide.Command) error {
	if c.Actor.System == "" {
		return decide.Refuse(decide.Forbidden, "FORBIDDEN", "only the nodes of the venue tell of sessions")
	}
	return nil
}

func (r request) openSession(p *OpenSession) (decide.Decision, error) {
	if err := nodesOnly(r.command); err != nil {
		return decide.Decision{}, err
	}
	if p.Session.IsZero() || p.Gateway.IsZero() || r.sessions[p.Session] != nil {
		return decide.Decision{}, decide.Refuse(decide.Conflict, "SESSION_TAKEN", "there is such a session already")
	}
	return accepted(&SessionOpened{Session: p.Session, Gateway: p.Gateway, Username: p.Username, Broker: p.Broker, ExpiresAt: r.at.Time + gatewayPatience})
}

func (r request) keepGateway(p *KeepGateway) (decide.Decision, error) {
	if err := nodesOnly(r.command); err != nil {
		return decide.Decision{}, err
	}
	if r.findGateway(p.Gateway) == nil {
		return decide.Decision{}, decide.Refuse(decide.NotFound, "UNKNOWN_GATEWAY", "the gateway has no session")
	}
	return accepted(&GatewaySeen{Gateway: p.Gateway, ExpiresAt: r.at.Time + gatewayPatience})
}

// endSession decides the end of a session, and the end of as many orders as fit the record.
func (r request) endSession(p *EndSession) (decide.Decision, error) {
	if err := nodesOnly(r.command); err != nil {
		return decide.Decision{}, err
	}
	w := r.sessions[p.Session]
	if w == nil || w.gateway == nil {
		return decide.Decision{}, decide.Refuse(decide.NotFound, "UNKNOWN_SESSION", "there is no such session, or it has ended")
	}
	events, left := r.endOrders(r.at, nil, w, r.limit.others)
	ended := &SessionEnded{Session: w.id, Username: w.username, Broker: w.broker, Left: left}
	return decide.Decision{Outcome: decide.Accepted, Events: append([]decide.Event{ended}, events...)}, nil
}

// endOrders appends the final events of the first n live orders of a session, and returns how many are left. Orders
// past their expiry time expire instead.
func (s *State) endOrders(at decide.Stamp, events []decide.Event, w *session, n int) (after []decide.Event, left int) {
	orders, _ := s.ordersOver(w, n)
	for _, o := range orders {
		if isOverdue(o, at.Time) {
			events = append(events, ended(o, at, order.Expired, ""))
			continue
		}
		events = append(events, ended(o, at, order.Canceled, s.disconnected()))
	}
	return events, w.live - len(orders)
}

// ordersOver returns the first n live orders of a session, and how many codes it looked up for that.
func (s *State) ordersOver(w *session, n int) (orders []*resting, looked int) {
	for _, code := range w.orders {
		if len(orders) == n {
			break
		}
		looked++
		if o := s.orders.Get(code); o != nil {
			orders = append(orders, o)
		}
	}
	return orders, looked
}

// checkSession refuses an order over a session that has ended, since no session end would cancel it.
func (r request) checkSession() error {
	if id := r.command.Metadata.Session; !id.IsZero() {
		if w := r.sessions[id]; w == nil || w.gateway == nil {
			return decide.Refuse(decide.Conflict, "SESSION_ENDED", "the session of the connection has ended, at which its orders were canceled")
		}
	}
	return nil
}

func (s *State) findGateway(id scalar.ID) *gateway {
	if n := slices.IndexFunc(s.gateways, func(g *gateway) bool { return g.id == id }); n >= 0 {
		return s.gateways[n]
	}
	return nil
}

// sessionOpened applies the event.
func (f *fold) sessionOpened(e *SessionOpened) {
	if f.sessions[e.Session] != nil {
		panic("trading: an event opens the session " + e.Session.String() + " again")
	}
	g := f.findGateway(e.Gateway)
	if g == nil {
		g = &gateway{id: e.Gateway}
		f.gateways = append(f.gateways, g)
	}
	w := &session{id: e.Session, gateway: g, username: e.Username, broker: e.Broker}
	g.sessions = append(g.sessions, w)
	f.sessions[w.id] = w
	f.expect(g, e.ExpiresAt)
}

// expect puts a gateway on the due list for the time at which its report expires.
func (f *fold) expect(g *gateway, expires scalar.Time) {
	f.cancelEntry(g.due)
	g.due = &dueEntry{Slot: schedule.At(expires, dueGateway), gateway: g}
	f.due.push(g.due)
}

// gatewaySeen applies the event.
func (f *fold) gatewaySeen(e *GatewaySeen) {
	g := f.findGateway(e.Gateway)
	if g == nil {
		panic("trading: an event names the unknown gateway " + e.Gateway.String())
	}
	f.expect(g, e.ExpiresAt)
}

// gatewayLost applies the event: all sessions of the gateway have ended.
func (f *fold) gatewayLost(e *GatewayLost) {
	g := f.findGateway(e.Gateway)
	if g == nil {
		panic("trading: an event names the unknown gateway " + e.Gateway.String())
	}
	for _, w := range slices.Clone(g.sessions) {
		f.detach(w)
		f.sweepLater(w)
	}
}

// sessionEnded applies the event.
func (f *fold) sessionEnded(e *SessionEnded) {
	w := f.sessions[e.Session]
	if w == nil || w.gateway == nil {
		panic("trading: an event ends the unknown session " + e.Session.String())
	}
	f.detach(w)
	if e.Left > 0 {
		f.sweepLater(w)
	} else {
		delete(f.sessions, w.id)
	}
}

// detach removes a session from its gateway, and the gateway from the state if that was its last session.
func (f *fold) detach(w *session) {
	g := w.gateway
	w.gateway = nil
	g.sessions = slices.DeleteFunc(g.sessions, func(o *session) bool { return o == w })
	if len(g.sessions) == 0 {
		f.cancelEntry(g.due)
		f.gateways = slices.DeleteFunc(f.gateways, func(o *gateway) bool { return o == g })
	}
}

// sweepLater puts the cancellation of a session's orders on the due list.
func (f *fold) sweepLater(w *session) {
	w.due = &dueEntry{Slot: schedule.At(f.at.Time, dueSession), session: w}
	f.due.push(w.due)
}

// sessionSwept applies the event.
func (f *fold) sessionSwept(e *SessionSwept) {
	w := f.sessions[e.Session]
	if w == nil || w.due == nil {
		panic("trading: an event sweeps the session " + e.Session.String() + ", which has not ended")
	}
	if e.Left == 0 {
		f.cancelEntry(w.due)
		delete(f.sessions, w.id)
	}
	// Drops the orders that earlier records closed, so that the steps go through the orders once. The orders that this
	// record closes are still live here, because their events follow the session's.
	for len(w.orders) > 0 && f.orders.Get(w.orders[0]) == nil {
		w.orders = w.orders[1:]
	}
}

// placedOver records that an order was placed over a session, which may be nil.
func (f *fold) placedOver(w *session, o *resting) {
	if w == nil {
		return
	}
	if len(w.orders) >= w.full { // only now and then: checking every order would cost more than keeping it
		w.orders = f.live(w)
		w.full = 2*len(w.orders) + 64
	}
	w.add(o)
}

func (w *session) add(o *resting) {
	w.orders = append(w.orders, o.Code)
	w.live++
	o.Value.session = w
}

// live returns the codes of a session's live orders.
func (s *State) live(w *session) []scalar.ID {
	var out []scalar.ID
	for _, code := range w.orders {
		if s.orders.Get(code) != nil {
			out = append(out, code)
		}
	}
	return out
}
