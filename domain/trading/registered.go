package trading

// register makes an account findable, after all that were registered before.
func (s *State) register(a *account) {
	s.accounts[a.code] = a
	s.registered = append(s.registered, a)
	s.registeredOf[a.broker] = append(s.registeredOf[a.broker], a)
}

// of returns a broker's accounts in the order of registration; all accounts for "".
func (s *State) of(broker string) []*account {
	if broker == "" {
		return s.registered
	}
	return s.registeredOf[broker]
}

// Registered returns how many customers a broker has, or how many there are for "". The place of a customer among them,
// from 0, is that of its registration and never changes. A broker's places tell nothing of other brokers.
func (s *State) Registered(broker string) int { return len(s.of(broker)) }

// CustomerAt returns the customer at a place among a broker's, or among all for "".
func (s *State) CustomerAt(broker string, place int) Customer { return s.of(broker)[place].customer() }

// ListingPlace returns the place of an instrument, from 0, in the order of listing, withdrawn ones included. It never
// changes. An unknown one is at -1.
func (s *State) ListingPlace(symbol string) int {
	if i := s.instruments[symbol]; i != nil {
		return i.index
	}
	return -1
}
