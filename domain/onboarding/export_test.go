package onboarding

// Keep has the state keep so many deliveries that are closed, once its rules have any forgotten.
func (s *State) Keep(n int) { s.closed.keep = n }
