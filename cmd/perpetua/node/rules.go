package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/handlers/admin"
)

// rulesPath is the route on which a node reports the highest rules number that it supports for each journal. It needs
// no authorization.
const rulesPath = "/internal/v1/rules"

// asking bounds the wait for a node's answer.
const asking = 5 * time.Second

// maxRules limits the size of the answer in bytes.
const maxRules = 64 << 10

// serveRules answers the question of another node.
func serveRules(table journals.Table) echo.HandlerFunc {
	return func(c echo.Context) error { return c.JSON(http.StatusOK, table.Newest()) }
}

// rules asks all engines of the group for the rules that they support. The result includes this node, even if it is not
// in the group.
func (o *engine) rules(ctx context.Context, self string) ([]admin.Node, error) {
	engines, err := o.owners.Engines(ctx)
	if err != nil {
		return nil, err
	}
	nodes := []admin.Node{{Name: self, Rules: o.journals.Newest()}}
	for _, e := range engines {
		if e.URL != self {
			nodes = append(nodes, admin.Node{Name: e.URL})
		}
	}
	var all errgroup.Group
	for i := range nodes[1:] {
		n := &nodes[i+1]
		all.Go(func() error {
			n.Rules, n.Err = o.neighbors.rulesOf(ctx, n.Name)
			return nil
		})
	}
	return nodes, all.Wait()
}

// rulesOf asks one node.
func (n *neighbors) rulesOf(ctx context.Context, url string) (map[string]int, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+rulesPath, nil)
	if err != nil {
		return nil, err
	}
	response, err := n.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK { // an older build without this route
		return nil, fmt.Errorf("%s answered %s", url, response.Status)
	}
	known := make(map[string]int)
	return known, json.NewDecoder(io.LimitReader(response.Body, maxRules)).Decode(&known)
}
