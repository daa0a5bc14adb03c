package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
)

// TestCommandsBetweenNodes: a node without the engine role has its commands decided by the node that owns the journal, over a
// stream. A node of build 0.1.0 that submits one without a stream is told that it was not accepted.
func TestCommandsBetweenNodes(t *testing.T) {
	all := newBench(t, journals.All())
	all.config.Alone = false
	begin := func(id string, roles Roles) *Node {
		c := all.config
		c.ID, c.Roles = id, roles
		n, _ := all.run(t, c)
		return n
	}
	owner, n := begin("owner", Roles{Engine: true, Projector: true}), begin("node", Roles{API: true})
	tries := 0
	eventually(t, "the broker", func() string {
		tries++
		payload := &identity.RegisterBroker{Broker: fmt.Sprintf("alpha%d", tries), Name: "A broker"}
		result, err := n.Submitter().Submit(t.Context(), journals.Identity, decide.Command{ID: operation.NewID(), Type: payload.CommandType(),
			Actor: decide.Actor{System: "seed"}, Payload: payload})
		if err != nil {
			return err.Error()
		}
		if _, ok := operation.Find[*identity.BrokerRegistered](result.Entry.Record); !ok {
			t.Errorf("the answer is %+v", result.Entry.Record)
		}
		return ""
	})
	if got := testutil.ToFloat64(n.engine.streams.Collectors()[1]); got == 0 {
		t.Error("no command went over a stream")
	}
	response, err := http.Post(owner.URL()+olderPath, "application/json", strings.NewReader(`{"journal":"identity","type":"broker.register"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ Code string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK || answer.Code != "NOT_ACCEPTED" {
		t.Errorf("a node of build 0.1.0 is answered %s %+v: %v", response.Status, answer, err)
	}
}
