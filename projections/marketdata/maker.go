package marketdata

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	// checkEvery is how often a maker looks whether published files are missing, and drops old ones.
	checkEvery = 10 * time.Minute
	// firstRetry and lastRetry are the shortest and the longest wait after an error. The waits between double.
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
	// maxFailures is the number of errors after which a day that cannot be published is made again, about an hour.
	maxFailures = 60
)

// Source returns the records after a position. *journal.Tail implements it.
type Source interface {
	// Poll waits for valid records and returns at least one. After an error of the context it may be called again.
	Poll(ctx context.Context) ([]record.Entry, error)
	Close()
}

// MakerConfig configures a Maker.
type MakerConfig struct {
	// Store returns the store of the journal. It is nil as long as the journal is not founded.
	Store func(ctx context.Context) (*Store, error)
	// From returns a source of the records after a position. The offset of the position is a guess. The source also has records that were
	// trimmed from the log.
	From func(at record.Position) Source
	// Keep is the age from which days are dropped, or 0 for never.
	Keep   time.Duration
	Logger *slog.Logger
	Now    func() time.Time // nil for time.Now
	// CheckEvery replaces checkEvery, and Retry firstRetry, for tests.
	CheckEvery, Retry time.Duration
}

// Status says how far a maker has come.
type Status struct {
	Runs     bool
	Sequence int64         // of the last record that was read; -1 before the first
	Day      string        // the last published day, or ""
	Reading  string        // the day of the last record that was read, or ""
	Working  time.Duration // time spent on records and on the bucket
	Failures int64
	Halted   bool // the log contradicts what was published, and nothing is made any more
}

// Maker makes the files of each day for as long as it runs. It has the open orders and a row group of each table in memory. It keeps
// nothing that it could not read again, so it may be killed at any time.
type Maker struct {
	cfg MakerConfig
	log *slog.Logger

	mu     sync.Mutex
	status Status
}

// NewMaker returns a maker. It does nothing before Run.
func NewMaker(cfg MakerConfig) *Maker {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.CheckEvery == 0 {
		cfg.CheckEvery = checkEvery
	}
	if cfg.Retry == 0 {
		cfg.Retry = firstRetry
	}
	return &Maker{cfg: cfg, log: cfg.Logger, status: Status{Sequence: -1}}
}

// Status returns how far the maker has come.
func (m *Maker) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status
}

func (m *Maker) update(change func(*Status)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.status)
}

// works adds the time since began to the status.
func (m *Maker) works(began time.Time) {
	m.update(func(s *Status) { s.Working += time.Since(began) })
}

// errAgain ends a run of work after which the next one makes a new plan.
var errAgain = errors.New("marketdata: look again what is missing")

// Run makes days until the context ends, and returns its error. Other errors are logged and retried. If the log is not the one from which
// the published files were made, Run logs that and makes nothing more.
func (m *Maker) Run(ctx context.Context) error {
	defer m.update(func(s *Status) { s.Runs = false })
	m.update(func(s *Status) { s.Runs, s.Halted = true, false })
	for failed := 0; ; {
		wait := m.cfg.Retry
		err := m.work(ctx)
		var diverged *record.DivergedError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errAgain):
			failed = 0
			continue
		case errors.As(err, &diverged):
			m.log.Error("the log is not that of the daily files: no more files are made", "error", err)
			m.update(func(s *Status) { s.Halted = true })
			<-ctx.Done()
			return ctx.Err()
		case err != nil:
			m.failed(err)
			wait = m.waitAfter(failed)
			failed++
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// failed counts and logs an error that is retried.
func (m *Maker) failed(err error) {
	m.log.Warn("the daily files are behind", "error", err)
	m.update(func(s *Status) { s.Failures++ })
}

// waitAfter returns the wait after an error that follows a number of others.
func (m *Maker) waitAfter(failed int) time.Duration {
	return min(m.cfg.Retry<<min(failed, 10), lastRetry)
}

func pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// persist calls do again after an error. It gives up after many errors, if the log has diverged, and when the context ends.
func (m *Maker) persist(ctx context.Context, do func() error) error {
	for failed := 0; ; failed++ {
		err := do()
		var diverged *record.DivergedError
		if err == nil || ctx.Err() != nil || errors.As(err, &diverged) || failed == maxFailures {
			return err
		}
		m.failed(err)
		if err := pause(ctx, m.waitAfter(failed)); err != nil {
			return err
		}
	}
}

// work makes the days of a plan. It returns nil if the journal is not founded, and errAgain if there may be another plan.
func (m *Maker) work(ctx context.Context) error {
	s, err := m.cfg.Store(ctx)
	if err != nil || s == nil {
		return err
	}
	if err := errors.Join(s.sweepAbandoned(ctx), m.dropOld(ctx, s)); err != nil {
		return err
	}
	p, err := newPlan(ctx, s, m.cut())
	if err != nil {
		return err
	}
	m.update(func(st *Status) { st.Day = p.last })
	if p.books.Next() < p.first {
		m.log.Info("reading the log for the books of the daily files", "from", p.books.Next(), "to", p.first-1)
	}
	r := &run{maker: m, store: s, plan: p}
	defer r.discard()
	return r.read(ctx, m.cfg.From(p.books.Position()))
}

// cut returns the first date to keep, or "".
func (m *Maker) cut() string {
	if m.cfg.Keep == 0 {
		return ""
	}
	return dataset.DateOf(scalar.TimeOf(m.cfg.Now().Add(-m.cfg.Keep)))
}

func (m *Maker) dropOld(ctx context.Context, s *Store) error {
	cut := m.cut()
	if cut == "" {
		return nil
	}
	days, err := s.drop(ctx, cut)
	if days > 0 {
		m.log.Info("dropped old daily files", "days", days)
	}
	return err
}
