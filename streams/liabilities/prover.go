package liabilities

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/past"
)

// ErrUnknownCustomer reports that a customer has no leaves in a tree, for example because of a later registration.
var ErrUnknownCustomer = errors.New("the tree has no such customer")

// Prover makes customers' proofs. It builds a tree from the balances in the store or, when they are damaged or not kept any more, from
// the state of the journal at that time. It keeps the last tree of each kind in memory. It is safe for concurrent use.
type Prover struct {
	store   Store
	keys    Keys
	journal func(context.Context) (scalar.ID, error)
	states  past.States // nil if past states are not known

	stored, computed lastTree
}

// lastTree makes one tree at a time, and keeps the last one.
type lastTree struct {
	turn chan struct{} // holds a token while a tree is looked for; guards the fields below
	key  string        // of the tree's balances
	tree *Tree
}

// NewProver returns a prover. journal returns the identity of the trading journal. Without states, a tree is proven only while
// its balances are kept.
func NewProver(s Store, k Keys, journal func(context.Context) (scalar.ID, error), states past.States) *Prover {
	return &Prover{store: s, keys: k, journal: journal, states: states, stored: lastTree{turn: make(chan struct{}, 1)},
		computed: lastTree{turn: make(chan struct{}, 1)}}
}

// Prove returns the proof of a customer for a statement. The errors are ErrUnknownCustomer, ErrGone if the prover has no states,
// and those of the stores and of the states.
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

// treeOf returns the tree of a statement. Computing a state takes long, so proofs of kept trees do not wait for it.
func (p *Prover) treeOf(ctx context.Context, s *form.Statement) (*Tree, error) {
	journal, err := p.journal(ctx)
	if err != nil {
		return nil, err
	}
	at := key(journal, s.Position)
	t, err := p.stored.get(ctx, at, s, func() (*Tree, error) { return p.load(ctx, journal, s) })
	if p.states == nil || !errors.Is(err, ErrGone) && !errors.Is(err, errUnreadable) {
		return t, err
	}
	return p.computed.get(ctx, at, s, func() (*Tree, error) { return p.compute(ctx, s) })
}

// get returns the tree of a statement, which made returns if it is not the last one. The tree has the recorded root.
func (l *lastTree) get(ctx context.Context, at string, s *form.Statement, made func() (*Tree, error)) (*Tree, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	t := l.tree
	if l.key != at {
		var err error
		if t, err = made(); err != nil {
			return nil, err
		}
	}
	if root := t.Root(); root.Hash != s.Root || root.Sum != s.Total {
		return nil, fmt.Errorf("liabilities: the balances of record %d do not give the recorded root", s.Position.Sequence)
	}
	l.key, l.tree = at, t
	return t, nil
}

// load builds a tree from the balances in the store. It returns ErrGone if they are not kept.
func (p *Prover) load(ctx context.Context, journal scalar.ID, s *form.Statement) (*Tree, error) {
	b, err := p.store.Load(ctx, journal, s.Position)
	if err != nil {
		return nil, err
	}
	epoch, err := p.keys(ctx, s.Position.Sequence)
	if err != nil {
		return nil, err
	}
	return b.tree(epoch)
}

// compute builds a tree from the state after the record that the statement is about.
func (p *Prover) compute(ctx context.Context, s *form.Statement) (*Tree, error) {
	state, at, err := p.states.StateAt(ctx, trading.Rules().Journal(), 0, s.Position.Sequence)
	if err != nil {
		return nil, fmt.Errorf("liabilities: the state after record %d: %w", s.Position.Sequence, err)
	}
	if hash := hex.EncodeToString(at.Hash[:]); hash != s.Position.Hash {
		return nil, fmt.Errorf("liabilities: record %d has the hash %s, and the statement is about %.64s", s.Position.Sequence, hash, s.Position.Hash)
	}
	met, ok := state.(*trading.State)
	if !ok {
		return nil, fmt.Errorf("liabilities: the state after record %d is a %T", s.Position.Sequence, state)
	}
	instant, ok := met.FundingInstant()
	if !ok || instant.Sequence != s.Position.Sequence {
		return nil, fmt.Errorf("liabilities: record %d fixed no funding", s.Position.Sequence)
	}
	instant.Hash = at.Hash
	epoch, err := p.keys(ctx, s.Position.Sequence)
	if err != nil {
		return nil, err
	}
	_, t, err := compute(Of(met, instant), epoch)
	return t, err
}
