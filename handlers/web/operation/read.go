package operation

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// waitLimit is how long a read waits for its source to reach a position. rereadAfter is the interval at which rows
// that are too old are read again.
const (
	waitLimit   = 2 * time.Second
	rereadAfter = 25 * time.Millisecond
)

// A Waiter waits until its source has applied the record with a sequence. Folds and projections implement it.
type Waiter interface {
	Wait(ctx context.Context, sequence int64) error
}

// ReadRows is Await for database rows and also performs the read. query reads rows and returns the sequence at which
// they were read, which becomes the position of the response.
//
// Waiting alone is not sufficient, because a waiter relies on the last position that it saw, and rows may be older:
// after a crash, Postgres may have lost its last transactions, and the waiter notices only when its connection
// breaks. So ReadRows compares the sequence of the read, and reads again until two seconds have passed.
//
// As in Await, it also waits for the positions that this node last returned to the user, but it returns rows that do
// not reach them.
func ReadRows(a Request, name string, rows Waiter, query func(context.Context) (asOf int64, err error)) error {
	named, err := leastSequence(a, name)
	if err != nil {
		return err
	}
	return readRows(a, name, rows, named, query)
}

// ReadRowsOf is ReadRows for one of several journals of a request. It ignores X-Min-Log-Position, which belongs to
// another one.
func ReadRowsOf(a Request, name string, rows Waiter, query func(context.Context) (asOf int64, err error)) error {
	return readRows(a, name, rows, -1, query)
}

func readRows(a Request, name string, rows Waiter, named int64, query func(context.Context) (asOf int64, err error)) error {
	w := wantedBy(a, name, named)
	p, cancel := newPatience(a)
	defer cancel()
	for {
		if err := w.waitNamed(a, p, rows); err != nil {
			return err
		}
		if err := w.waitAnswered(a, p, rows); err != nil {
			return err
		}
		asOf, err := query(a.Context())
		if err != nil {
			return problem.SourceFailed(err)
		}
		if w.satisfied(p, asOf) {
			a.SetReadPosition(name, asOf)
			return nil
		}
		select {
		case <-p.long.Done():
			if asOf < named {
				return waited(a)
			}
		case <-time.After(rereadAfter):
		}
	}
}

// leastSequence returns the sequence of X-Min-Log-Position in the journal, or -1 without the header.
func leastSequence(a Request, name string) (int64, error) {
	texts := a.transport.Least()
	switch {
	case len(texts) > 1:
		return -1, problem.HeaderGivenTwice(HeaderMinLogPosition)
	case len(texts) == 0 || texts[0] == "":
		return -1, nil
	}
	position, err := record.ParseLogPosition(texts[0])
	if err != nil {
		return -1, problem.InvalidHeader(HeaderMinLogPosition, validation.InvalidValue, "the position must have the form journal/partition@sequence")
	}
	if position.Journal != name || position.Partition != 0 {
		return -1, notReached("This answer follows the journal " + name + ", not the one that the position names.")
	}
	return position.Sequence, nil
}

// await waits for a sequence until the context wait ends.
func await(wait context.Context, a Request, source Waiter, sequence int64) error {
	err := source.Wait(wait, sequence)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded), wait.Err() != nil: // drivers may return other errors for a timeout
		return waited(a)
	}
	return problem.Unavailable("SOURCE_UNAVAILABLE", "The source of this answer is not available.", time.Second).Because(err)
}

// waited returns the error after a timeout, or the context's error if the client has disconnected.
func waited(a Request) error {
	if err := a.Context().Err(); err != nil {
		return err
	}
	return notReached("The position was not reached within two seconds.")
}

func notReached(detail string) *problem.Problem {
	return problem.New(http.StatusPreconditionFailed, "LOG_POSITION_NOT_REACHED", detail)
}
