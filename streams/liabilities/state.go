package liabilities

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
)

// Snapshot is what a tree is about: the obligations after a record, and the sums of all accounts.
type Snapshot struct {
	Position    int64
	Hash        [sha256.Size]byte // of the record
	Instant     scalar.Time       // the instant of funding that the record fixes
	obligations []trading.Obligation
	totals      form.Totals
}

// Of copies what the state owes after the record with the hash, which the state was just folded to.
func Of(s *trading.State, position int64, hash [sha256.Size]byte, instant scalar.Time) *Snapshot {
	obligations, totals := s.Obligations()
	return &Snapshot{position, hash, instant, obligations, totals}
}

// balances returns the balances that the tree has: none below 0.
func (s *Snapshot) balances() *Balances {
	b := &Balances{Position: s.Position, Hash: s.Hash, Customers: make([]Customer, len(s.obligations))}
	for i := range s.obligations {
		o := &s.obligations[i]
		b.Customers[i] = Customer{o.CustomerCode, form.AmountOf(uint64(max(o.Balance, 0)))}
	}
	return b
}

// tree builds the tree of balances.
func (b *Balances) tree(key *commitment.EpochKey) (*Tree, error) {
	return Build(form.TreeKey([commitment.KeySize]byte(key.Bytes()), b.Position, b.Hash), b.Position, b.Customers)
}

// State computes the statement about a snapshot, and the balances of its tree. key is the epoch key for the position. The same
// snapshot and key give the same statement, so an auditor who has the state and the key checks a recorded one with it.
func State(s *Snapshot, key *commitment.EpochKey) (*form.Statement, *Balances, error) {
	b := s.balances()
	t, err := b.tree(key)
	if err != nil {
		return nil, nil, err
	}
	out := &form.Statement{Timestamp: s.Instant, Position: form.Position{Sequence: s.Position, Hash: hex.EncodeToString(s.Hash[:])}, Totals: s.totals}
	out.Leaves, out.Root = t.Leaves(), t.Root().Hash
	if sum := t.Root().Sum; sum != out.Total {
		return nil, nil, fmt.Errorf("liabilities: the leaves sum to %s, and the total is %s", sum, out.Total)
	}
	if err := out.Check(); err != nil {
		return nil, nil, fmt.Errorf("liabilities: %w", err)
	}
	return out, b, nil
}
