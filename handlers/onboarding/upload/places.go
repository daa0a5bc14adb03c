package upload

import (
	"context"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// places bounds how many uploads a node receives at a time: in all, and of one tenant. So a tenant whose clients send slowly,
// or nothing at all, leaves room for the others.
type places struct {
	all  chan struct{}
	each int           // of one tenant
	wait time.Duration // for others to end

	mu     sync.Mutex
	shares map[string]*share // of the tenants that have a place or wait for one
}

type share struct {
	taken chan struct{}
	users int
}

func newPlaces(all, each int, wait time.Duration) *places {
	return &places{all: make(chan struct{}, all), each: each, wait: wait, shares: make(map[string]*share)}
}

// take waits for a place, which leave gives back.
func (p *places) take(ctx context.Context, tenant string) (leave func(), err error) {
	soon, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	s := p.join(tenant)
	// The tenant's own place first: who waits for one of those must not take up another's.
	if !enter(soon, s.taken) {
		p.part(tenant, s)
		return nil, busy(ctx)
	}
	if !enter(soon, p.all) {
		<-s.taken
		p.part(tenant, s)
		return nil, busy(ctx)
	}
	return func() {
		<-p.all
		<-s.taken
		p.part(tenant, s)
	}, nil
}

// join returns a tenant's share, which is kept until all who joined have parted from it.
func (p *places) join(tenant string) *share {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shares[tenant]
	if s == nil {
		s = &share{taken: make(chan struct{}, p.each)}
		p.shares[tenant] = s
	}
	s.users++
	return s
}

func (p *places) part(tenant string, s *share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(p.shares, tenant)
	}
}

func enter(ctx context.Context, into chan<- struct{}) bool {
	select {
	case into <- struct{}{}:
		return true
	default: // a place that is free is taken, also by who has no time to wait
	}
	select {
	case into <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func busy(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return web.Unavailable("UPLOADS_BUSY", "Too many files are being uploaded.", time.Second)
}
