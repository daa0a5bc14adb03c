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

	"github.com/perpetua-exchange/perpetua/handlers/admin"
)

// rulesPath is where a node tells other nodes which rules it knows: the highest number of each journal. Anybody may ask.
const rulesPath = "/internal/v1/rules"

// asking is how long a node may take to say so.
const asking = 5 * time.Second

// serveRules answers another node.
func (p *peers) serveRules(c echo.Context) error {
	return c.JSON(http.StatusOK, p.journals.Newest())
}

// rules asks every engine which rules it knows: the nodes of the group, and this one whether it is of the group or not.
func (o *owning) rules(ctx context.Context, self string) ([]admin.Node, error) {
	engines, err := o.owners.Engines(ctx)
	if err != nil {
		return nil, err
	}
	nodes := []admin.Node{{Name: self, Rules: o.peers.journals.Newest()}}
	for _, e := range engines {
		if e.URL != self {
			nodes = append(nodes, admin.Node{Name: e.URL})
		}
	}
	var all errgroup.Group
	for i := range nodes[1:] {
		n := &nodes[i+1]
		all.Go(func() error {
			n.Rules, n.Err = o.peers.rulesOf(ctx, n.Name)
			return nil
		})
	}
	return nodes, all.Wait()
}

// rulesOf asks a node.
func (p *peers) rulesOf(ctx context.Context, url string) (map[string]int, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+rulesPath, nil)
	if err != nil {
		return nil, err
	}
	response, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK { // a build from before there was such a question
		return nil, fmt.Errorf("%s answered %s", url, response.Status)
	}
	known := make(map[string]int)
	return known, json.NewDecoder(io.LimitReader(response.Body, peerBody)).Decode(&known)
}
