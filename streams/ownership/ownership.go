// Package ownership distributes the partitions of the journals over the nodes and finds the owner of each. It makes
// ownership fast, not safe: the log alone decides which records are valid (package record).
//
// Start reading at Finder, with which every node finds the owners: the log names them, and named.go says when a name
// counts. Node is an engine: a member of the group (membership.go) that takes commands for the partitions that it owns
// (submit.go), folds those that it does not own (standby.go), and removes members that are dead (watch.go) or silent
// (pulse.go).
//
// The nodes are static members of one classic consumer group, so that a node keeps its partitions over a restart. The
// members consume nothing: an assigned partition is an owned one. A member's client id is the URL at which other nodes
// reach it.
package ownership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Group is the name of the consumer group, after the prefix.
const Group = "perpetua-engine"

// Config configures a Node.
type Config struct {
	Client *journal.Client
	NodeID string // static member id in the group, the same after a restart
	URL    string // URL at which other nodes reach this one
	Build  string
	Rules  []decide.Rules // one for each journal
	Known  []journal.Known

	Neighbors Neighbors // to ask other nodes for their terms; nil: only the group names the owners
	// Dial dials the ports of the other engines; nil for the default.
	Dial dialer

	Seed func(ctx context.Context, journal string, partition int32) (*record.Seed, error) // nil: fold from genesis

	OtherClock  func(context.Context) (time.Time, error) // reference for this node's clock, used if it answers; nil for none
	AcceptClock bool                                     // own partitions even if this node's clock is wrong
}

// Node is this process's membership in the group of engines. It implements submit.BatchSubmitter.
type Node struct {
	cfg   Config
	log   *slog.Logger
	rules map[string]decide.Rules
	find  *Finder

	lease  *lease
	askers *askers

	mu     sync.Mutex
	owners map[submit.Shard]*journal.Owner // created at the first assignment, and kept because some state outlives a term
	ready  map[submit.Shard]*standby       // one for each owner
	runs   map[submit.Shard]*run           // of the partitions that are assigned now

	joined     sync.Mutex
	membership *kgo.Client // nil while this node is not a member

	removals *prometheus.CounterVec // removals of other nodes from the group, by reason
	removing sync.Mutex
	removed  map[string]removal // last removal of each node
}

// New returns a node. It owns nothing before Run.
func New(cfg Config) (*Node, error) {
	if cfg.NodeID == "" || cfg.URL == "" {
		return nil, errors.New("ownership: a node needs an id and a URL")
	}
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	var names []string
	for _, r := range cfg.Rules {
		names = append(names, r.Journal())
	}
	find, err := NewFinder(cfg.Client, cfg.Neighbors, cfg.URL, names...)
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, log: cfg.Client.Logger().With("node", cfg.NodeID), rules: make(map[string]decide.Rules),
		find: find, owners: make(map[submit.Shard]*journal.Owner),
		ready: make(map[submit.Shard]*standby), runs: make(map[submit.Shard]*run),
		lease: newLease(cfg.Client.Elapsed), askers: newAskers(cfg.Client.Elapsed), removals: newRemovals(), removed: make(map[string]removal)}
	for _, r := range cfg.Rules {
		n.rules[r.Journal()] = r
		if _, err := n.owner(submit.Shard{Journal: r.Journal()}); err != nil {
			find.Close()
			return nil, err
		}
	}
	return n, nil
}

// Close closes the node's connections. It must be called after Run has returned and no command is submitted any more.
func (n *Node) Close() { n.find.Close() }

// owner returns the owner of a partition. It creates the owner at the first call.
func (n *Node) owner(p submit.Shard) (*journal.Owner, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if o := n.owners[p]; o != nil {
		return o, nil
	}
	rules, ok := n.rules[p.Journal]
	if !ok {
		return nil, fmt.Errorf("ownership: no rules for journal %q", p.Journal)
	}
	s := &standby{client: n.cfg.Client, rules: rules, partition: p.Partition}
	if n.cfg.Seed != nil {
		s.from = func(ctx context.Context) (*record.Seed, error) { return n.cfg.Seed(ctx, p.Journal, p.Partition) }
	}
	cfg := journal.OwnerConfig{Client: n.cfg.Client, Rules: rules, Partition: p.Partition, Node: n.cfg.NodeID,
		URL: n.cfg.URL, Build: n.cfg.Build, OtherClock: n.cfg.OtherClock, AcceptClock: n.cfg.AcceptClock,
		LogVerified: s.met.Load}
	for _, k := range n.cfg.Known {
		cfg.Known = append(cfg.Known, unverified{k, p, s})
	}
	cfg.Interrupted = s.keep
	cfg.Seed = func(ctx context.Context) (*record.Seed, error) {
		if seed := s.take(); seed != nil {
			return seed, nil
		}
		return s.start(ctx)
	}
	o, err := journal.NewOwner(cfg)
	if err != nil {
		return nil, err
	}
	s.seeks = o.Anchors()
	n.owners[p], n.ready[p] = o, s
	return o, nil
}

// Read passes the node a record of a journal's log: see Finder.Read.
func (n *Node) Read(name string, partition int32, e record.Entry) { n.find.Read(name, partition, e) }

// Begin passes the node the seed that a reading starts from: see Finder.Begin.
func (n *Node) Begin(name string, partition int32, s *record.Seed) { n.find.Begin(name, partition, s) }

// Term asks this node's term goroutine for its term of a partition. It returns an error if the goroutine does not answer.
func (n *Node) Term(ctx context.Context, q Question) (Term, error) {
	p := submit.Shard{Journal: q.Journal, Partition: q.Partition}
	n.mu.Lock()
	o := n.owners[p]
	n.mu.Unlock()
	if o == nil {
		return Term{Stamp: n.askers.answer(q)}, nil
	}
	standing, serving, err := o.Standing(ctx)
	if err != nil {
		return Term{}, err
	}
	t := Term{Serving: serving, Standing: standing}
	if serving && q.Engine == "" {
		t.Log = n.logID(ctx, q.Journal)
	}
	t.Stamp = n.askers.answer(q)
	return t, nil
}

// identifyWithin is the time for which an answer about a term waits for the identity of the log.
const identifyWithin = 100 * time.Millisecond

// logID returns the identity of a journal's log, or "" if the brokers do not answer soon.
func (n *Node) logID(ctx context.Context, name string) string {
	answer := n.find.ask.DoChan("log of "+name, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), leaving)
		defer cancel()
		return n.cfg.Client.LogID(ctx, name)
	})
	late := time.NewTimer(identifyWithin)
	defer late.Stop()
	select {
	case a := <-answer:
		if a.Err == nil {
			return a.Val.(string)
		}
		n.log.Debug("asking for the identity of the log", "journal", name, "error", a.Err)
	case <-late.C:
	case <-ctx.Done():
	}
	return ""
}

// Serving returns this node's term of a partition and whether it is valid.
func (n *Node) Serving(name string, partition int32) (term int64, ok bool) {
	n.mu.Lock()
	o := n.owners[submit.Shard{Journal: name, Partition: partition}]
	n.mu.Unlock()
	if o == nil {
		return 0, false
	}
	return o.Serving()
}

// Owner returns the URL of the node that owns a partition, possibly this one, or "" if there is none.
func (n *Node) Owner(ctx context.Context, name string, partition int32) (url string, err error) {
	if _, ok := n.Serving(name, partition); ok {
		return n.cfg.URL, nil
	}
	return n.find.Owner(ctx, name, partition)
}

// Engines asks the group for its members, including this node.
func (n *Node) Engines(ctx context.Context) ([]Engine, error) { return n.find.Engines(ctx) }
