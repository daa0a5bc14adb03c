package node

import (
	"context"
	"fmt"
	"net/http"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
	"github.com/perpetua-exchange/perpetua/streams/peer"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// engine submits commands to the owner of their journal, on this node or another one.
type engine struct {
	owners    owners
	engine    *ownership.Node // the same object if the node has the engine role; else nil
	neighbors *neighbors
	journals  journals.Table
	commands  submit.BatchSubmitter // submits commands to the owner on any node
	streams   *peer.Client
	served    *peer.Server // nil without the engine role
}

// owners accepts commands and names the owners of journals.
type owners interface {
	submit.BatchSubmitter
	// Owner returns the URL of the node that owns a partition, or "". The information comes from that node or from the
	// group of engines.
	Owner(ctx context.Context, name string, partition int32) (string, error)
	// Engines returns the members of that group.
	Engines(ctx context.Context) ([]ownership.Engine, error)
	// Begin passes on the seed that the reading of a journal starts from, and Read each later record, because the log
	// names the owner.
	Read(name string, partition int32, e record.Entry)
	Begin(name string, partition int32, s *record.Seed)
	Close()
}

// openOwning creates an engine if the node has that role, else a finder of owners.
func openOwning(c Config, s *stores, url string, venue func() string) (o engine, err error) {
	encryption, err := c.Settings.PeerClientTLS()
	if err != nil {
		return engine{}, err
	}
	o.neighbors, o.journals = newNeighbors(c.Box), c.Journals
	if c.Follow != nil {
		o.owners, o.commands = noEngines{}, noEngines{}
		return o, nil
	}
	trust(o.neighbors.client, encryption)
	if c.Network.Dial != nil {
		o.neighbors.client.Transport.(*http.Transport).DialContext = c.Network.Dial
	}
	if c.Roles.Engine {
		o.engine, err = ownership.New(ownership.Config{Client: s.client, NodeID: c.ID, URL: url, Build: build,
			Rules: c.Journals.Rules(), Known: s.known(c), Seed: s.snapshots.Seed, Neighbors: o.neighbors, Dial: c.Network.Dial,
			OtherClock: s.postgresTime, AcceptClock: c.Settings.Writer.AcceptClock})
		if err != nil {
			return engine{}, err
		}
		o.owners = o.engine
	} else {
		finder, err := ownership.NewFinder(s.client, o.neighbors, url, c.Journals.Names()...)
		if err != nil {
			return engine{}, err
		}
		o.owners = finder
	}
	o.openStreams(c, s, venue, encryption)
	return o, nil
}

// run owns the assigned partitions until the context ends, and then hands them over.
func (o *engine) run(ctx context.Context) error {
	if o.engine == nil {
		return nil
	}
	if err := o.engine.Run(ctx); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	return nil
}

func (o *engine) close() {
	if o.streams != nil {
		o.streams.Close()
	}
	if o.owners != nil {
		o.owners.Close()
	}
}

// learnFrom passes the records of the followers' journals to the finder of owners. It MUST be called before they run.
func (o *engine) learnFrom(all followers) {
	if o.streams == nil {
		return
	}
	for _, f := range all {
		o.owners.Begin(f.Name(), 0, f.seed)
		f.fold.Listen(func(e record.Entry, _ decide.State) { o.owners.Read(f.Name(), 0, e) })
		o.streams.Begin(f.Name(), 0, f.seed)
		f.fold.Listen(func(e record.Entry, _ decide.State) { o.streams.Read(f.Name(), 0, e) })
	}
}
