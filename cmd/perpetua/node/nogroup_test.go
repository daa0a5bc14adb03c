package node

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
)

// groupless is a connection to a broker over which nobody can ask about groups: it breaks instead.
type groupless struct {
	net.Conn
	asked *atomic.Int64
}

// Write takes one request: its length, then the number that says what it is.
func (c groupless) Write(b []byte) (int, error) {
	if len(b) >= 6 {
		switch key := int16(binary.BigEndian.Uint16(b[4:])); key {
		case kmsg.FindCoordinator.Int16(), kmsg.DescribeGroups.Int16():
			c.asked.Add(1)
			c.Conn.Close()
			return 0, errors.New("a test")
		}
	}
	return c.Conn.Write(b)
}

// TestAnAPINodeFindsTheOwnerWithoutTheGroup starts a node beside the owner, which nobody can tell who is in the group.
// It goes by the log, and is ready.
func TestAnAPINodeFindsTheOwnerWithoutTheGroup(t *testing.T) {
	b := newBench(t, journals.All())
	owner := b.start(t)
	c := b.config
	c.ID, c.Alone, c.Roles = "api", false, Roles{API: true}
	var asked atomic.Int64
	dial := c.Dial
	c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return groupless{conn, &asked}, nil
	}
	api, _ := b.run(t, c) // which waits until it has found the owners of all journals
	api.Announce()
	b.readiness(t, api, "ready", nil)
	for _, f := range api.followers {
		if at, err := api.engine.owners.Owner(t.Context(), f.Name(), 0); at != owner.URL() || err != nil {
			t.Errorf("the owner of %s is %q, %v", f.Name(), at, err)
		}
	}
	if _, err := api.engine.owners.Engines(t.Context()); err == nil || asked.Load() == 0 {
		t.Errorf("the group was asked %d times: %v", asked.Load(), err)
	}
}
