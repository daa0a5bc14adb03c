package liabilities

import (
	"context"
	"errors"
	"fmt"

	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// ErrUnknownCustomer reports that a customer has no leaves in a tree, for example because of a later registration.
var ErrUnknownCustomer = errors.New("the tree has no such customer")

// Prover makes customers' proofs. It builds one tree at a time from the balances in the store, and keeps the last one in
// memory. It is safe for concurrent use.
type Prover struct {
	store   Store
	keys    Keys
	journal func(context.Context) (scalar.ID, error)

	turn chan struct{} // holds a token while a tree is looked for; guards the fields below
	key  string        // of the last tree's balances
	tree *Tree
}

// NewProver returns a prover. journal returns the identity of the trading journal.
func NewProver(s Store, k Keys, journal func(context.Context) (scalar.ID, error)) *Prover {
	return &Prover{store: s, keys: k, journal: journal, turn: make(chan struct{}, 1)}
}

// Prove returns the proof of a customer for a statement. The errors are ErrGone, ErrUnknownCustomer, and those of the
// stores.
func (p *Prover) Prove(ctx context.Context, r form.Recorded, customer string) (*form.Proof, error) {
	t, err := p.treeOf(ctx, &r.Statement)
	if err != nil {
		return nil, err
	}
	proof, known := t.Prove(r.Publish(), customer)
	if !known {
		return nil, ErrUnknownCustomer
	}
	return proof, nil
}

// treeOf returns the tree of a statement.
func (p *Prover) treeOf(ctx context.Context, s *form.Statement) (*Tree, error) {
	journal, err := p.journal(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	at := key(journal, s.Position)
	if p.key == at {
		return p.tree, nil
	}
	b, err := p.store.Load(ctx, journal, s.Position)
	if err != nil {
		return nil, err
	}
	epoch, err := p.keys(ctx, s.Position.Sequence)
	if err != nil {
		return nil, err
	}
	t, err := b.tree(epoch)
	if err != nil {
		return nil, err
	}
	if root := t.Root(); root.Hash != s.Root || root.Sum != s.Total {
		return nil, fmt.Errorf("liabilities: the balances of record %d do not give the recorded root", s.Position.Sequence)
	}
	p.key, p.tree = at, t
	return t, nil
}
