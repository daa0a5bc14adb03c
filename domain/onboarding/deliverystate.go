package onboarding

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// addDelivery stores a pending delivery, new or replayed.
func (s *State) addDelivery(v *Delivery) {
	if last, known := s.deliveries[v.ID]; known && last.Closed != 0 {
		s.closed.n--
	}
	s.deliveries[v.ID] = v
	open, exists := s.openOf[v.WebhookID]
	if !exists {
		open = make(map[scalar.ID]bool)
		s.openOf[v.WebhookID] = open
	}
	open[v.ID] = true
}

func (s *State) noteAttempt(at int64, e *DeliveryAttempted) {
	v, known := s.deliveries[e.ID]
	if !known {
		return
	}
	c := *v // readers may hold the old delivery
	c.Status, c.Attempts, c.NextAttempt = e.Status, e.Number, e.NextAttempt
	s.deliveries[c.ID] = &c
	switch {
	case e.Status == webhook.Canceled:
		// The delivery closes again, here: replays rely on a closed delivery's row being as old as its closing.
		s.closed.n--
		s.addClosed(at, &c)
		return
	case v.Status.IsOpen() && !c.Status.IsOpen():
		s.closeDelivery(at, &c)
	}
	if w, there := s.webhooks[c.WebhookID]; there && w.failingAfter(e) != w.Failing {
		s.changeWebhook(w.ID, func(w *Webhook) { w.Failing = w.failingAfter(e) })
	}
}

// closeDelivery marks a delivery as closed. The delivery must be a new copy that no reader holds.
func (s *State) closeDelivery(at int64, v *Delivery) {
	delete(s.openOf[v.WebhookID], v.ID)
	if len(s.openOf[v.WebhookID]) == 0 {
		delete(s.openOf, v.WebhookID)
	}
	s.addClosed(at, v)
}

// cancelDeliveries cancels all open deliveries to a webhook. By rules 6 the oldest deliveries close last, because their attempts may
// be under way: deliveries that closed first are forgotten first.
func (s *State) cancelDeliveries(at int64, id scalar.ID) {
	all := s.openTo(id, func(*Delivery) bool { return true })
	if s.core.ActiveRules() >= rulesOfLateAttempts {
		slices.Reverse(all)
	}
	for _, v := range all {
		s.cancelDelivery(at, v)
	}
}

func (s *State) cancelDelivery(at int64, v *Delivery) {
	c := *v // readers may hold the old delivery
	c.Status, c.NextAttempt = webhook.Canceled, 0
	s.deliveries[c.ID] = &c
	s.closeDelivery(at, &c)
}

// openTo returns the open deliveries to a webhook for which wanted returns true, in the order of the log.
func (s *State) openTo(id scalar.ID, wanted func(*Delivery) bool) []*Delivery {
	var out []*Delivery
	for open := range s.openOf[id] { // sorted below
		if v := s.deliveries[open]; wanted(v) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, compareMade)
	return out
}

func compareMade(a, b *Delivery) int { return a.Made.Compare(b.Made) }

// OpenDeliveries returns all open deliveries in the order of the log.
func (s *State) OpenDeliveries() []*Delivery {
	var out []*Delivery
	for _, open := range s.openOf { // sorted below
		for id := range open {
			out = append(out, s.deliveries[id])
		}
	}
	slices.SortFunc(out, compareMade)
	return out
}

// Delivery returns a delivery of any tenant. It finds all open deliveries and the closed ones that are not forgotten.
func (s *State) Delivery(id scalar.ID) (*Delivery, bool) {
	v, known := s.deliveries[id]
	return v, known
}
