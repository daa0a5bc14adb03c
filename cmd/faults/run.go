package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/broker/kafkatest"
)

// patience bounds every wait for an event that must happen.
const patience = 2 * time.Minute

// steady is the number of orders that the venue must accept between two faults to count as recovered.
const steady = 25

// long is the shortest fault during which the venue must accept orders again. It is twice the goal for the longest gap, so
// that a busy machine passes.
const long = 10 * time.Second

// apart is the shortest time from the beginning of a pause or silence of an owner to the beginning of the next. Engines remove
// the same node from the group at most once in 30 s; within that time its silence lasts until the group's session ends, 6 s.
const apart = 31 * time.Second

// settling is a little longer than the brokers' replica.lag.time.max.ms.
const settling = 6 * time.Second

// lineWriter receives progress messages.
type lineWriter = io.Writer

// result is the measurement of one fault.
type result struct {
	Number      int           `json:"number"`
	Kind        string        `json:"kind"`
	Victim      string        `json:"victim"`
	Parts       []string      `json:"parts"` // the victim's roles
	Down        time.Duration `json:"down_ns"`
	Gap         time.Duration `json:"gap_ns"`      // longest time between two accepted orders, at any API node
	NodeGap     time.Duration `json:"node_gap_ns"` // longest such time at a single API node
	Recovery    time.Duration `json:"recovery_ns"` // from the end of the fault until all replicas and nodes were well
	Unrecovered string        `json:"unrecovered,omitempty"`
	Idle        []string      `json:"idle,omitempty"` // API nodes that accepted no order in the second half of a long fault

	kind kind
	both bool // the victim was the active controller and led the trading partition
}

// needKafka looks for Java or Docker. Without both, it prints why the program is skipped and returns exitSkipped.
func needKafka(ctx context.Context, out io.Writer) int {
	if err := kafkatest.Available(ctx); err != nil {
		fmt.Fprintf(out, "faults: skipped, since three Kafka brokers cannot run here: %v\n", err)
		return exitSkipped
	}
	return exitGood
}

// run sets up the venue, injects the faults, compares the answers with the log and reports.
func run(ctx context.Context, o options, net network, out, errs io.Writer) (code int, err error) {
	if code := needKafka(ctx, out); code != exitGood {
		return code, nil
	}
	if _, err := os.Stat(o.binary); err != nil {
		return exitSetup, fmt.Errorf("the binary under test: %w", err)
	}
	dir, err := os.MkdirTemp("", "perpetua-faults-")
	if err != nil {
		return exitSetup, err
	}
	defer func() {
		if o.keep || code == exitBad {
			fmt.Fprintf(out, "the logs of nodes and brokers are in %s\n", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	fmt.Fprintln(errs, "faults: starting three brokers")
	b, err := startBrokers(ctx, net, errs)
	if err != nil {
		return exitSetup, err
	}
	defer func() {
		if o.keep || code == exitBad {
			err = errors.Join(err, b.keepOutput(dir))
		}
		err = errors.Join(err, b.Close())
	}()
	fmt.Fprintln(errs, "faults: starting the venue")
	v, err := startVenue(ctx, o.binary, dir, b.Brokers(), net)
	if v != nil {
		defer func() {
			if closing := v.close(); closing != nil {
				fmt.Fprintln(errs, "faults: stopping the venue:", closing)
			}
		}()
	}
	if err != nil {
		return exitSetup, err
	}
	l, err := newLoad(ctx, v, o)
	if err != nil {
		return exitSetup, err
	}
	t := &trial{options: o, brokers: b, venue: v, load: l, out: out, dir: dir}
	err = t.inject(ctx)
	if ctx.Err() != nil && len(t.results) > 0 {
		fmt.Fprintln(out, "interrupted: the report is of the faults so far")
		return t.conclude(context.WithoutCancel(ctx))
	}
	if err != nil {
		return exitSetup, err
	}
	return t.conclude(ctx)
}

// trial is a venue under load that faults are injected into.
type trial struct {
	options
	brokers *brokers
	venue   *venue
	load    *load
	out     io.Writer
	dir     string
	results []result
	hung    time.Time // when the last pause or silence of an owner began
}

// inject runs the faults under load. An error means that the trial itself is broken. A venue that does not recover is not
// an error but a result.
func (t *trial) inject(ctx context.Context) error {
	loading, stop := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() { t.load.run(loading) })
	defer working.Wait()
	defer stop()
	if err := t.recovered(ctx); err != nil {
		return fmt.Errorf("before the first fault: %w", err)
	}
	kinds := t.kinds
	if kinds == nil {
		kinds = allKinds(t.brokers.net != nil)
	}
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return k.action == silence && t.brokers.net == nil })
	if len(kinds) == 0 {
		return errors.New("no kind of fault is possible here")
	}
	began := time.Now()
	fmt.Fprintf(t.out, "seed %d, %d faults of up to %v, %d orders a second\n\n", t.seed, t.faults, t.down, t.rate)
	for i, p := range plan(t.seed, t.faults, kinds, t.down) {
		if t.duration > 0 && time.Since(began) > t.duration {
			fmt.Fprintf(t.out, "%d of %d faults: the time is over\n", i, t.faults)
			break
		}
		r, err := t.fault(ctx, i+1, p)
		if err != nil {
			return fmt.Errorf("fault %d, %v: %w", i+1, p.kind, err)
		}
		t.results = append(t.results, r)
		fmt.Fprintln(t.out, r)
		if r.Unrecovered != "" {
			fmt.Fprintln(t.out, "the venue did not recover, so no further fault is injected")
			break
		}
	}
	return nil
}

// fault injects one fault, waits until the venue has recovered, and measures the gap.
func (t *trial) fault(ctx context.Context, number int, p planned) (result, error) {
	if err := t.brokers.deal(ctx, p.leader, p.coordinator); err != nil {
		return result{}, fmt.Errorf("move the leaders: %w", err)
	}
	if err := t.recovered(ctx); err != nil {
		return result{}, fmt.Errorf("after the leaders were moved: %w", err)
	}
	// A replica counts as in sync until replica.lag.time.max.ms has passed, even if its connection to the new leader still
	// hangs from an earlier fault. Losing another broker before that would be two failures in one.
	pause := settling
	if p.kind.hangs() {
		pause = max(pause, time.Until(t.hung.Add(apart)))
	}
	select {
	case <-ctx.Done():
		return result{}, ctx.Err()
	case <-time.After(pause):
	}
	if err := t.recovered(ctx); err != nil {
		return result{}, fmt.Errorf("after the leaders were moved: %w", err)
	}
	roles, err := t.whoIsWho(ctx)
	if err != nil {
		return result{}, err
	}
	r := result{Number: number, Kind: p.kind.String(), kind: p.kind, Down: p.down}
	begin, end, err := t.aim(&r, roles, p)
	if err != nil {
		return result{}, err
	}
	from := time.Now()
	if p.kind.hangs() {
		t.hung = from
	}
	if err := begin(); err != nil {
		return result{}, err
	}
	select {
	case <-ctx.Done():
	case <-time.After(p.down):
	}
	ended := time.Now()
	if p.down >= long {
		r.Idle = t.load.idle(from.Add(p.down/2), ended)
	}
	if err := end(); err != nil {
		return result{}, err
	}
	if ctx.Err() != nil {
		return result{}, ctx.Err()
	}
	if err := t.recovered(ctx); err != nil {
		r.Unrecovered = err.Error()
	}
	to := time.Now()
	r.Recovery = to.Sub(ended)
	r.Gap, r.NodeGap = t.load.longestGap(from, to)
	return r, ctx.Err()
}

// whoIsWho asks for the roles until every one is taken: right after a fault the group may be rebalancing.
func (t *trial) whoIsWho(ctx context.Context) (roles, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		r, err := t.brokers.roles(ctx)
		if err == nil && t.venue.at(r.ownerURL) == nil {
			err = fmt.Errorf("%s is no engine of the venue", r.ownerURL)
		}
		if err == nil {
			return r, nil
		}
		select {
		case <-ctx.Done():
			return roles{}, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// aim chooses the victim and returns the functions that begin and end its fault.
func (t *trial) aim(r *result, now roles, p planned) (begin, end func() error, err error) {
	if p.kind.target == owner {
		n := t.venue.at(now.ownerURL)
		r.Victim, r.Parts = n.name, []string{string(owner)}
		switch p.kind.action {
		case kill:
			return func() error { n.process.kill(); return nil }, func() error { return t.venue.start(n) }, nil
		case silence:
			return func() error { return t.brokers.net.cut(n.host) }, func() error { return t.brokers.net.join(n.host) }, nil
		}
		return func() error { return n.process.signal(syscall.SIGSTOP) }, func() error { return n.process.signal(syscall.SIGCONT) }, nil
	}
	victim := map[target]int{leader: now.leader, coordinator: now.coordinator, controller: now.controller}[p.kind.target]
	if p.kind.target == follower {
		victim = (now.leader+int(p.pick%2))%len(t.brokers.Brokers()) + 1
	}
	r.Victim = fmt.Sprintf("broker-%d", victim)
	for _, part := range []struct {
		name target
		node int
	}{{leader, now.leader}, {coordinator, now.coordinator}, {controller, now.controller}} {
		if part.node == victim {
			r.Parts = append(r.Parts, string(part.name))
		}
	}
	r.both = now.leader == victim && now.controller == victim
	return func() error { return t.brokers.begin(p.kind.action, victim) }, func() error { return t.brokers.end(p.kind.action, victim) }, nil
}

// recovered waits until all replicas are in sync, all nodes are ready, and orders are accepted at a steady rate.
func (t *trial) recovered(ctx context.Context) error {
	if err := t.brokers.awaitInSync(ctx); err != nil {
		return err
	}
	if err := t.venue.await(ctx); err != nil {
		return err
	}
	return t.load.awaitAccepted(ctx, time.Now(), steady)
}
