package receipt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// Log is a published transparency log. *transparency.Reader implements it.
type Log interface {
	Checkpoint(ctx context.Context) (transparency.Checkpoint, error)
	Cosigned(ctx context.Context) (transparency.Checkpoint, error)
	Prove(ctx context.Context, tree tlog.Tree, sequence int64) (tlog.RecordProof, error)
}

// Config configures a Prover.
type Config struct {
	Log       Log
	Committer *commitment.Committer
	// Key returns the epoch key for the sequence of a record that was acknowledged. It need not be safe for concurrent use.
	Key func(ctx context.Context, sequence int64) (*commitment.EpochKey, error)
	// Policy says which witnesses must have cosigned the checkpoints of receipts. nil for none.
	Policy *transparency.Policy
	// Poll is the time between two looks for a checkpoint.
	Poll time.Duration
}

// Prover makes the receipts of one journal. It is safe for concurrent use.
type Prover struct {
	cfg Config
	mu  sync.Mutex // of the committer and the keys
}

// NewProver returns a prover.
func NewProver(cfg Config) *Prover { return &Prover{cfg: cfg} }

// proveWithin bounds the time to make a receipt when its checkpoint is there. The next receipts wait for the keys meanwhile.
const proveWithin = 10 * time.Second

// ErrNotSigned reports that no checkpoint covers a record yet that is signed, and cosigned as the policy asks.
var ErrNotSigned = errors.New("no checkpoint covers the record yet")

// Prove returns the receipt of a record for parties, such as customer/C1. It waits for a checkpoint that covers the record until
// the context ends, and returns ErrNotSigned then.
func (p *Prover) Prove(ctx context.Context, e record.Entry, parties []string) (*Receipt, error) {
	signed, err := p.covering(ctx, e.Position.Sequence)
	if err != nil {
		return nil, err
	}
	return p.prove(ctx, e, parties, signed)
}

// covering waits for a checkpoint that covers a record.
func (p *Prover) covering(ctx context.Context, sequence int64) (transparency.Checkpoint, error) {
	last := p.cfg.Log.Checkpoint
	if p.cfg.Policy != nil && p.cfg.Policy.NeedsWitnesses() {
		last = p.cfg.Log.Cosigned
	}
	for {
		c, err := last(ctx)
		switch {
		case err == nil && c.Size > sequence:
			return c, nil
		case ctx.Err() != nil:
			return c, ErrNotSigned
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return c, err
		}
		select {
		case <-ctx.Done():
			return c, ErrNotSigned
		case <-time.After(p.cfg.Poll):
		}
	}
}

func (p *Prover) prove(ctx context.Context, e record.Entry, parties []string, signed transparency.Checkpoint) (*Receipt, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), proveWithin) // the context of the wait may have ended just now
	defer cancel()
	sequence := e.Position.Sequence
	policy := p.cfg.Policy
	if policy == nil {
		policy = transparency.NewPolicy()
	}
	policy, err := policy.ForLog(signed.Verifier)
	if err != nil {
		return nil, fmt.Errorf("receipt: %w", err)
	}
	opened, err := policy.Open(signed.Note)
	if errors.Is(err, transparency.ErrQuorum) { // the policy is stricter than that of the node which had it cosigned
		return nil, ErrNotSigned
	}
	if err != nil {
		return nil, fmt.Errorf("receipt: %w", err)
	}
	tree, err := p.tree(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("receipt: the root of record %d: %w", sequence, err)
	}
	entry := transparency.Entry(tree.Root())
	proof := transparency.Proof{Index: sequence, Checkpoint: signed.Note}
	if proof.Path, err = p.cfg.Log.Prove(ctx, opened.Tree(), sequence); err != nil {
		return nil, err
	}
	if _, err := proof.Verify(policy, entry[:]); err != nil {
		return nil, fmt.Errorf("receipt: record %d: %w", sequence, err)
	}
	r := &Receipt{Format: Format, Entry: entry[:], Proof: proof.String()}
	for _, i := range disclosed(tree.Units, parties) {
		o, err := tree.Opening(i)
		if err != nil {
			return nil, err
		}
		r.Units = append(r.Units, Unit{string(tree.Units[i].Bytes), o})
	}
	return r, nil
}

func (p *Prover) tree(ctx context.Context, e record.Entry) (*commitment.Tree, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key, err := p.cfg.Key(ctx, e.Position.Sequence)
	if err != nil {
		return nil, err
	}
	return p.cfg.Committer.Tree(key, e.Position.Sequence, e.Value)
}

// Everybody stands for a party that is shown the public units of all events of a record.
const Everybody = "everybody"

// disclosed returns the indexes of the units that parties are shown: unit 1, their own, and the public ones of the same events.
func disclosed(units []disclose.Unit, parties []string) (out []int) {
	events := make(map[int]bool)
	owns := func(u *disclose.Unit) bool {
		return u.Class != disclose.Public && u.Class != disclose.Venue && slices.Contains(parties, string(u.Owner))
	}
	for i := range units {
		if owns(&units[i]) {
			events[units[i].Event] = true
		}
	}
	all := slices.Contains(parties, Everybody)
	for i := range units {
		u := &units[i]
		if i == headUnit || owns(u) || u.Class == disclose.Public && (all || events[u.Event]) {
			out = append(out, i)
		}
	}
	return out
}
