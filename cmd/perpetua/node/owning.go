package node

import (
	"context"
	"fmt"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
)

// owning is how commands get to the owner of their journal, this node or another.
type owning struct {
	owners owners
	engine *ownership.Node // the same, where the node has the role; else nil
	peers  *peers
}

// owners take commands and say who would.
type owners interface {
	journal.BatchSubmitter
	// Owner returns the URL of the node that the group of engines has assigned a partition to, or "".
	Owner(ctx context.Context, name string, partition int32) (string, error)
	// Engines returns the nodes of that group.
	Engines(ctx context.Context) ([]ownership.Engine, error)
	Close()
}

// openOwning makes the node one of the owners, or one that only finds them.
func openOwning(c Config, s *stores, url string) (o owning, err error) {
	if c.Roles.Engine {
		o.engine, err = ownership.New(ownership.Config{Client: s.client, NodeID: c.ID, URL: url, Build: build,
			Rules: c.Journals.Rules(), Known: s.known(), Seed: s.snapshots.Seed,
			OtherClock: s.postgresTime, AcceptClock: c.Settings.AcceptClock})
		if err != nil {
			return owning{}, err
		}
		o.owners = o.engine
	} else {
		finder, err := ownership.NewFinder(s.client, c.Journals.Names()...)
		if err != nil {
			return owning{}, err
		}
		o.owners = finder
	}
	o.peers = newPeers(o.owners, c.Journals, c.Box)
	return o, nil
}

// run owns what the group assigns until the context ends, and hands it over.
func (o *owning) run(ctx context.Context) error {
	if o.engine == nil {
		return nil
	}
	if err := o.engine.Run(ctx); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	return nil
}

func (o *owning) close() {
	if o.owners != nil {
		o.owners.Close()
	}
}
