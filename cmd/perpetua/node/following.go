package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/history"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

// Following makes a node one that follows a venue: it reads the venue's log, verifies every record, and shows what it has
// verified. It appends nothing, and has no key of the venue.
type Following struct {
	// Venue is the URL of the venue's interfaces, which refusals name; "" if it is not known.
	Venue string
	// Model makes the independent model of the trading rules, which needs the log from its genesis on; nil for none.
	Model func() verify.Model
	// Archive opens the objects of the archive of --archive-url; nil if no archive is read.
	Archive *seal.Box
	// Faults return one sentence each on why the node cannot show or confirm later records, or "". They are public.
	Faults []func() string
	// Halt returns why no later records of a journal may be shown, or "". It is public. It may be nil.
	Halt func(journal string) string
}

// AlarmOfFollower raises the alarm that the journal, or what the venue has signed of it, is wrong.
func (n *Node) AlarmOfFollower(journal string, wrong error) {
	n.stores.client.AlarmOfVerifier(journal, wrong)
}

// Verified returns the number of records of the trading journal that the node has verified and applied.
func (n *Node) Verified() int64 {
	venue, err := n.Fold(journals.Trading)
	if err != nil {
		return 0
	}
	return venue.Position().Sequence + 1
}

// needsGenesis reports whether the fold of a journal must start from the genesis. f may be nil.
func (f *Following) needsGenesis(name string) bool {
	return f != nil && f.Model != nil && name == journals.Trading
}

// refusal returns the response to order entry over sockets, or nil for a node of a venue. f may be nil.
func (f *Following) refusal() *problem.Problem {
	if f == nil {
		return nil
	}
	return problem.ReadOnly(f.Venue)
}

// verifying verifies the records of a journal before they are shown.
type verifying struct {
	*verify.Continuous
	client  *journal.Client
	name    string
	earlier *follow.Marks               // positions after the seed that earlier runs have verified
	marks   *follow.Marks               // what the readers of the log other than the fold compare with
	halt    func(journal string) string // may be nil
	alarmed atomic.Bool                 // the alarm of the journal was raised
}

func newVerifying(ctx context.Context, c Config, s *stores, j journals.Journal, seed *record.Seed) (*verifying, error) {
	cfg := verify.Config{Rules: j.Rules, Payloads: j.Payloads}
	if c.Follow.Model != nil && j.Name() == journals.Trading {
		cfg.Model = c.Follow.Model()
	}
	from, before := record.Before, []record.Position(nil)
	if seed != nil {
		from, before = seed.Position, append(slices.Clone(seed.Anchors), seed.Position)
	}
	var after []record.Position
	for _, k := range []journal.Known{projections.KnownTo{DB: s.brief}, s.snapshots.store, s.snapshots.witnesses} {
		positions, err := k.Positions(ctx, j.Name(), 0)
		if err != nil {
			return nil, err
		}
		for _, p := range positions {
			if p.Sequence <= from.Sequence {
				before = append(before, p)
			} else {
				after = append(after, p)
			}
		}
	}
	return &verifying{Continuous: verify.NewContinuous(cfg, seed), client: s.client, name: j.Name(), halt: c.Follow.Halt,
		earlier: follow.NewMarks(j.Name(), after...), marks: follow.NewMarks(j.Name(), before...)}, nil
}

// marksOf returns the marks of a journal if the node follows a venue, or nil.
func (all followers) marksOf(name string) *follow.Marks {
	f, err := all.of(name)
	if err != nil || f.verifies == nil {
		return nil
	}
	return f.verifies.marks
}

// verifiedSource is the source of past states at a node that follows a venue: only the records that the folds have verified.
type verifiedSource struct {
	history.Source
	followers followers
}

// After implements history.Source.
func (s verifiedSource) After(rules decide.Rules, partition int32, at record.Position) history.Records {
	records := s.Source.After(rules, partition, at)
	marks := s.followers.marksOf(rules.Journal())
	if marks == nil {
		return records
	}
	return &verifiedRecords{records, marks.Hold()}
}

type verifiedRecords struct {
	history.Records
	held *follow.Held
}

// PollFor implements history.Records.
func (r *verifiedRecords) PollFor(ctx context.Context, sequence int64) ([]record.Entry, error) {
	return r.held.Next(ctx, func(ctx context.Context, to int64) ([]record.Entry, error) {
		return r.Records.PollFor(ctx, max(sequence, to))
	})
}

// check implements follow.Check.
func (v *verifying) check(state decide.State, e record.Entry) error {
	if v.halt != nil {
		if why := v.halt(v.name); why != "" { // whoever found out has raised the alarm
			v.alarmed.Store(true)
			return &record.BrokenRecordError{Journal: v.name, Offset: e.Position.Offset, Sequence: e.Position.Sequence, Reason: why}
		}
	}
	err := v.Check(state, e)
	if err != nil {
		v.alarm(err)
	}
	return err
}

// alarm raises the alarm of the journal once.
func (v *verifying) alarm(wrong error) {
	if !v.alarmed.Swap(true) {
		v.client.AlarmOfVerifier(v.name, wrong)
	}
}

// outlive returns a task that does not end the node if the log proves wrong, if the node follows a venue: the node then
// continues to show the verified records.
func (f *follower) outlive(run func(context.Context) error) func(context.Context) error {
	if f.verifies == nil {
		return run
	}
	return func(ctx context.Context) error {
		err := run(ctx)
		if !record.Final(err) {
			return err
		}
		f.verifies.alarm(err)
		f.verifies.marks.Stop(err)
		<-ctx.Done()
		return ctx.Err()
	}
}

// stopped returns why the follower shows no later records, or nil. The rows may stop although the fold does not, if the brokers
// serve different records to both.
func (f *follower) stopped() error {
	if err := cmp.Or(f.fold.Stopped(), f.fold.Err()); record.Final(err) {
		return err
	}
	if err := f.runner.Err(); record.Final(err) {
		return err
	}
	return nil
}

// reason says why the follower shows no later records, or "". It is public, so it has no content of records.
func (f *follower) reason() string {
	err := cmp.Or(f.fold.Err(), f.stopped())
	var wrong *verify.Difference
	switch {
	case err == nil:
		return ""
	case errors.As(err, &wrong):
		return fmt.Sprintf("%s: record %d is wrong (%s), and nothing from it on is shown", f.Name(), wrong.Sequence, wrong.Check)
	}
	return fmt.Sprintf("%s: %v", f.Name(), err)
}

// stoppedAt returns the last positions of the journals that are followed no further.
func (n *Node) stoppedAt() (all []record.LogPosition) {
	for _, f := range n.followers {
		if f.verifies != nil && f.stopped() != nil {
			at := min(f.fold.Position().Sequence, f.runner.Position().Sequence)
			all = append(all, record.LogPosition{Journal: f.Name(), Sequence: at})
		}
	}
	return all
}

// stoppedJournals returns the same by journal, as text.
func (n *Node) stoppedJournals() map[string]string {
	all := make(map[string]string)
	for _, p := range n.stoppedAt() {
		all[p.Journal] = p.String()
	}
	return all
}

// readOnly returns what the node's interfaces refuse, or nil for a node of a venue.
func (n *Node) readOnly() *rest.ReadOnly {
	if n.Follow == nil {
		return nil
	}
	return &rest.ReadOnly{Venue: n.Follow.Venue, Elsewhere: onlyTheVenue, Stopped: n.stoppedAt}
}

// onlyTheVenue reports whether the answers to the requests of a route need the venue's keys or its files: transparency logs,
// proofs, daily files, and documents.
func onlyTheVenue(route string) bool {
	if strings.HasPrefix(route, "/tlog/") || strings.HasPrefix(route, "/data/") || strings.HasPrefix(route, "/api/v1/files/") {
		return true
	}
	for _, end := range []string{"/receipt", "/liability-proof", "/export", "/erasure"} {
		if strings.HasSuffix(route, end) {
			return true
		}
	}
	return false
}

const (
	// reachAgain is the wait after the brokers did not answer a node that waits for records.
	reachAgain = time.Second
	// lookAgain is the time after which a node that waits for records looks whether its rows have stopped.
	lookAgain = 10 * time.Second
)

// catchUpWithVenue returns when the node shows all records that the journals have now. It does not wait for a journal that has stopped
// because its log proved wrong, and waits for brokers that do not answer.
func (n *Node) catchUpWithVenue(ctx context.Context) error {
	for _, f := range n.followers {
		if err := n.catchUpWith(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) catchUpWith(ctx context.Context, f *follower) error {
	for {
		err := n.awaitTipFor(ctx, f, lookAgain)
		switch {
		case err == nil || record.Final(err) || f.stopped() != nil:
			return nil
		case ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case errors.Is(err, context.DeadlineExceeded): // the rows may have stopped while the fold waits for records
			continue
		}
		n.Logger.Warn("the log can't be read yet", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(reachAgain):
		}
	}
}

// awaitTipFor is awaitTip with a limit.
func (n *Node) awaitTipFor(ctx context.Context, f *follower, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return n.awaitTip(ctx, f)
}

// noEngines accepts no commands. It stands for the owners of the journals at a node that follows a venue.
type noEngines struct{}

func (noEngines) refuse() error {
	return &submit.NotAcceptedError{Reason: "this node follows a venue and submits nothing"}
}

// Submit implements submit.Submitter.
func (n noEngines) Submit(context.Context, string, decide.Command) (submit.Result, error) {
	return submit.Result{}, n.refuse()
}

// SubmitAll implements submit.BatchSubmitter.
func (n noEngines) SubmitAll(_ context.Context, _ string, cs []decide.Command) []submit.Outcome {
	out := make([]submit.Outcome, len(cs))
	for i := range out {
		out[i].Err = n.refuse()
	}
	return out
}

// Owner implements owners.
func (noEngines) Owner(context.Context, string, int32) (string, error) { return "", nil }

// Engines implements owners.
func (noEngines) Engines(context.Context) ([]ownership.Engine, error) { return nil, nil }

// Read implements owners.
func (noEngines) Read(string, int32, record.Entry) {}

// Begin implements owners.
func (noEngines) Begin(string, int32, *record.Seed) {}

// Close implements owners.
func (noEngines) Close() {}

// followMetrics report how far a node that follows a venue has verified the log.
type followMetrics struct {
	n                 *Node
	verified, stopped *prometheus.Desc
}

func newFollowMetrics(n *Node) *followMetrics {
	return &followMetrics{n,
		prometheus.NewDesc("perpetua_follow_verified_records_total", "Records verified since the start: decided again as the same bytes, or of a kind that no rules decide or that does not show its input (other).", []string{"journal", "result"}, nil),
		prometheus.NewDesc("perpetua_follow_stopped", "1 if the journal proved wrong, so that this node shows no later records of it.", []string{"journal"}, nil)}
}

// Describe implements prometheus.Collector.
func (m *followMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.verified
	ch <- m.stopped
}

// Collect implements prometheus.Collector.
func (m *followMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, f := range m.n.followers {
		decided, others := f.verifies.Counts()
		ch <- prometheus.MustNewConstMetric(m.verified, prometheus.CounterValue, float64(decided), f.Name(), "decided")
		ch <- prometheus.MustNewConstMetric(m.verified, prometheus.CounterValue, float64(others), f.Name(), "other")
		stopped := 0.0
		if f.stopped() != nil {
			stopped = 1
		}
		ch <- prometheus.MustNewConstMetric(m.stopped, prometheus.GaugeValue, stopped, f.Name())
	}
}
