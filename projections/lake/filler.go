package lake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	// lookEvery is how often a filler looks whether another range was sealed.
	lookEvery = time.Second
	// firstRetry and lastRetry are the shortest and the longest wait after an error. The waits between double.
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
)

// FillerConfig configures a Filler.
type FillerConfig struct {
	Archive archive.Config // of the journal; its bucket also gets the files
	Rules   decide.Rules
	Catalog Catalog
	Prefix  string // of the keys of the files; Catalog.Data is the folder that it names
	// Sealed returns the sequence of the last record in a full range of the archive, or -1. It is called often.
	Sealed func() int64
	Logger *slog.Logger
	// Every replaces lookEvery, and Retry firstRetry, for tests.
	Every, Retry time.Duration
	SaveEvery    int64 // replaces dataset.SaveEvery, for tests
}

// Status says how far a filler has come.
type Status struct {
	Runs     bool
	Sequence int64         // of the last record whose rows are in the catalog; -1 if there is none
	Working  time.Duration // time spent on ranges, with its waits for the bucket and Postgres
	Failures int64
	Halted   bool // the archive contradicts the catalog, and nothing is added any more
}

// Filler adds each full range of the archive of a partition to the catalog, from the first one on, for as long as it runs. It has one
// range in memory: the archived object and the files. It keeps nothing that it could not read again, so it may be killed
// at any time. Fillers of several nodes may run at the same time: one of them adds the range.
type Filler struct {
	cfg FillerConfig
	log *slog.Logger

	books       *dataset.Books // before the next range or an earlier one; nil if they are unknown, or if the journal has none
	booksFailed int            // tries to load them that failed in a row

	mu     sync.Mutex
	status Status
}

// NewFiller returns a filler. It does nothing before Run.
func NewFiller(cfg FillerConfig) *Filler {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Every == 0 {
		cfg.Every = lookEvery
	}
	if cfg.Retry == 0 {
		cfg.Retry = firstRetry
	}
	if cfg.SaveEvery == 0 {
		cfg.SaveEvery = dataset.SaveEvery
	}
	return &Filler{cfg: cfg, log: cfg.Logger, status: Status{Sequence: -1}}
}

// Status returns how far the filler has come.
func (f *Filler) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

func (f *Filler) update(change func(*Status)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.status)
}

// Run adds ranges until the context ends, and returns its error. Other errors are logged and retried. If the archive is not the one from
// which the catalog was filled, Run logs that and adds nothing more.
func (f *Filler) Run(ctx context.Context) error {
	defer f.update(func(s *Status) { s.Runs = false })
	f.update(func(s *Status) { s.Runs, s.Halted = true, false })
	defined := false
	for failed := 0; ; {
		wait := f.cfg.Every
		if !defined || f.cfg.Sealed() > f.Status().Sequence {
			err := f.Fill(ctx)
			var diverged *record.DivergedError
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.As(err, &diverged):
				return f.halt(ctx, err)
			case err != nil:
				f.log.Warn("the DuckLake catalog is behind", "error", err)
				f.update(func(s *Status) { s.Failures++ })
				wait = min(f.cfg.Retry<<min(failed, 10), lastRetry)
				failed++
			default:
				failed, defined = 0, true
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// halt reports an error that no retry mends, and waits for the end of the context.
func (f *Filler) halt(ctx context.Context, err error) error {
	f.log.Error("the archive is not that of the DuckLake catalog: nothing more is added", "error", err)
	f.update(func(s *Status) { s.Halted = true })
	<-ctx.Done()
	return ctx.Err()
}

// Fill adds the full ranges that the archive has and the catalog lacks. If the catalog has none of the journal, Fill defines the tables.
// It also writes the place of the files, because the archive may have been moved to another bucket since the last range. The error is a
// *record.DivergedError if the archive contradicts the catalog.
func (f *Filler) Fill(ctx context.Context) error {
	began := time.Now()
	defer func() { f.update(func(s *Status) { s.Working += time.Since(began) }) }()
	cfg := &f.cfg.Archive
	have, err := f.cfg.Catalog.Last(ctx, cfg.Journal, cfg.Partition)
	if err != nil {
		return err
	}
	a, err := archive.OpenRanges(ctx, *cfg)
	if err != nil {
		return err
	}
	next := int64(0)
	if have == nil {
		if err := f.cfg.Catalog.Define(ctx, cfg.Journal); err != nil {
			return err
		}
	} else {
		if err := continues(a, have); err != nil {
			return err
		}
		if err := f.cfg.Catalog.Locate(ctx); err != nil {
			return err
		}
		next = have.Number + 1
		f.update(func(s *Status) { s.Sequence = have.Next - 1 })
		// The filler that added the range may have been killed before it did this.
		if err := f.sweep(ctx, &a.Sealed()[have.Number]); err != nil {
			return err
		}
	}
	for _, s := range a.Sealed()[next:] {
		if err := f.add(ctx, a, &s); err != nil {
			return err
		}
		f.update(func(st *Status) { st.Sequence = s.Base.Sequence - 1 })
	}
	return nil
}

// continues returns a *record.DivergedError unless the archive has the last range of the catalog.
func continues(a *archive.Archive, have *Range) error {
	sealed := a.Sealed()
	at := record.Position{Offset: have.Next - 1, Sequence: have.Next - 1, Hash: have.Hash}
	if have.Number >= int64(len(sealed)) {
		return &record.DivergedError{Journal: have.Journal, Have: at, Reason: fmt.Sprintf("the catalog has range %d, and the archive ends before it", have.Number)}
	}
	if s := sealed[have.Number]; s.Signed != have.Manifest || s.Base.Sequence != have.Next {
		return &record.DivergedError{Journal: have.Journal, Have: at, Found: s.Base.Before(), Reason: "the catalog was filled from another archive"}
	}
	return nil
}
