package archive

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	// TailEvery is how long after a sealer has read it a record that is in no full range belongs in the tail.
	TailEvery = time.Hour
	// firstRetry and lastRetry are the shortest and the longest wait after an error. The waits between double.
	firstRetry = 2 * time.Second
	lastRetry  = time.Minute
)

// Source returns all records of a topic after a position, also those that readers skip. *journal.RawReader implements it.
type Source interface {
	// Locate returns the position with its offset in the topic. It MUST be called before Poll.
	Locate(ctx context.Context) (record.Position, error)
	// Poll waits for records and returns at least one. After an error of the context it may be called again.
	Poll(ctx context.Context) ([]*kgo.Record, error)
	// AtTip reports whether Poll has returned all records that the topic is known to have.
	AtTip() bool
	Close()
}

// SealerConfig configures a Sealer.
type SealerConfig struct {
	Config
	// From returns a source of the records after a position.
	From func(at record.Position) Source
	// Copies get the head of the archive after each manifest.
	Copies []Heads
	Logger *slog.Logger
	// TailEvery replaces the constant of that name, unless zero; Retry firstRetry, for tests.
	TailEvery, Retry time.Duration
}

// Sealer archives the topic of a partition for as long as it runs: it seals each range when that is full, keeps younger records in
// the tail, and keeps copies of the head. It holds the records of one chunk and the compressed chunks of one range in memory. It
// keeps nothing that it could not read again, so it may be killed at any time.
//
// Sealers of several nodes may run at the same time. Each does the same work: the one that finds a blob there verifies that it
// holds the same records.
type Sealer struct {
	cfg SealerConfig
	log *slog.Logger
	// warned says of what Run has warned. It does not warn of the same each hour.
	warned struct{ tail, damage, lock bool }

	mu     sync.Mutex
	status Status
}

// Status says how far a sealer has come.
type Status struct {
	Runs     bool
	Read     int64         // sequence of the last record read; -1 before the first
	Sealed   int64         // sequence of the last record in a full range; -1 if there is none
	Tailed   int64         // sequence of the last record in a full range or in the tail; -1 if there is none
	Values   int64         // bytes of the values of the records in the archive
	Bytes    int64         // bytes of the objects of the archive
	Working  time.Duration // time spent on encoding records and writing blobs
	Failures int64         // of the bucket, of the copies, or of the archive
	Halted   bool          // the log contradicts the archive, and nothing is archived
}

// NewSealer returns a sealer. It does nothing before Run.
func NewSealer(cfg SealerConfig) *Sealer {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.TailEvery == 0 {
		cfg.TailEvery = TailEvery
	}
	if cfg.Retry == 0 {
		cfg.Retry = firstRetry
	}
	return &Sealer{cfg: cfg, log: cfg.Logger, status: Status{Read: -1, Sealed: -1, Tailed: -1}}
}

// Status returns how far the sealer has come.
func (s *Sealer) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

func (s *Sealer) update(change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status)
}

// Run archives until the context ends or the log is broken, and returns the error. Errors of the bucket, of the copies, and of the
// archive are logged and retried. If the log lacks the last record of the full ranges or of the tail, or begins after the full ranges,
// Run logs that and archives nothing more. But if another sealer has archived ranges since and the log was trimmed at one of their ends, Run continues after
// these ranges.
func (s *Sealer) Run(ctx context.Context) error {
	defer s.update(func(st *Status) { st.Runs = false })
	s.update(func(st *Status) { st.Runs, st.Halted = true, false })
	for attempt := 0; ; attempt++ {
		began := time.Now()
		err := s.work(ctx)
		var diverged *record.DivergedError
		var trimmed *record.TrimmedError
		var wrong *Error
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &trimmed) && s.reaches(ctx, trimmed.Base):
			// The next attempt begins after the ranges that were sealed meanwhile.
		case errors.As(err, &diverged), errors.As(err, &trimmed):
			s.log.Error("the log does not continue the archive: nothing more is archived", "error", err)
			s.update(func(st *Status) { st.Halted = true })
			<-ctx.Done()
			return ctx.Err()
		case record.Final(err):
			return err
		case errors.As(err, &wrong) && wrong.Damage == Forked:
			// The manifests may have been read while another sealer wrote them.
			s.update(func(st *Status) { st.Halted = true })
		}
		if time.Since(began) > lastRetry {
			attempt = 0
		}
		s.failed(err)
		if !s.wait(ctx, attempt) {
			return ctx.Err()
		}
	}
}

// reaches reports whether the full ranges in the bucket lead to a base, or whether that cannot be known for now.
func (s *Sealer) reaches(ctx context.Context, b record.Base) bool {
	a, err := OpenRanges(ctx, s.cfg.Config)
	if err != nil {
		return true
	}
	end := a.Base()
	return end != nil && end.Sequence >= b.Sequence
}

func (s *Sealer) failed(err error) {
	s.log.Warn("the archive is behind", "error", err)
	s.update(func(st *Status) { st.Failures++ })
}

// wait waits before the next attempt. It returns false if the context ends first.
func (s *Sealer) wait(ctx context.Context, attempt int) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(s.pause(attempt)):
		return true
	}
}

// pause returns the time before the next attempt.
func (s *Sealer) pause(attempt int) time.Duration {
	return min(s.cfg.Retry<<min(attempt, 10), lastRetry)
}

// retry repeats do until it succeeds, the context ends, or the archive is wrong.
func (s *Sealer) retry(ctx context.Context, do func(context.Context) error) error {
	for attempt := 0; ; attempt++ {
		err := do(ctx)
		var wrong *Error
		if err == nil || ctx.Err() != nil || errors.As(err, &wrong) {
			return err
		}
		s.failed(err)
		if !s.wait(ctx, attempt) {
			return ctx.Err()
		}
	}
}
