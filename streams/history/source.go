package history

import (
	"context"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Source has the records of the journals, wherever they are: a topic alone, or an archive and then a topic.
type Source interface {
	// After returns the valid records of a partition after a position. It MUST prove that the journal holds the position before
	// it returns a record, with a *record.DivergedError otherwise. It returns a *record.TrimmedError from Records if it does not
	// have the records that follow.
	After(rules decide.Rules, partition int32, at record.Position) Records
}

// Records are the valid records of a partition, in order. They are not safe for concurrent use.
type Records interface {
	// PollFor returns at least one record. The caller expects the record with the sequence, which the journal has held. If the
	// source has lost it, the result is an error and not an endless wait.
	PollFor(ctx context.Context, sequence int64) ([]record.Entry, error)
	Close()
}

// Topic is the source that has what the topics hold.
type Topic struct{ Client *journal.Client }

// After implements Source.
func (t Topic) After(rules decide.Rules, partition int32, at record.Position) Records {
	return journal.NewReader(t.Client, rules, partition, at)
}
