package trading

import "github.com/perpetua-exchange/perpetua/domain/decide"

// gatewayWork ends the sessions of gateways that have not reported in time.
type gatewayWork struct{}

func (gatewayWork) work(*dueEntry) Work        { return WorkGateway }
func (gatewayWork) subject(e *dueEntry) string { return e.gateway.id.String() }

func (gatewayWork) visit(v *visit, e *dueEntry) *dueEntry {
	if v.Reading() {
		e.gateway = new(gateway)
	}
	v.Raw(e.gateway.id[:])
	if g := v.findGateway(e.gateway.id); g != nil {
		return g.due
	}
	return nil
}

func (gatewayWork) step(_ *State, _ decide.Stamp, entries []*dueEntry, _ bool) decide.Decision {
	return stepped(WorkGateway, &GatewayLost{Gateway: entries[0].gateway.id})
}

// sessionWork cancels the orders of an ended session that did not fit the record which ended it.
type sessionWork struct{}

func (sessionWork) work(*dueEntry) Work        { return WorkSession }
func (sessionWork) subject(e *dueEntry) string { return e.session.id.String() }

func (sessionWork) visit(v *visit, e *dueEntry) *dueEntry {
	if v.Reading() {
		e.session = new(session)
	}
	v.Raw(e.session.id[:])
	if w := v.sessions[e.session.id]; w != nil {
		return w.due
	}
	return nil
}

func (sessionWork) step(s *State, at decide.Stamp, entries []*dueEntry, single bool) decide.Decision {
	w := entries[0].session
	events, left := s.endOrders(at, nil, w, s.most(single))
	swept := &SessionSwept{Session: w.id, Username: w.username, Broker: w.broker, Left: left}
	return stepped(WorkSession, append([]decide.Event{swept}, events...)...)
}
