package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/liabilities"
)

// The facts of a statement of liabilities that a verification may leave out, as Decided.Unverified names them.
const (
	unverifiedSums = "liabilities: sums and root" // no state is known for the instant of the statement
	unverifiedRoot = "liabilities: root"          // no epoch key is known
)

// statements checks statements of liabilities, for one worker. An owner that records a statement does not compute it: it compares
// what it can without reading the accounts.
type statements struct {
	owed   *liabilities.Snapshot // after the last instant of funding; nil if that is not known
	secret func(journal scalar.ID) (*commitment.Keys, error)
	keys   *commitment.Keys // nil before the first statement
}

// owedAfter returns the obligations if the record that was applied last is that of an instant of funding; otherwise nil.
func owedAfter(state decide.State, e *item) *liabilities.Snapshot {
	s, ok := state.(*trading.State)
	if !ok {
		return nil
	}
	instant, ok := s.FundingInstant()
	if !ok || instant.Sequence != e.Position.Sequence {
		return nil
	}
	instant.Hash = e.Position.Hash
	return liabilities.Of(s, instant)
}

// check compares the statements that a record holds with the obligations at their positions. state is the one before the record, or
// nil.
func (l *statements) check(ctx context.Context, s *span, state decide.State, e *item) (*Difference, error) {
	for _, event := range e.Record.Events {
		recorded, ok := event.(*trading.LiabilitiesRecorded)
		if !ok {
			continue
		}
		stated := &recorded.Statement
		if state == nil || l.owed == nil || l.owed.Sequence != stated.Position.Sequence {
			s.decided.Unverified[unverifiedSums]++
			continue
		}
		wrong, err := l.compare(ctx, s, state, e, stated)
		if err != nil {
			return nil, err
		}
		if wrong != "" {
			return &Difference{CheckLiabilities, e.Position.Sequence, e.Position.Offset, wrong}, nil
		}
	}
	return nil, nil
}

// compare says what is wrong with a statement, or returns "". Without the epoch key, it compares everything but the root.
func (l *statements) compare(ctx context.Context, s *span, state decide.State, e *item, stated *form.Statement) (string, error) {
	at := stated.Position.Sequence
	sums, customers := l.owed.Totals()
	least, most := padded(form.MinParts*customers), padded(form.MaxParts*customers)
	switch {
	case stated.Total != sums.Total || stated.Deficits != sums.Deficits:
		return fmt.Sprintf("the total is %s and the deficits %s; after record %d they are %s and %s", stated.Total, stated.Deficits, at, sums.Total, sums.Deficits), nil
	case stated.Venue != sums.Venue || stated.NetPaidIn != sums.NetPaidIn:
		return fmt.Sprintf("the venue's accounts are %v and %v was paid in; after record %d they are %v and %v", stated.Venue, stated.NetPaidIn, at, sums.Venue, sums.NetPaidIn), nil
	case stated.Leaves < least || stated.Leaves > most:
		return fmt.Sprintf("the tree has %d leaves, and of %d customers it has from %d to %d", stated.Leaves, customers, least, most), nil
	}
	key, err := l.key(ctx, state, e, at)
	if key == nil || err != nil {
		s.decided.Unverified[unverifiedRoot]++
		return "", err
	}
	computed, err := liabilities.State(l.owed, key)
	if err != nil {
		return "", fmt.Errorf("verify: the liabilities after record %d: %w", at, err)
	}
	if c := &computed.Statement; *c != *stated {
		return fmt.Sprintf("the tree has %d leaves and the root %x; computed from the accounts after record %d, it has %d and %x", stated.Leaves, stated.Root, at, c.Leaves, c.Root), nil
	}
	return "", nil
}

// key returns the epoch key for a position, or nil if no secret is at hand.
func (l *statements) key(ctx context.Context, state decide.State, e *item, position int64) (*commitment.EpochKey, error) {
	if l.secret == nil {
		return nil, nil
	}
	if l.keys == nil {
		keys, err := l.secret(e.Journal)
		if err != nil {
			return nil, fmt.Errorf("verify: the keys of the liabilities: %w", err)
		}
		l.keys = keys
	}
	if of, ok := state.(decide.Facts); ok {
		l.keys.Schedule = of.Commitments()
	}
	key, err := l.keys.At(ctx, position)
	if errors.Is(err, commitment.ErrUnnamed) || errors.Is(err, commitment.ErrAnotherSecret) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the key store is that of another venue, or not complete
	}
	if err != nil {
		return nil, fmt.Errorf("verify: the key of the liabilities after record %d: %w", position, err)
	}
	return key, nil
}

// padded returns the least power of two that is not below n.
func padded(n int) int64 { return 1 << bits.Len(uint(max(n, 1)-1)) }
