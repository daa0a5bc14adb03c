package node

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// grouped is a group of engines.
type grouped struct {
	owners
	engines []ownership.Engine
}

func (g grouped) Engines(context.Context) ([]ownership.Engine, error) { return g.engines, nil }

// TestRulesOfNodes checks that every engine of the group is asked which rules it knows, the asking node itself by the
// short way and also where it is no engine, and that one which does not say is named with its error.
func TestRulesOfNodes(t *testing.T) {
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	e := echo.New()
	e.GET(rulesPath, serveRules(journals.All()))
	knows, older := httptest.NewServer(e), httptest.NewServer(http.NotFoundHandler())
	defer knows.Close()
	defer older.Close()
	o := engine{journals: journals.All(), neighbors: newNeighbors(box), owners: grouped{engines: []ownership.Engine{
		{ID: "1", URL: knows.URL}, {ID: "2", URL: older.URL}, {ID: "3", URL: "http://127.0.0.1:1"}, {ID: "4", URL: "http://self"}}}}
	nodes, err := o.rules(t.Context(), "http://self")
	if err != nil || len(nodes) != 4 {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	newest := journals.All().Newest()["trading"]
	if newest < 1 || nodes[0].Name != "http://self" || nodes[0].Rules["trading"] != newest {
		t.Errorf("this node: %+v", nodes[0])
	}
	if nodes[1].Name != knows.URL || nodes[1].Rules["trading"] != newest || nodes[1].Err != nil {
		t.Errorf("one that knows: %+v", nodes[1])
	}
	if nodes[2].Name != older.URL || nodes[2].Err == nil || nodes[3].Err == nil {
		t.Errorf("those that do not say: %+v", nodes[2:])
	}
}
