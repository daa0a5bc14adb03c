package node

import (
	"context"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/version"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
	"github.com/perpetua-exchange/perpetua/streams/peer"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// openStreams creates the two sides of the streams of commands between nodes. venue names the venue, "" if that is not
// known yet.
func (o *engine) openStreams(c Config, s *stores, venue func() string) {
	key, log, build := c.Box.Derive("streams"), c.Logger.With("part", "streams"), version.Current().Version
	o.streams = peer.NewClient(peer.ClientConfig{Key: key, Venue: venue, Node: c.ID, Build: build, Logger: log, Log: s.client.LogID, Dial: c.Network.Dial,
		Events: func(name string) (*decide.Registry, error) {
			j, err := c.Journals.Of(name)
			if err != nil {
				return nil, err
			}
			return j.Rules.Registry(), nil
		}, Work: workOf})
	o.commands = &peer.Router{Here: o.owners, Client: o.streams}
	if o.engine == nil {
		return
	}
	o.served = peer.NewServer(peer.ServerConfig{Key: key, Venue: venue, Node: c.ID, Build: build, Logger: log, Owners: o.engine,
		Term: o.term,
		Payload: func(name, commandType string) (decide.Payload, bool) {
			j, err := c.Journals.Of(name)
			if err != nil || j.Payloads == nil {
				return nil, false
			}
			return j.Payloads.New(commandType)
		}})
}

// workOf implements peer.ClientConfig.Work.
func workOf(e record.Entry) (begun, finished scalar.ID) {
	for _, event := range e.Record.Events {
		switch event := event.(type) {
		case *trading.WorkStarted:
			begun = event.CommandID
		case *trading.WorkFinished:
			finished = event.CommandID
		}
	}
	return begun, finished
}

// term returns this node's term of a shard, if it is valid.
func (o *engine) term(ctx context.Context, s submit.Shard) (t peer.Term, serving bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, termPatience)
	defer cancel()
	now, err := o.engine.Term(ctx, ownership.Question{Journal: s.Journal, Partition: s.Partition})
	if err != nil || !now.Serving {
		return peer.Term{}, false, err
	}
	return peer.Term{Number: now.Term, Taken: now.Taken, Journal: now.Journal, Log: now.Log}, true, nil
}
