// Package places limits how many operations of a kind a node runs concurrently, in total and for each tenant. A
// tenant with clients that send or read slowly, or not at all, therefore leaves capacity for the others.
package places

import (
	"context"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// Places is a limit of concurrent operations. It is safe for concurrent use.
type Places struct {
	all  chan struct{}
	each int           // limit of one tenant
	wait time.Duration // maximum wait for capacity
	busy Busy

	mu     sync.Mutex
	shares map[string]*share // of tenants that use or await capacity
}

type share struct {
	taken chan struct{}
	users int
}

// Busy is the error code and message for a lack of capacity.
type Busy struct{ Code, Message string }

// New returns a limit of all operations and of each operations of one tenant. Take waits up to wait.
func New(all, each int, wait time.Duration, busy Busy) *Places {
	return &Places{all: make(chan struct{}, all), each: each, wait: wait, busy: busy, shares: make(map[string]*share)}
}

// Take waits for capacity, which leave releases. Its error is the context's error, or a 503 with Retry-After.
func (p *Places) Take(ctx context.Context, tenant string) (leave func(), err error) {
	soon, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	s := p.join(tenant)
	// Acquire the tenant's capacity first: a tenant at its limit must not occupy common capacity while waiting.
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

// join returns a tenant's share. The share is removed when all users have called part.
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
	default: // use free capacity even if the context has ended
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
	return problem.Unavailable(p.busy.Code, p.busy.Message, time.Second)
}
