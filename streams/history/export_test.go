package history

import "github.com/perpetua-exchange/perpetua/streams/submit"

// Waiting returns how many wait for a state that is being made.
func (s *States) Waiting(journal string, partition int32, sequence int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.making[key{submit.Shard{Journal: journal, Partition: partition}, sequence, true}]; w != nil {
		return w.waiting
	}
	return 0
}
