package liabilities

import (
	"encoding/hex"
	"fmt"

	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
)

// Snapshot has the obligations after an instant of funding, and the sums of all accounts.
type Snapshot struct {
	trading.FundingInstant
	obligations []trading.Obligation
	totals      form.Totals
}

// Of copies the obligations of a state. The last record that was applied MUST be that of the instant, and the instant has its hash.
func Of(s *trading.State, instant trading.FundingInstant) *Snapshot {
	obligations, totals := s.Obligations()
	return &Snapshot{instant, obligations, totals}
}

// Totals returns the sums of all accounts, without the tree, and the number of customers.
func (s *Snapshot) Totals() (totals form.Totals, customers int) { return s.totals, len(s.obligations) }

// State computes the statement about a snapshot. The balances of the tree are at least 0. key is the epoch key for the
// position. The same snapshot and key give the same statement, so an auditor who has the state and the key checks a recorded one
// with it.
func State(s *Snapshot, key *commitment.EpochKey) (*Balances, error) {
	b, _, err := compute(s, key)
	return b, err
}

// compute returns what State returns, with the tree.
func compute(s *Snapshot, key *commitment.EpochKey) (*Balances, *Tree, error) {
	b := &Balances{Customers: make([]Customer, len(s.obligations)),
		Statement: form.Statement{Timestamp: s.Time, Position: form.Position{Sequence: s.Sequence, Hash: hex.EncodeToString(s.Hash[:])}, Totals: s.totals}}
	for i := range s.obligations {
		o := &s.obligations[i]
		b.Customers[i] = Customer{o.CustomerCode, form.AmountOf(uint64(max(o.Balance, 0)))}
	}
	t, err := b.tree(key)
	if err != nil {
		return nil, nil, err
	}
	out := &b.Statement
	out.Leaves, out.Root = t.Leaves(), t.Root().Hash
	if sum := t.Root().Sum; sum != out.Total {
		return nil, nil, fmt.Errorf("liabilities: the leaves sum to %s, and the total is %s", sum, out.Total)
	}
	if err := out.Check(); err != nil {
		return nil, nil, fmt.Errorf("liabilities: %w", err)
	}
	return b, t, nil
}
