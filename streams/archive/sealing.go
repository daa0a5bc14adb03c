package archive

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// sealing is the work of a sealer between two errors.
type sealing struct {
	*Sealer
	writer  *Writer
	source  Source
	hasHead []bool // by copy: it has the head

	// uncovered is when the first record that is in no range and no tail was read, by this process's clock; zero if there is none.
	// The time of the record is that of another node's clock.
	uncovered time.Time
	covered   int64 // sequence of the last record in a range or in the tail
	attempts  int   // to write the tail, which failed
}

// work archives the records after the last full range until an error.
func (s *Sealer) work(ctx context.Context) error {
	w, err := NewWriter(ctx, s.cfg.Config)
	if err != nil {
		return err
	}
	s.tailDamaged(w.archive.TailDamage())
	if err := w.Holds(ctx, s.cfg.From); err != nil {
		return err
	}
	g := &sealing{Sealer: s, writer: w, source: s.cfg.From(w.Position()), hasHead: make([]bool, len(s.cfg.Copies))}
	defer g.source.Close()
	at, err := g.source.Locate(ctx)
	if err != nil {
		return err
	}
	w.Align(at.Offset)
	g.update(func(s *Status) { s.Halted = false }) // the log continues the archive
	g.report()
	g.keep(ctx) // the process may have been killed before it did
	for {
		records, err := g.poll(ctx)
		if err != nil {
			return err
		}
		if err := g.add(ctx, records); err != nil {
			return err
		}
		if g.due() <= 0 && g.source.AtTip() {
			if err := g.tail(ctx); err != nil {
				return err
			}
		}
	}
}

// poll waits for records, but not beyond the time at which the tail is due.
func (g *sealing) poll(ctx context.Context) ([]*kgo.Record, error) {
	if g.uncovered.IsZero() {
		return g.source.Poll(ctx)
	}
	until, cancel := context.WithTimeout(ctx, max(g.due(), time.Second/10))
	defer cancel()
	records, err := g.source.Poll(until)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, nil
	}
	return records, err
}

// due returns the time until the tail has to be written.
func (g *sealing) due() time.Duration {
	if g.uncovered.IsZero() {
		return g.cfg.TailEvery
	}
	return g.cfg.TailEvery - time.Since(g.uncovered)
}

// add archives records. A range that is full is sealed as soon as the bucket lets it.
func (g *sealing) add(ctx context.Context, records []*kgo.Record) error {
	began := time.Now()
	defer func() { g.update(func(s *Status) { s.Working += time.Since(began) }) }()
	for _, r := range records {
		ranges := len(g.writer.archive.sealed)
		if err := g.writer.Add(ctx, r); err != nil {
			var wrong *Error
			if !g.writer.Full() || errors.As(err, &wrong) {
				return err
			}
			g.failed(err)
			if !g.wait(ctx, 0) {
				return ctx.Err()
			}
			if err := g.retry(ctx, g.writer.Seal); err != nil {
				return err
			}
		}
		if at := g.writer.Position().Sequence; g.uncovered.IsZero() && at > g.covered {
			g.uncovered = time.Now()
		}
		if len(g.writer.archive.sealed) > ranges {
			g.sealed(ctx)
		}
	}
	g.update(func(s *Status) { s.Read = g.writer.Position().Sequence })
	return nil
}

// sealed follows a manifest that has become durable.
func (g *sealing) sealed(ctx context.Context) {
	clear(g.hasHead)
	g.uncovered = time.Time{}
	g.report()
	g.keep(ctx)
	s := g.writer.archive.sealed[len(g.writer.archive.sealed)-1]
	g.log.Info("sealed a range of the archive", "range", s.Range, "sequence", s.Base.Sequence-1, "bytes", s.Bytes)
	g.checkLock(ctx, &s)
}

// keep writes the copies of the head that are not written. One that fails is tried again after the next range or tail.
func (g *sealing) keep(ctx context.Context) {
	h := g.writer.archive.Head()
	if h == nil {
		return
	}
	for i, c := range g.cfg.Copies {
		if g.hasHead[i] {
			continue
		}
		if err := c.Keep(ctx, *h); err != nil {
			if ctx.Err() == nil {
				g.log.Warn("a copy of the archive's head is behind", "copy", c.String(), "error", err)
				g.update(func(s *Status) { s.Failures++ })
			}
			continue
		}
		g.hasHead[i] = true
	}
}

// tail writes the tail, after it has removed what earlier tails have left. It tries once: full ranges do not wait for a tail that the
// bucket refuses. A bucket that keeps an earlier tail is asked again after TailEvery, because its lock ends once. After
// any other error of the bucket the next attempt comes sooner.
func (g *sealing) tail(ctx context.Context) error {
	began := time.Now()
	defer func() { g.update(func(s *Status) { s.Working += time.Since(began) }) }()
	g.keep(ctx)
	err := g.writer.Sweep(ctx)
	if err == nil {
		err = g.writer.Tail(ctx)
	}
	var wrong *Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &wrong):
		return err
	case errors.Is(err, ErrTailKept):
		g.uncovered, g.attempts = time.Now(), 0
		g.tailKept(err)
	case err != nil:
		g.failed(err)
		g.uncovered = time.Now().Add(g.pause(g.attempts) - g.cfg.TailEvery)
		g.attempts++
	default:
		g.uncovered, g.attempts = time.Time{}, 0
		g.warned.tail, g.warned.damage = false, false
	}
	g.report()
	return nil
}

// tailKept warns once that the bucket keeps an earlier tail.
func (g *sealing) tailKept(err error) {
	if !g.warned.tail {
		g.log.Warn("records after the last full range are not archived, because the bucket keeps an earlier tail; full ranges are", "error", err)
		g.warned.tail = true
	}
}

// tailDamaged warns once that the tail is damaged.
func (s *Sealer) tailDamaged(err error) {
	if err != nil && !s.warned.damage {
		s.log.Warn("the tail of the archive is damaged; full ranges are archived, and the next tail replaces it", "error", err)
		s.warned.damage = true
	}
}

// checkLock warns once if the store does not report the requested lock of a range.
func (g *sealing) checkLock(ctx context.Context, s *Sealed) {
	if g.cfg.Retention.For == 0 || g.warned.lock {
		return
	}
	least := time.Now().Add(g.cfg.Retention.For - lockSlack)
	for _, key := range []string{s.Object, s.Key} {
		l, err := g.cfg.Store.Lock(ctx, key)
		if ctx.Err() != nil || err == nil && l.Holds(least) {
			continue
		}
		g.log.Warn("the bucket does not report the requested lock of a range of the archive", "object", key, "until", l.Until, "error", err)
		g.warned.lock = true
		return
	}
}

// lockSlack is the time that passes at most between the writing of a range and the look at its lock.
const lockSlack = time.Hour

// report updates the status from the manifests.
func (g *sealing) report() {
	a := g.writer.archive
	sealed, covered, values, bytes := int64(-1), int64(-1), int64(0), int64(0)
	for _, m := range a.parts() {
		covered, values, bytes = m.Base.Sequence-1, values+m.Values, bytes+m.Bytes
	}
	if h := a.Head(); h != nil {
		sealed = h.Base.Sequence - 1
	}
	g.covered = covered
	g.update(func(s *Status) {
		s.Sealed, s.Tailed, s.Values, s.Bytes = sealed, covered, values, bytes
		s.Read = g.writer.Position().Sequence
	})
}
