package node

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// TestCommandsBetweenNodes: a node without the engine role has its commands decided by the node that owns the journal:
// over a stream, and over HTTP if either of them is of a build without streams.
func TestCommandsBetweenNodes(t *testing.T) {
	all := newBench(t, journals.All())
	all.config.Alone = false
	begin := func(t *testing.T, id string, roles Roles, streams bool) (*Node, func()) {
		c := all.config
		settings := *c.Settings
		settings.PeerStreams = streams
		c.Settings, c.ID, c.Roles = &settings, id, roles
		return all.run(t, c)
	}
	for i, c := range []struct{ owner, node bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		t.Run(fmt.Sprintf("owner %t, node %t", c.owner, c.node), func(t *testing.T) {
			_, stopOwner := begin(t, fmt.Sprint("owner", i), Roles{Engine: true, Projector: true}, c.owner)
			n, stop := begin(t, fmt.Sprint("node", i), Roles{API: true}, c.node)
			defer stopOwner()
			defer stop()
			payload := &identity.RegisterBroker{Broker: fmt.Sprint("broker", i), Name: "A broker"}
			eventually(t, "the broker", func() string {
				result, err := n.Submitter().Submit(t.Context(), journals.Identity, decide.Command{ID: web.NewID(), Type: payload.CommandType(),
					Actor: decide.Actor{System: "seed"}, Payload: payload})
				if err != nil {
					return err.Error()
				}
				if _, ok := web.Find[*identity.BrokerRegistered](result.Entry.Record); !ok {
					t.Errorf("the answer is %+v", result.Entry.Record)
				}
				return ""
			})
			over := 0.0
			if c.owner && c.node {
				over = 1
			}
			if c.node {
				if got := testutil.ToFloat64(n.engine.streams.Collectors()[1]); got != over {
					t.Errorf("%v commands went over streams", got)
				}
			}
		})
	}
}
