// Package ownership distributes the partitions of the journals over the nodes and finds the owner of each. It makes
// ownership fast, not safe: the log alone decides which records are valid (package record).
//
// Start reading at Finder, with which every node finds the owners: the log names them, and named.go says when a name
// counts. Node is an engine: a member of the group (this file) that folds the partitions that it does not own
// (standby.go), and removes members that are dead (watch.go) or silent (pulse.go).
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
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// Group is the name of the consumer group, after the prefix.
const Group = "perpetua-engine"

// The group's times. Unless the watch notices the death of a node, the group notices it after the session timeout; a
// node that stops leaves the group. The other members learn of a change with their next heartbeat, and until then a
// partition that moves has no owner.
const (
	session   = 6 * time.Second
	heartbeat = 300 * time.Millisecond
	rebalance = 10 * time.Second
	leaving   = 5 * time.Second // limit for leaving the group
	away      = 2 * time.Second // time for which a node stays out of the group after it met a foreign term

	identifyWithin = 100 * time.Millisecond // time for which an answer about a term waits for the identity of the log
)

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

// place identifies one partition of one journal.
type place struct {
	journal   string
	partition int32
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
	owners map[place]*journal.Owner // created at the first assignment, and kept because some state outlives a term
	ready  map[place]*standby       // one for each owner
	runs   map[place]*run           // of the partitions that are assigned now

	joined     sync.Mutex
	membership *kgo.Client // nil while this node is not a member

	removals *prometheus.CounterVec // removals of other nodes from the group, by reason
	removing sync.Mutex
	removed  map[string]removal // last removal of each node
}

// run is a running owner.
type run struct {
	stop context.CancelFunc
	done chan struct{}
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
		find: find, owners: make(map[place]*journal.Owner),
		ready: make(map[place]*standby), runs: make(map[place]*run),
		lease: newLease(cfg.Client.Elapsed), askers: newAskers(cfg.Client.Elapsed), removals: newRemovals(), removed: make(map[string]removal)}
	for _, r := range cfg.Rules {
		n.rules[r.Journal()] = r
		if _, err := n.owner(place{r.Journal(), 0}); err != nil {
			find.Close()
			return nil, err
		}
	}
	return n, nil
}

// Close closes the node's connections. It must be called after Run has returned and no command is submitted any more.
func (n *Node) Close() { n.find.Close() }

// owner returns the owner of a partition. It creates the owner at the first call.
func (n *Node) owner(p place) (*journal.Owner, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if o := n.owners[p]; o != nil {
		return o, nil
	}
	rules, ok := n.rules[p.journal]
	if !ok {
		return nil, fmt.Errorf("ownership: no rules for journal %q", p.journal)
	}
	s := &standby{client: n.cfg.Client, rules: rules, partition: p.partition}
	if n.cfg.Seed != nil {
		s.from = func(ctx context.Context) (*record.Seed, error) { return n.cfg.Seed(ctx, p.journal, p.partition) }
	}
	cfg := journal.OwnerConfig{Client: n.cfg.Client, Rules: rules, Partition: p.partition, Node: n.cfg.NodeID,
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

// Run is a member of the group until the context ends, and owns the partitions assigned to it. It returns nil after a
// clean stop, when its owners have drained and it has left the group, and an error when a log is invalid.
func (n *Node) Run(ctx context.Context) error {
	following, stop := context.WithCancel(ctx)
	defer n.standDown()
	var watching sync.WaitGroup
	watching.Go(func() { n.watch(following) })
	defer watching.Wait()
	defer stop()
	for {
		n.standBy(following)
		// A node is assigned its partitions as soon as it joins, and they have no working owner until it has folded
		// them. So it folds first.
		for _, s := range n.standbys() {
			s.atTip(ctx)
		}
		n.awaitClock(ctx)
		if ctx.Err() != nil {
			return nil
		}
		err := n.member(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var foreign *term.ForeignTermError
		var clock *term.ClockError
		if !errors.As(err, &foreign) && !errors.As(err, &clock) {
			return err
		}
		// If this node owned the partition again immediately, the two nodes would fence each other forever. And a node
		// with a wrong clock gives up its partitions to the nodes with correct clocks.
		n.log.Warn("left the group of engines for a while", "error", err)
		n.standBy(following)
		timer := time.NewTimer(away)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// member is one membership, from joining to leaving. It returns the reason for its end.
func (n *Node) member(ctx context.Context) error {
	failed := make(chan error, 1)
	working, stop := context.WithCancel(ctx)
	defer stop()
	kc, err := n.join(ctx, working, failed)
	if err != nil {
		return err
	}
	n.setMembership(kc)
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	// The order matters. First, no new run can start that would outlive this membership, and the watch gets no client
	// to rebalance that is about to close. Then the owners drain while the partitions still belong to this node: once
	// another node is assigned one, it takes a term, and records that this node has in flight could no longer become
	// valid. Only then this node leaves the group.
	stop()
	n.setMembership(nil)
	n.endAll()
	n.leave(kc)
	n.endAll() // partitions assigned while leaving
	return err
}

// join creates a member of the group. Its owners run in the context working and report the reason for their end in
// failed.
func (n *Node) join(ctx, working context.Context, failed chan<- error) (*kgo.Client, error) {
	topics := make([]string, 0, len(n.rules))
	journals := make(map[string]string)
	for name := range n.rules {
		topics = append(topics, n.cfg.Client.Topic(name))
		journals[n.cfg.Client.Topic(name)] = name
	}
	each := func(do func(place)) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			for topic, ps := range partitions {
				for _, p := range ps {
					do(place{journals[topic], p})
				}
			}
		}
	}
	away := func(reason string) func(context.Context, *kgo.Client, map[string][]int32) {
		return each(func(p place) {
			n.log.Info("no longer assigned", "journal", p.journal, "partition", p.partition, "reason", reason)
			n.end(p)
			n.standBy(ctx)
		})
	}
	kc, err := n.cfg.Client.KafkaFor(journal.ForGroup,
		kgo.ClientID(n.cfg.URL),
		kgo.ConsumerGroup(n.find.group.name),
		kgo.InstanceID(n.cfg.NodeID),
		kgo.ConsumeTopics(topics...),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(heartbeat),
		kgo.RebalanceTimeout(rebalance),
		kgo.DisableAutoCommit(),
		kgo.WithHooks(n.lease),
		kgo.OnPartitionsAssigned(each(func(p place) { n.begin(working, p, failed) })),
		kgo.OnPartitionsRevoked(away("the group assigns it to another node, or this one leaves")),
		kgo.OnPartitionsLost(away("the session with the group has ended")),
	)
	if err != nil {
		return nil, err
	}
	// From here on, partitions may be assigned and owners may fail. The client must not fetch: the group only assigns
	// partitions, and other clients read the journals.
	kc.PauseFetchTopics(topics...)
	return kc, nil
}

// setMembership sets the client through which the node is a member of the group.
func (n *Node) setMembership(kc *kgo.Client) {
	n.joined.Lock()
	defer n.joined.Unlock()
	n.membership = kc
}

// standBy starts the fold of every partition that the node does not own, so that a later term starts at the tip.
func (n *Node) standBy(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for p, s := range n.ready {
		if n.runs[p] == nil && ctx.Err() == nil {
			s.begin(ctx)
		}
	}
}

// standbys returns the current standbys. An assignment may add one at any time.
func (n *Node) standbys() []*standby {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Values(n.ready))
}

// standDown ends all folds.
func (n *Node) standDown() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.ready {
		s.take()
	}
}

// begin starts to own a partition.
func (n *Node) begin(ctx context.Context, p place, failed chan<- error) {
	o, err := n.owner(p)
	if err != nil {
		select {
		case failed <- err:
		default:
		}
		return
	}
	// A partition may be lost and assigned again without a revocation in between. Two runs of one owner would wait for
	// each other.
	n.end(p)
	ctx, stop := context.WithCancel(ctx)
	r := &run{stop: stop, done: make(chan struct{})}
	n.mu.Lock()
	n.runs[p] = r
	n.mu.Unlock()
	n.log.Info("assigned", "journal", p.journal, "partition", p.partition)
	go func() {
		defer close(r.done)
		defer stop()
		if err := o.Run(ctx); err != nil {
			select {
			case failed <- err:
			default: // another partition's owner has already ended the membership
			}
		}
	}()
}

// end stops owning a partition and waits until the records in flight are drained.
func (n *Node) end(p place) {
	// The run is removed first: from here on commands are redirected instead of being submitted to an owner that stops.
	// Draining happens without the lock, because the owner's remaining commands need it.
	n.mu.Lock()
	r := n.runs[p]
	delete(n.runs, p)
	n.mu.Unlock()
	if r != nil {
		r.stop()
		<-r.done
		n.askers.forget(p)
	}
}

func (n *Node) endAll() {
	n.mu.Lock()
	runs := n.runs
	n.runs = make(map[place]*run)
	n.mu.Unlock()
	for _, r := range runs {
		r.stop()
	}
	for p, r := range runs {
		<-r.done
		n.askers.forget(p)
	}
}

// leave ends the membership so that the other nodes need not wait for the session to expire. The client of a static
// member does not leave the group when it is closed, and an open client would join again. So it is closed first, and
// then the group is asked to remove this member.
func (n *Node) leave(kc *kgo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	if n.cfg.Client.Gone() { // no broker answers any more
		cancel()
	}
	if err := kc.LeaveGroupContext(ctx); err != nil {
		n.log.Debug("ending the group session", "error", err)
	}
	kc.Close()
	if err := n.find.group.leave(ctx, n.cfg.NodeID); err != nil {
		n.log.Info("leaving the group of engines", "error", err)
	}
}

// Submit submits a command to the owner of the journal's partition if that is this node. Otherwise the error names the
// owner.
func (n *Node) Submit(ctx context.Context, name string, c decide.Command) (submit.Result, error) {
	o := n.assigned(name)
	if o == nil {
		return submit.Result{}, n.notAssigned(ctx, name)
	}
	result, err := o.Submit(ctx, c)
	if refused(err) && !n.leased(ctx, o) {
		err = errUnleased
	}
	return result, unowned(o, err)
}

// SubmitAll is Submit for several commands, which go to the same owner together. If that is another node, the outcome
// of each command names it. It implements journal.BatchSubmitter.
func (n *Node) SubmitAll(ctx context.Context, name string, cs []decide.Command) []submit.Outcome {
	o := n.assigned(name)
	if o == nil {
		return allFail(cs, n.notAssigned(ctx, name))
	}
	out := o.SubmitAll(ctx, cs)
	unleased := slices.ContainsFunc(out, func(o submit.Outcome) bool { return refused(o.Err) }) && !n.leased(ctx, o)
	for i := range out {
		if unleased && refused(out[i].Err) {
			out[i].Err = errUnleased
		}
		out[i].Err = unowned(o, out[i].Err)
	}
	return out
}

// Enqueue submits the commands of a batch to the owner as submit.Enqueuer describes, if that is this node. They MUST be bound to
// a term (see submit.InTerm), so that no other node is looked for.
func (n *Node) Enqueue(ctx context.Context, name string, b submit.Batch) (withdraw func()) {
	o := n.assigned(name)
	if o == nil {
		err := n.notAssigned(ctx, name)
		for i := range b.Commands {
			b.Reply(i, submit.Outcome{Err: err})
		}
		b.Replied()
		return func() {}
	}
	reply, replied := b.Reply, b.Replied
	b.Reply = func(i int, out submit.Outcome) {
		if !refused(out.Err) {
			out.Err = unowned(o, out.Err)
			reply(i, out)
			return
		}
		go func() { // the lease may have to be waited for
			if !n.leased(ctx, o) {
				out.Err = errUnleased
			}
			out.Err = unowned(o, out.Err)
			reply(i, out)
			replied()
		}()
	}
	return o.Enqueue(ctx, b)
}

// notAssigned returns the error of commands for a journal that is not assigned to this node. It names the owner, unless the
// commands are for a term of this node.
func (n *Node) notAssigned(ctx context.Context, name string) error {
	if submit.TermOf(ctx) != 0 {
		return &submit.NotAcceptedError{RetryAfter: time.Second, Reason: "this node no longer owns the journal", Unowned: true}
	}
	return n.find.ownerError(ctx, name)
}

// unowned marks the error of a command that was not accepted because the owner has no valid term (yet, or any more):
// another node may have one.
func unowned(o *journal.Owner, err error) error {
	var busy *submit.NotAcceptedError
	if err == nil || !errors.As(err, &busy) {
		return err
	}
	if _, serving := o.Serving(); serving {
		return err
	}
	marked := *busy
	marked.Unowned = true
	return &marked
}

// assigned returns the owner of a journal's partition, or nil if the partition is not assigned to this node.
func (n *Node) assigned(name string) *journal.Owner {
	p := place{name, 0}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.runs[p] == nil {
		return nil
	}
	return n.owners[p]
}

// Read passes the node a record of a journal's log: see Finder.Read.
func (n *Node) Read(name string, partition int32, e record.Entry) { n.find.Read(name, partition, e) }

// Begin passes the node the seed that a reading starts from: see Finder.Begin.
func (n *Node) Begin(name string, partition int32, s *record.Seed) { n.find.Begin(name, partition, s) }

// Term asks this node's term goroutine for its term of a partition. It returns an error if the goroutine does not answer.
func (n *Node) Term(ctx context.Context, q Question) (Term, error) {
	p := place{q.Journal, q.Partition}
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
	o := n.owners[place{name, partition}]
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
