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
	s.mu.Lock()
	last := s.recent
	s.mu.Unlock()
	if !last.at.IsZero() && s.now().Sub(last.at) < recentFor {
		return last.days, nil
	}
	loaded := s.loading.DoChan("", func() (any, error) {
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
