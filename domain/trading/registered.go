package trading

// register adds an account, after all those registered before.
func (s *State) register(a *account) {
	s.accounts[a.code] = a
	s.registered = append(s.registered, a)
	s.registeredOf[a.broker] = append(s.registeredOf[a.broker], a)
}

// of returns a broker's accounts in the order of registration, or all accounts for "".
func (s *State) of(broker string) []*account {
	if broker == "" {
		return s.registered
	}
	return s.registeredOf[broker]
}

// Registered returns the number of a broker's customers, or of all customers for "". A customer's index among them
// starts at 0, is in the order of registration and never changes. A broker's indexes reveal nothing about other brokers.
func (s *State) Registered(broker string) int { return len(s.of(broker)) }

// CustomerAt returns the customer at an index among a broker's customers, or among all for "".
func (s *State) CustomerAt(broker string, index int) Customer { return s.of(broker)[index].customer() }

// ListingIndex returns the index of an instrument in the order of listing, from 0, including withdrawn ones. It never
// changes. It is -1 for an unknown instrument.
func (s *State) ListingIndex(symbol string) int {
	if i := s.instruments[symbol]; i != nil {
		return i.index
	}
	return -1
}
