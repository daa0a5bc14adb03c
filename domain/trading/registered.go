package trading

// Registered returns how many customers there are. The place of a customer, from 0, is that of its registration and never
// changes.
func (s *State) Registered() int { return len(s.registered) }

// CustomerAt returns the customer at a place.
func (s *State) CustomerAt(place int) Customer { return s.registered[place].customer() }

// ListingPlace returns the place of an instrument, from 0, in the order of listing, withdrawn ones included. It never
// changes. An unknown one is at -1.
func (s *State) ListingPlace(symbol string) int {
	if i := s.instruments[symbol]; i != nil {
		return i.index
	}
	return -1
}
