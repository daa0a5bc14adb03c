// Package receipttest makes receipts in tests, from records in memory and a transparency log in memory.
package receipttest

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/domain/epoch"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/receipt"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// Log is a transparency log over the records of a journal, which signs whenever it is asked. It implements receipt.Log.
type Log struct {
	records   func() []record.Entry
	committer *commitment.Committer
	key       *transparency.Key
	signer    *transparency.Signer

	mu     sync.Mutex
	size   int64
	stored []tlog.Hash
	held   bool
	// Cosign returns the lines that witnesses add to a checkpoint with a text. It may be nil.
	Cosign func(text string) string
}

// id identifies the journals of the tests.
var id = scalar.ID{7, 7, 7}

// NewLog returns a log over records, which may grow. classes are those of the records.
func NewLog(t testing.TB, classes *disclose.Policy, journal string, records func() []record.Entry) *Log {
	t.Helper()
	l := &Log{records: records}
	var err error
	if l.committer, err = commitment.NewCommitter(classes, journal); err != nil {
		t.Fatal(err)
	}
	seed := sha256.Sum256([]byte(journal))
	origin := transparency.Origin{Host: "venue.example", Journal: journal, ID: id}
	if l.key, err = transparency.NewKey(origin, seed[:]); err != nil {
		t.Fatal(err)
	}
	l.signer = transparency.NewSigner(origin, signsAll{}, l.key)
	return l
}

// Source makes receipts of the records of a log. It implements proofs.Source.
type Source struct {
	*receipt.Prover
	*Log
}

// NewSource returns a source of the receipts of the records that a log covers.
func NewSource(t testing.TB, l *Log, classes *disclose.Policy, journal string, policy *transparency.Policy) Source {
	t.Helper()
	committer, err := commitment.NewCommitter(classes, journal)
	if err != nil {
		t.Fatal(err)
	}
	return Source{receipt.NewProver(receipt.Config{Log: l, Committer: committer, Key: key, Policy: policy, Poll: time.Millisecond}), l}
}

// Prove implements proofs.Source.
func (s Source) Prove(ctx context.Context, e record.Entry, parties []string) (*receipt.Receipt, error) {
	return s.Prover.Prove(ctx, e, parties)
}

func key(_ context.Context, sequence int64) (*commitment.EpochKey, error) {
	secret := sha256.Sum256([]byte("a secret for tests"))
	return commitment.NewEpochKey(secret[:], id, epoch.Of(sequence))
}

// signsAll lets everything be signed.
type signsAll struct{ transparency.Heads }

// Advance implements transparency.Heads.
func (signsAll) Advance(context.Context, transparency.Origin, transparency.Head, transparency.Head) error {
	return nil
}

// Verifier returns the key of the log.
func (l *Log) Verifier() string { return l.key.Verifier() }

// Hold stops the signing of records that are not signed yet, until it is called with false.
func (l *Log) Hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
}

// Record implements proofs.Source.
func (l *Log) Record(_ context.Context, sequence int64) (record.Entry, error) {
	all := l.records()
	if sequence < 0 || sequence >= int64(len(all)) {
		return record.Entry{}, fs.ErrNotExist
	}
	return all[sequence], nil
}

// Checkpoint implements receipt.Log. It covers all records unless the log is held.
func (l *Log) Checkpoint(ctx context.Context) (transparency.Checkpoint, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.records()
	for ; !l.held && l.size < int64(len(all)); l.size++ {
		if err := l.append(ctx, all[l.size]); err != nil {
			return transparency.Checkpoint{}, err
		}
	}
	if l.size == 0 {
		return transparency.Checkpoint{}, fs.ErrNotExist
	}
	root, err := tlog.TreeHash(l.size, l.hashes())
	if err != nil {
		return transparency.Checkpoint{}, err
	}
	return l.signer.Sign(ctx, transparency.Head{}, transparency.Head{Size: l.size, Root: root}, nil)
}

// Root returns the root of a record. It returns fs.ErrNotExist if the last checkpoint does not cover the record.
func (l *Log) Root(ctx context.Context, sequence int64) (commitment.Hash, error) {
	c, err := l.Checkpoint(ctx)
	if err == nil && c.Size <= sequence {
		err = fs.ErrNotExist
	}
	if err != nil {
		return commitment.Hash{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.root(ctx, l.records()[sequence])
}

// root computes the root of a record. The caller must hold the lock.
func (l *Log) root(ctx context.Context, e record.Entry) (commitment.Hash, error) {
	k, err := key(ctx, e.Position.Sequence)
	if err != nil {
		return commitment.Hash{}, err
	}
	return l.committer.Root(k, e.Position.Sequence, e.Value)
}

func (l *Log) append(ctx context.Context, e record.Entry) error {
	root, err := l.root(ctx, e)
	if err != nil {
		return err
	}
	entry := transparency.Entry(root)
	more, err := tlog.StoredHashes(l.size, entry[:], l.hashes())
	l.stored = append(l.stored, more...)
	return err
}

// hashes reads the stored hashes. The caller must hold the lock.
func (l *Log) hashes() tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, at := range indexes {
			out[i] = l.stored[at]
		}
		return out, nil
	})
}

// Cosigned implements receipt.Log.
func (l *Log) Cosigned(ctx context.Context) (transparency.Checkpoint, error) {
	c, err := l.Checkpoint(ctx)
	if err != nil || l.Cosign == nil {
		return transparency.Checkpoint{}, fs.ErrNotExist
	}
	opened, err := transparency.NewPolicy().ForLog(l.Verifier())
	if err != nil {
		return c, err
	}
	o, err := opened.Open(c.Note)
	if err != nil {
		return c, err
	}
	c.Note = append(c.Note, l.Cosign(o.Text)...)
	return c, nil
}

// Prove implements receipt.Log.
func (l *Log) Prove(_ context.Context, tree tlog.Tree, sequence int64) (tlog.RecordProof, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return tlog.ProveRecord(tree.N, sequence, l.hashes())
}
