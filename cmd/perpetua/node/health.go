package node

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// The phases of a node's life. Its readiness depends on its roles only while it serves.
const (
	starting int32 = iota
	serves
	stopping
)

// health is the state behind /readyz.
type health struct {
	phase  atomic.Int32
	prober *prober
}

func (h *health) close() {
	if h.prober != nil {
		h.prober.pool.Close()
	}
}

// The interval at which a node polls the parts that do not report changes, and the times after which a part counts as
// failed.
const (
	pollEvery  = time.Second
	probeTime  = 2 * time.Second  // for an answer of Postgres
	stillAfter = 10 * time.Second // rows that are behind the fold and have not advanced for this long are stuck
	askTime    = 2 * time.Second  // for the group to name the owner of a journal
)

// watch polls Postgres and the positions of the rows until the context ends, so that /readyz can answer from memory.
func (n *Node) watch(ctx context.Context) error {
	if !n.Roles.needPostgres() {
		return nil
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		n.health.prober.probe(ctx, n.Logger)
		for _, f := range n.followers {
			if !n.Roles.API && !n.Roles.Projector {
				break
			}
			// The fold is read first: rows that pass that sequence in the meantime are not behind.
			folded := f.fold.Position().Sequence
			if at, err := n.rowsAt(ctx, f); err == nil {
				f.pace.note(time.Now(), at, folded)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// topicsEvery is the time between two checks of the topics. By default, Kafka looks for records to delete every five minutes.
const topicsEvery = 10 * time.Second

// watchTopics raises an alarm while the topics are not as a venue needs them. It ends the node when a log has lost its
// beginning: the node would not start on that log either, and the brokers may delete what else they acknowledge.
func (n *Node) watchTopics(ctx context.Context) error {
	var names []string
	for _, f := range n.followers {
		names = append(names, f.Name())
	}
	return n.stores.client.WatchTopics(ctx, topicsEvery, names...)
}

// rowsAt returns the sequence of the last record in the rows of a journal.
func (n *Node) rowsAt(ctx context.Context, f *follower) (int64, error) {
	if n.Roles.Projector {
		return f.runner.Position().Sequence, nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	at, err := projections.ReadCheckpoint(ctx, n.health.prober.pool, f.Name(), 0)
	return at.Position.Sequence, err
}

// pace distinguishes rows that are catching up from rows that are stuck.
type pace struct {
	mu    sync.Mutex
	at    int64
	since time.Time // time at which they last advanced or were not behind
}

// note records the sequence of the rows. folded is a sequence that the fold had reached before that.
func (p *pace) note(now time.Time, rows, folded int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rows != p.at || rows >= folded || p.since.IsZero() {
		p.at, p.since = rows, now
	}
}

// still reports whether the rows are stuck although there are records to apply, and since when.
func (p *pace) still(now time.Time) (since time.Time, still bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.since, !p.since.IsZero() && now.Sub(p.since) > stillAfter
}

// state is the body of the responses of /healthz and /readyz.
type state struct {
	Status   string               `json:"status"`
	Roles    map[string]roleState `json:"roles,omitempty"` // the node's roles only
	Journals map[string]string    `json:"journals,omitempty"`
	// LogAway contains, by journal, since when its log cannot be read, or cannot be written if this node owns the
	// journal.
	LogAway map[string]scalar.Time `json:"log_away,omitempty"`
	Fence   *fenceState            `json:"fence,omitempty"`
	// Stopped contains, by journal, the position at which a node that follows a venue has stopped because the log proved wrong.
	Stopped map[string]string `json:"stopped,omitempty"`
}

// roleState reports whether a role works, with one sentence for each reason why not. The response is public, so it must
// not contain error texts with addresses, files or rows; those are only in the node's log.
type roleState struct {
	Ready   bool     `json:"ready"`
	Because []string `json:"because,omitempty"`
}

func (s state) ready() bool { return s.Status == "ready" }

// readiness returns the current state from the memory of this process. The only question to other nodes is who owns a
// journal; the group's answers are cached.
func (n *Node) readiness(ctx context.Context) state {
	now := time.Now()
	s := state{Status: "ready", Roles: map[string]roleState{}, Journals: map[string]string{}, LogAway: n.logAway(now), Fence: n.fenceState(), Stopped: n.stoppedJournals()}
	for _, f := range n.followers {
		s.Journals[f.Name()] = record.LogPosition{Journal: f.Name(), Sequence: f.fold.Position().Sequence}.String()
	}
	log, rows := n.logFaults(ctx, s.LogAway), n.rowFaults(now)
	for _, name := range n.Roles.Names() {
		because := append(log[:len(log):len(log)], n.health.prober.reasons(name)...)
		if name == "api" || name == "projector" {
			because = append(because, rows...)
		}
		s.Roles[name] = roleState{Ready: len(because) == 0, Because: because}
		if len(because) > 0 {
			s.Status = "unready"
		}
	}
	switch n.health.phase.Load() {
	case starting:
		s.Status = "starting"
	case stopping:
		s.Status = "stopping"
	}
	return s
}

// logFaults returns the errors of the journals, which concern all roles.
func (n *Node) logFaults(ctx context.Context, away map[string]scalar.Time) (faults []string) {
	if n.Services != nil {
		if n.Services() != nil {
			faults = append(faults, "the embedded broker has stopped")
		}
	}
	if n.Follow != nil {
		for _, fault := range n.Follow.Faults {
			if f := fault(); f != "" {
				faults = append(faults, f)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for _, f := range n.followers {
		if since, lost := away[f.Name()]; lost {
			faults = append(faults, fmt.Sprintf("%s: its log has been out of reach since %v", f.Name(), since))
		}
		if n.Follow != nil { // whoever owns the journal, this node does not ask
			if reason := f.reason(); reason != "" {
				faults = append(faults, reason)
			}
			continue
		}
		if err := f.fold.Err(); err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", f.Name(), err))
		}
		if !n.owned(ctx, f) {
			faults = append(faults, fmt.Sprintf("%s: no node owns it with a valid term", f.Name())+n.clockFault(f.Name()))
		}
	}
	return faults
}

// clockFault returns an addition to the error of a journal without an owner, if only this node's wrong clock keeps it
// from taking the term.
func (n *Node) clockFault(name string) string {
	if n.engine.engine == nil || !n.engine.engine.ClockRefused(name, 0) {
		return ""
	}
	return "; this node takes none, since its clock is off (" + term.CodeClockOff + ")"
}

// rowFaults returns the errors of the rows, for the roles that write or read them.
func (n *Node) rowFaults(now time.Time) (faults []string) {
	for _, f := range n.followers {
		// A runner is failing only if its last attempt failed and there are records to apply.
		failing := f.runner.Failing() != nil && f.runner.Position().Sequence < f.fold.Position().Sequence
		since, still := f.pace.still(now)
		switch {
		case n.Follow != nil && record.Final(f.runner.Err()): // logFaults reports it
		case n.Roles.Projector && f.runner.Err() != nil && record.Final(f.runner.Err()):
			faults = append(faults, fmt.Sprintf("%s: its rows: %v", f.Name(), f.runner.Err()))
		case failing:
			faults = append(faults, fmt.Sprintf("%s: its rows can't be written", f.Name()))
		case still:
			faults = append(faults, fmt.Sprintf("%s: its rows are behind and have not moved since %v", f.Name(), scalar.TimeOf(since)))
		}
	}
	return faults
}

// logAway returns since when each unreachable log has been unreachable, by journal.
func (n *Node) logAway(now time.Time) map[string]scalar.Time {
	away := make(map[string]scalar.Time)
	for _, f := range n.followers {
		since, lost := f.client.Contact(f.Name()).Lost(now)
		if n.engine.engine != nil {
			if at, stalled := n.engine.engine.Stalled(f.Name(), 0); stalled && (!lost || at.Before(since)) {
				since, lost = at, true
			}
		}
		if lost {
			away[f.Name()] = scalar.TimeOf(since)
		}
	}
	return away
}

// healthz answers 200 while the process runs.
func (n *Node) healthz(c echo.Context) error {
	return c.JSON(http.StatusOK, state{Status: "ok"})
}

// readyz answers 200 while all roles of the node work. Otherwise it answers 503 with the reasons.
func (n *Node) readyz(c echo.Context) error {
	s := n.readiness(c.Request().Context())
	if !s.ready() {
		return c.JSON(http.StatusServiceUnavailable, s)
	}
	return c.JSON(http.StatusOK, s)
}
