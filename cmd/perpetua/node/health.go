package node

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// The phases of a node's life. Only while it serves does it matter how its roles are.
const (
	starting int32 = iota
	serves
	stopping
)

// health is what a node knows of how it is.
type health struct {
	phase  atomic.Int32
	prober *prober
}

func (h *health) close() {
	if h.prober != nil {
		h.prober.pool.Close()
	}
}

// How often a node polls what does not tell by itself how it is, and what it takes for a fault.
const (
	pollEvery  = time.Second
	probeTime  = 2 * time.Second  // within which Postgres answers
	stillAfter = 10 * time.Second // rows that lag behind the fold and have not moved for so long stand still
	askTime    = 2 * time.Second  // within which the group says who owns a journal
)

// watch polls Postgres and the positions of the rows until the context ends, so that /readyz only tells what is known.
func (n *Node) watch(ctx context.Context) error {
	if !n.Roles.API && !n.Roles.Projector {
		return nil
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		n.health.prober.probe(ctx, n.Logger)
		for _, f := range n.followers {
			// The fold is asked first: rows that are ahead of it are not behind.
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

// rowsAt returns the sequence that the rows of a journal stand at.
func (n *Node) rowsAt(ctx context.Context, f *follower) (int64, error) {
	if n.Roles.Projector {
		return f.runner.Position().Sequence, nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	at, err := projections.ReadCheckpoint(ctx, n.health.prober.pool, f.Name(), 0)
	return at.Position.Sequence, err
}

// prober asks Postgres whether it is there, on a connection of its own: one from the pool may have to wait while queries
// take them all, which is no fault of Postgres.
type prober struct {
	pool *pgxpool.Pool

	mu       sync.Mutex
	away     bool
	answered time.Time // last
}

// newProber returns a prober of the database that a pool is of. It does not connect yet.
func newProber(ctx context.Context, of *pgxpool.Pool) (*prober, error) {
	c := of.Config() // a copy
	c.MaxConns, c.MinConns = 1, 0
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("the connection that probes Postgres: %w", err)
	}
	return &prober{pool: pool, answered: time.Now()}, nil
}

// probe asks once, and logs when the answer changes.
func (p *prober) probe(ctx context.Context, log *slog.Logger) {
	asking, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	err := p.pool.Ping(asking)
	if ctx.Err() != nil {
		return // it says nothing of Postgres
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && !p.away {
		log.Warn("Postgres does not answer", "error", err)
	} else if err == nil && p.away {
		log.Info("Postgres answers again")
	}
	if p.away = err != nil; !p.away {
		p.answered = time.Now()
	}
}

// lost returns since when Postgres has not answered, if it does not.
func (p *prober) lost() (since time.Time, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered, p.away
}

// pace tells rows that are behind and catch up from rows that stand still.
type pace struct {
	mu    sync.Mutex
	at    int64
	since time.Time // when they last moved, or were not behind
}

// note takes down where the rows were when the fold was at a sequence or a little further.
func (p *pace) note(now time.Time, rows, folded int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rows != p.at || rows >= folded || p.since.IsZero() {
		p.at, p.since = rows, now
	}
}

// still returns since when the rows have stood still although there is more to apply, if that is so.
func (p *pace) still(now time.Time) (since time.Time, still bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.since, !p.since.IsZero() && now.Sub(p.since) > stillAfter
}

// state is the body of /healthz and /readyz.
type state struct {
	Status   string               `json:"status"`
	Roles    map[string]roleState `json:"roles,omitempty"` // that the node has
	Journals map[string]string    `json:"journals,omitempty"`
	// LogAway says since when a journal's log can't be read, or not be written by this node, which owns it.
	LogAway map[string]scalar.Time `json:"log_away,omitempty"`
	Fence   *fenceState            `json:"fence,omitempty"`
}

// roleState says whether a node does what it is there for, and in a sentence each why not. Anybody may read it: what an
// error says of addresses, files and rows is in the node's log alone.
type roleState struct {
	Ready   bool     `json:"ready"`
	Because []string `json:"because,omitempty"`
}

func (s state) ready() bool { return s.Status == "ready" }

// readiness says how the node is now, by what is known in this process. Only who owns a journal that others own is asked of
// the group, at most every so often.
func (n *Node) readiness(ctx context.Context) state {
	now := time.Now()
	s := state{Status: "ready", Roles: map[string]roleState{}, Journals: map[string]string{}, LogAway: n.logAway(now), Fence: n.fenceState()}
	for _, f := range n.followers {
		s.Journals[f.Name()] = record.LogPosition{Journal: f.Name(), Sequence: f.fold.Position().Sequence}.String()
	}
	log, rows := n.logFaults(ctx, s.LogAway), n.rowFaults(now)
	for _, name := range n.Roles.Names() {
		because := log
		if name == "api" || name == "projector" {
			because = append(because[:len(because):len(because)], rows...)
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

// logFaults returns what is wrong with the journals, which all roles live on.
func (n *Node) logFaults(ctx context.Context, away map[string]scalar.Time) (faults []string) {
	if n.Services != nil {
		if n.Services() != nil {
			faults = append(faults, "the embedded broker has stopped")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for _, f := range n.followers {
		if since, lost := away[f.Name()]; lost {
			faults = append(faults, fmt.Sprintf("%s: its log has been out of reach since %v", f.Name(), since))
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

// clockFault says of a journal that nobody owns that this node would, were it not for its clock.
func (n *Node) clockFault(name string) string {
	if n.owning.engine == nil || !n.owning.engine.ClockRefused(name, 0) {
		return ""
	}
	return "; this node takes none, since its clock is off (" + journal.CodeClockOff + ")"
}

// rowFaults returns what is wrong with the rows, for the roles that write or read them.
func (n *Node) rowFaults(now time.Time) (faults []string) {
	if n.Alone && !n.Roles.Projector {
		return nil // nobody writes what it would read
	}
	if since, lost := n.health.prober.lost(); lost {
		faults = append(faults, fmt.Sprintf("Postgres has not answered since %v", scalar.TimeOf(since)))
	}
	for _, f := range n.followers {
		// A runner whose last attempt failed and that has nothing more to apply is not failing.
		failing := f.runner.Failing() != nil && f.runner.Position().Sequence < f.fold.Position().Sequence
		since, still := f.pace.still(now)
		switch {
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

// logAway returns since when the log of each journal is out of reach, nothing where all are there.
func (n *Node) logAway(now time.Time) map[string]scalar.Time {
	away := make(map[string]scalar.Time)
	for _, f := range n.followers {
		since, lost := f.client.Contact(f.Name()).Lost(now)
		if n.owning.engine != nil {
			if at, stalled := n.owning.engine.Stalled(f.Name(), 0); stalled && (!lost || at.Before(since)) {
				since, lost = at, true
			}
		}
		if lost {
			away[f.Name()] = scalar.TimeOf(since)
		}
	}
	return away
}

// healthz answers as long as the process lives.
func (n *Node) healthz(c echo.Context) error {
	return c.JSON(http.StatusOK, state{Status: "ok"})
}

// readyz answers 200 while the node does everything that it is there for, and what is wrong otherwise.
func (n *Node) readyz(c echo.Context) error {
	s := n.readiness(c.Request().Context())
	if !s.ready() {
		return c.JSON(http.StatusServiceUnavailable, s)
	}
	return c.JSON(http.StatusOK, s)
}
