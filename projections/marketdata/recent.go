package marketdata

import (
	"context"
	"time"
)

// recentFor is how long Recent returns the same days. It bounds what requests of clients cost the bucket.
const recentFor = 2 * time.Second

// recent holds the result of Days for clients.
type recent struct {
	at   time.Time // zero before the first
	days []Manifest
}

// Recent returns the days that Days has returned less than two seconds ago. Concurrent callers share one call of Days. The caller MUST NOT
// change the days.
func (s *Store) Recent(ctx context.Context) ([]Manifest, error) {
	if days, ok := s.fresh(); ok {
		return days, nil
	}
	loaded := s.loading.DoChan("", func() (any, error) {
		if days, ok := s.fresh(); ok { // another call has ended since the caller looked
			return days, nil
		}
		at := s.now()
		days, err := s.Days(context.WithoutCancel(ctx)) // the others wait for it too
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.recent = recent{at, days}
		return days, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case l := <-loaded:
		days, _ := l.Val.([]Manifest)
		return days, l.Err
	}
}

// fresh returns the days of the last call of Days, if they are recent.
func (s *Store) fresh() (days []Manifest, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.recent
	return last.days, !last.at.IsZero() && s.now().Sub(last.at) < recentFor
}
