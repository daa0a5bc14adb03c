package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
)

// tablesEvery is the time between two looks at the tables.
const tablesEvery = 10 * time.Second

// prober checks whether Postgres answers, and whether it has the tables of the venue. It has a separate connection: one from the
// pool may have to wait for busy queries, which would not mean that Postgres fails.
type prober struct {
	pool     *pgxpool.Pool
	examined time.Time // when the tables were last looked at; used by one goroutine
	asked    bool      // the sessions were checked since Postgres last began to answer

	mu       sync.Mutex
	away     bool
	answered time.Time // time of the last answer
	missing  []string  // tables
	shared   bool      // a pooler shares the sessions
}

// newProber returns a prober of the database that a pool is connected to. It does not connect yet. checked
// says that the sessions were checked.
func newProber(ctx context.Context, of *pgxpool.Pool, checked bool) (*prober, error) {
	c := of.Config() // Config returns a copy
	c.MaxConns, c.MinConns, c.MinIdleConns = 1, 0, 0
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("the connection that probes Postgres: %w", err)
	}
	return &prober{pool: pool, asked: checked, answered: time.Now()}, nil
}

// probe sends one ping, and logs when Postgres stops or starts to answer. It looks at the tables if that is due.
func (p *prober) probe(ctx context.Context, log *slog.Logger) {
	asking, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	err := p.pool.Ping(asking)
	if ctx.Err() != nil {
		return // the error does not concern Postgres
	}
	p.noteAnswer(err, log)
	switch now := time.Now(); {
	case err != nil:
		p.examined, p.asked = time.Time{}, false
	case now.Sub(p.examined) >= tablesEvery:
		p.examined = now
		p.examine(ctx, log)
	}
}

// noteAnswer notes whether Postgres has answered.
func (p *prober) noteAnswer(err error, log *slog.Logger) {
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

// examine looks for tables that are missing, and checks the sessions once. After an error it keeps the former result.
func (p *prober) examine(ctx context.Context, log *slog.Logger) {
	asking, cancel := context.WithTimeout(ctx, 2*probeTime)
	defer cancel()
	found, err := projections.FindDamage(asking, p.pool)
	if err != nil {
		log.Debug("the tables can't be examined", "error", err)
	}
	var shared error
	if !p.asked {
		shared = projections.CheckSession(asking, p.pool)
		p.asked = shared == nil || errors.Is(shared, projections.ErrSharedSession)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && !slices.Equal(found.Missing, p.missing) {
		if p.missing = found.Missing; len(p.missing) > 0 {
			log.Error("Postgres lacks tables of the venue", "tables", p.missing)
		} else {
			log.Info("Postgres has all tables of the venue again")
		}
	}
	switch {
	case errors.Is(shared, projections.ErrSharedSession):
		p.shared = true
		log.Error("Postgres can't be used", "error", shared)
	case shared == nil && p.asked:
		p.shared = false
	}
}

// needPostgres reports whether a role can't do its work without Postgres.
func (r Roles) needPostgres() bool { return slices.ContainsFunc(r.Names(), needsPostgres) }

func needsPostgres(role string) bool {
	return slices.Contains([]string{"api", "projector", "sender", "tlog"}, role)
}

// needsTable reports whether a role can't do its work without a table.
func needsTable(role, table string) bool {
	jobs, views := strings.HasPrefix(table, "perpetua_jobs."), strings.Contains(table, ".")
	switch role {
	case "api":
		return !views
	case "projector": // writes the jobs of senders in the transactions of the rows
		return !views || jobs
	case "sender":
		return jobs
	case "tlog":
		return table == "signed_trees" || table == "cosigned_trees"
	}
	return false
}

// reasons returns why a role cannot work: Postgres does not answer, shares its sessions, or lacks tables.
func (p *prober) reasons(role string) (reasons []string) {
	if !needsPostgres(role) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		reasons = append(reasons, fmt.Sprintf("Postgres has not answered since %v", scalar.TimeOf(p.answered)))
	}
	if p.shared {
		reasons = append(reasons, "a pooler shares the sessions of Postgres between transactions")
	}
	var missing []string
	for _, table := range p.missing {
		if needsTable(role, table) {
			missing = append(missing, table)
		}
	}
	if len(missing) > 0 {
		reasons = append(reasons, "Postgres lacks "+named(missing))
	}
	return reasons
}

// named lists the first tables.
func named(tables []string) string {
	const most = 3
	text := "the tables " + strings.Join(tables[:min(most, len(tables))], ", ")
	if more := len(tables) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
