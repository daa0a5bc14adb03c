package live

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// sessionsOfEngine takes what a hub tells of its sessions.
type sessionsOfEngine struct {
	opening func() // called before a session counts as opened

	mu     sync.Mutex
	opened scalar.ID
	ended  []scalar.ID
}

func (e *sessionsOfEngine) Submit(_ context.Context, _ string, c decide.Command) (submit.Result, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch p := c.Payload.(type) {
	case *trading.OpenSession:
		e.opening()
		e.opened = p.Session
	case *trading.EndSession:
		e.ended = append(e.ended, p.Session)
	}
	return submit.Result{}, nil
}

// TestASessionThatEndsWhileItIsArmed: who finds it among the armed finds its id as well, and the engine is told of the end of
// the very session that it has opened. Otherwise it would be told of none, and the orders of a connection that is gone would rest
// for as long as its node lives.
func TestASessionThatEndsWhileItIsArmed(t *testing.T) {
	s := &session{ctx: t.Context(), auth: authentication{who: &access.Principal{Username: "u", Broker: "alpha", Scopes: []string{access.ScopeTrade}}}}
	engine := &sessionsOfEngine{opening: s.mu.Lock}
	h := &Hub{ctx: t.Context(), sources: sources{rest: new(rest.Server)}, gateway: gateway{id: operation.NewID(), nodes: engine, armed: make(map[*session]struct{}), keeping: true}}
	s.hub = h
	armed := make(chan *refusal, 1)
	go func() { armed <- h.arm(s, &request{}) }()
	seen := false
	for taken := 0; taken < 1000 && !seen; { // until arm waits for the session's lock
		if taken++; h.mu.TryLock() {
			_, seen = h.gateway.armed[s]
			taken = 0
			h.mu.Unlock()
		}
		runtime.Gosched()
	}
	if seen {
		t.Error("it is among the armed before it has its id")
	}
	s.ending.ended = true
	s.mu.Unlock()
	h.disarm(s)
	if refused := <-armed; refused != nil {
		t.Fatal(refused.message)
	}
	h.serving.Wait()
	if !slices.Equal(engine.ended, []scalar.ID{engine.opened}) {
		t.Errorf("the engine has opened %v, and was told of the end of %v", engine.opened, engine.ended)
	}
}
