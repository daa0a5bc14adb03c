package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// comparison compares all journals with the positions that are known outside of the log, before this node adds a record to one of
// them or a row to the database. The owner and the projector of a journal make the same comparison, but for that journal only. If
// one journal is older than the database, the others must not grow either. Otherwise the database would have rows of them that the
// venue's own log lacks, and the venue could not return to that log.
type comparison struct {
	client   *journal.Client
	journals journals.Table
	known    []journal.Known
	rows     journal.Known // the one of known that holds the positions of the rows
	log      *slog.Logger

	asked chan struct{} // closed once the journals hold every position that a source has answered with
	rowed chan struct{} // closed once the journals hold the positions of the rows
}

// newComparison returns the comparison of a node.
func newComparison(c Config, s *stores) *comparison {
	return &comparison{client: s.client, journals: c.Journals, known: s.known(c), rows: s.knownToRows(c), log: c.Logger,
		asked: make(chan struct{}), rowed: make(chan struct{})}
}

// compareEvery is the pause before Postgres is asked again for the positions of the rows.
const compareEvery = time.Second

// run makes the comparison. It returns a *record.DivergedError if a journal lacks a known position, and otherwise nil. If Postgres
// does not answer, the rows wait. The journals wait for no source: each owner decides whether it needs one.
func (c *comparison) run(ctx context.Context) error {
	err := c.holds(ctx, c.known...)
	if divergence(err) != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	close(c.asked)
	if err != nil && !record.Final(err) {
		c.log.Warn("the log was not compared with every known position", "error", err)
		if err := c.awaitRows(ctx); err != nil {
			return err
		}
	}
	close(c.rowed) // after another final error too, which the readers of the log report
	return nil
}

// awaitRows compares the journals with the positions of the rows, as soon as Postgres answers.
func (c *comparison) awaitRows(ctx context.Context) error {
	for {
		err := c.holds(ctx, c.rows)
		if divergence(err) != nil {
			return err
		}
		if err == nil || record.Final(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(compareEvery):
		}
	}
}

// holds compares every journal with the sources.
func (c *comparison) holds(ctx context.Context, known ...journal.Known) error {
	errs := make([]error, len(c.journals))
	var g errgroup.Group
	for i, j := range c.journals {
		g.Go(func() error {
			errs[i] = c.client.HoldsNewest(ctx, j.Rules, 0, known...)
			return nil
		})
	}
	_ = g.Wait()
	for _, err := range errs {
		if divergence(err) != nil {
			return err // one journal is enough for the message
		}
	}
	return errors.Join(errs...)
}

func divergence(err error) *record.DivergedError {
	var diverged *record.DivergedError
	errors.As(err, &diverged)
	return diverged
}

// waitAsked waits until the journals may grow and the node may act on them. It returns false if the context ends before that. c may
// be nil.
func (c *comparison) waitAsked(ctx context.Context) bool {
	if c == nil {
		return true
	}
	select {
	case <-c.asked:
		return true
	case <-ctx.Done():
		return false
	}
}

// beforeRows returns a function that runs f once rows may be written. c may be nil.
func (c *comparison) beforeRows(f func(context.Context) error) func(context.Context) error {
	if c == nil {
		return f
	}
	return func(ctx context.Context) error {
		select {
		case <-c.rowed:
			return f(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
