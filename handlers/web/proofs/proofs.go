// Package proofs answers requests for receipts: for a record, the parts that concern one party, and the proof that the record is
// in a transparency log (package receipt).
package proofs

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/slots"
	"github.com/perpetua-exchange/perpetua/streams/receipt"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Source makes the receipts of one journal.
type Source interface {
	// Record returns the record with a sequence that the follower of the journal has applied. It returns a *record.TrimmedError
	// if the log does not hold it any more.
	Record(ctx context.Context, sequence int64) (record.Entry, error)
	// Prove returns a record's receipt for parties. It waits for a checkpoint until the context ends, and returns
	// receipt.ErrNotSigned then.
	Prove(ctx context.Context, e record.Entry, parties []string) (*receipt.Receipt, error)
}

const (
	// patience is how long a request waits for a checkpoint. Witnesses are asked every ten seconds.
	patience = 15 * time.Second
	// busy is how long a request waits for one of the slots.
	busy = 2 * time.Second
	// again is the Retry-After of a request that waited until its patience was over.
	again = 5 * time.Second
)

// Receipts answers the requests for the receipts of one journal.
type Receipts struct {
	source Source
	slots  *slots.Slots // a request reads up to some thousands of records, and then may wait
}

// New returns the receipts of a source. A nil source answers that there are none.
func New(source Source) *Receipts {
	return &Receipts{source, slots.New(64, 16)}
}

// Wanted is the record that a receipt is for.
type Wanted struct {
	Journal  string
	Sequence int64
	AsOf     int64    // a sequence that the journal has reached
	Parties  []string // whose units are disclosed
	// Concerns reports whether a record concerns the object of the request. If not, the error is Missing.
	Concerns func(record.Entry) bool
	Missing  error
}

// Show responds with a receipt.
func (r *Receipts) Show(c echo.Context, w Wanted) error {
	if r.source == nil {
		return problem.Unavailable("RECEIPTS_UNAVAILABLE", "This node makes no receipts.", time.Minute)
	}
	if w.Sequence > w.AsOf {
		return w.Missing
	}
	ctx := c.Request().Context()
	leave, err := r.enter(ctx, rest.PrincipalOf(c).Broker)
	if err != nil {
		return err
	}
	defer leave()
	e, err := r.source.Record(ctx, w.Sequence)
	var trimmed *record.TrimmedError
	switch {
	case errors.As(err, &trimmed):
		return problem.Conflict("RECORD_ARCHIVED", "The log does not hold the record any more, and this node can't read it in the archive.").Because(err)
	case err != nil:
		return err
	case !w.Concerns(e):
		return w.Missing
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := r.source.Prove(waiting, e, w.Parties)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, receipt.ErrNotSigned):
		return problem.Unavailable("RECEIPT_NOT_READY", "No checkpoint covers the record yet that is signed, and cosigned as the policy asks.", again)
	case err != nil:
		return err
	}
	rest.SetReadPosition(c, w.Journal, w.AsOf)
	return c.JSON(http.StatusOK, found)
}

// enter takes a slot.
func (r *Receipts) enter(ctx context.Context, broker string) (leave func(), err error) {
	soon, cancel := context.WithTimeout(ctx, busy)
	defer cancel()
	leave, ok := r.slots.Take(soon, broker)
	switch {
	case ok:
		return leave, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, problem.Unavailable("RECEIPTS_BUSY", "Too many receipts are being made.", time.Second)
}
