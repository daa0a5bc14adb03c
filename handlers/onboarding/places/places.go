// Package places limits how many operations of a kind a node runs concurrently, in total and for each tenant. So a tenant
// whose clients send or read slowly, or not at all, leaves capacity for the others.
package places

import (
	"context"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// Places are what is done at a time. They are safe for concurrent use.
type Places struct {
	all  chan struct{}
	each int           // of one tenant
	wait time.Duration // for others to end
	busy Busy

	mu     sync.Mutex
	shares map[string]*share // of the tenants that have a place or wait for one
}

type share struct {
	taken chan struct{}
	users int
}

// Busy is what is answered where there is no place: a code, and a sentence.
type Busy struct{ Code, Message string }

// New returns so many places, of which one tenant has at most each, and which are waited for so long.
func New(all, each int, wait time.Duration, busy Busy) *Places {
	return &Places{all: make(chan struct{}, all), each: each, wait: wait, busy: busy, shares: make(map[string]*share)}
}

// Take waits for a place, which leave gives back. Its error is that of the context, or a 503 that says when to come again.
func (p *Places) Take(ctx context.Context, tenant string) (leave func(), err error) {
	soon, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	s := p.join(tenant)
	// The tenant's own place first: who waits for one of those must not take up another's.
	if !enter(soon, s.taken) {
		p.part(tenant, s)
		return nil, p.none(ctx)
	}
	if !enter(soon, p.all) {
		<-s.taken
		p.part(tenant, s)
		return nil, p.none(ctx)
	}
	return func() {
		<-p.all
		<-s.taken
		p.part(tenant, s)
	}, nil
}

// join returns a tenant's share, which is kept until all who joined have parted from it.
func (p *Places) join(tenant string) *share {
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

func (p *Places) part(tenant string, s *share) {
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

func (p *Places) none(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return web.Unavailable(p.busy.Code, p.busy.Message, time.Second)
}
