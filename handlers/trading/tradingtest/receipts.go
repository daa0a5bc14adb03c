package tradingtest

import (
	"context"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/receipt"
	"github.com/perpetua-exchange/perpetua/streams/receipt/receipttest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// classes compiles the disclosure classes once for all tests of a package.
var classes = sync.OnceValues(func() (*disclose.Policy, error) { return disclose.Compile(schemas.Events()) })

// Receipts makes the receipts of a journal. It implements proofs.Source.
type Receipts struct {
	receipttest.Source
	Policy *transparency.Policy // accepts the checkpoints of the receipts
	// NoRecord, NoProof, and NoRoot are the errors of Record, of Prove, and of the look for a root, unless nil.
	NoRecord, NoProof, NoRoot error
}

// roots knows the roots of the records of journals. It implements asof.Roots.
type roots map[string]*Receipts

// Has implements asof.Roots.
func (r roots) Has(ctx context.Context, of record.LogPosition, root commitment.Hash) (bool, error) {
	journal := r[of.Journal]
	if journal.NoRoot != nil {
		return false, journal.NoRoot
	}
	has, err := journal.Root(ctx, of.Sequence)
	return has == root, err
}

func newReceipts(t testing.TB, j *Journal) *Receipts {
	t.Helper()
	all, err := classes()
	if err != nil {
		t.Fatal(err)
	}
	log := receipttest.NewLog(t, all, j.rules.Journal(), j.Entries)
	key, err := note.NewVerifier(log.Verifier())
	if err != nil {
		t.Fatal(err)
	}
	return &Receipts{Source: receipttest.NewSource(t, log, all, j.rules.Journal(), nil), Policy: transparency.NewPolicy(key)}
}

// Record implements proofs.Source.
func (r *Receipts) Record(ctx context.Context, sequence int64) (record.Entry, error) {
	if r.NoRecord != nil {
		return record.Entry{}, r.NoRecord
	}
	return r.Source.Record(ctx, sequence)
}

// Prove implements proofs.Source.
func (r *Receipts) Prove(ctx context.Context, e record.Entry, parties []string) (*receipt.Receipt, error) {
	if r.NoProof != nil {
		return nil, r.NoProof
	}
	return r.Source.Prove(ctx, e, parties)
}
