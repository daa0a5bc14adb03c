package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/receipt"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

const (
	// rotationsEvery is the time between two looks for rotations that are not proven.
	rotationsEvery = 2 * time.Second
	// rotationWithin is the time to wait for the cosignatures of a rotation at each look.
	rotationWithin = transparency.CosignEvery + 5*time.Second
)

// proveRotations writes a receipt of each record that names a key to the bucket, until the context ends. Errors are logged and retried.
func (l *transparencyLog) proveRotations(ctx context.Context) error {
	proven := make(map[int]string) // by generation: "" once the receipt is there, or the last error
	for {
		if err := l.proveEach(ctx, proven); err != nil && ctx.Err() == nil {
			l.logger.Warn("no rotation of a signing key is proven yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rotationsEvery):
		}
	}
}

// proveEach proves the rotations that are not proven. An error of one is logged when it is another than the last one.
func (l *transparencyLog) proveEach(ctx context.Context, proven map[int]string) error {
	reader, id, err := l.published(ctx)
	if err != nil {
		return err
	}
	store := transparency.NewStore(l.blobs, reader.Origin())
	for _, r := range l.rotations(reader.Origin()) {
		last, tried := proven[r.Generation]
		if tried && last == "" {
			continue
		}
		err := l.proveRotation(ctx, store, reader, id, r)
		if err == nil {
			proven[r.Generation] = ""
			continue
		}
		if ctx.Err() == nil && !errors.Is(err, receipt.ErrNotSigned) && err.Error() != last {
			l.logger.Warn("the rotation of a signing key is not proven yet", "generation", r.Generation, "error", err)
		}
		proven[r.Generation] = err.Error()
	}
	return nil
}

// proveRotation writes the receipt of a rotation unless it exists. Those who know only the previous key can verify it.
func (l *transparencyLog) proveRotation(ctx context.Context, store *transparency.Store, reader *transparency.Reader, id scalar.ID, r checkpointkey.Rotation) error {
	if _, err := store.Rotation(ctx, r.Generation); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	e, err := l.Record(ctx, r.Sequence)
	if err != nil {
		return err
	}
	wait := rotationWithin
	if r.Retired != 0 {
		wait = time.Second // witnesses have cosigned a tree that the previous key signed, or will not
	}
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	text, err := receiptUnder(within, l, e, r.Previous)
	if err != nil && r.Retired != 0 {
		// The published trees no longer have the previous key's signature. That of the record itself has it.
		var past *receipt.Prover
		if past, err = l.proverOfPast(ctx, reader, id, r.Sequence); err == nil {
			text, err = receiptUnder(ctx, past, e, r.Previous)
		}
	}
	if err != nil {
		return err
	}
	return store.WriteRotation(ctx, r.Generation, text)
}

// proverOfPast returns a prover of the last record of the tree that ends with a record. It asks for no cosignatures.
func (l *transparencyLog) proverOfPast(ctx context.Context, reader *transparency.Reader, id scalar.ID, sequence int64) (*receipt.Prover, error) {
	signer := transparency.NewSigner(reader.Origin(), nil, l.checkpointKeys(reader.Origin())) // no head is recorded
	past, err := signer.Past(ctx, reader, sequence+1)
	if err != nil {
		return nil, err
	}
	committer, err := l.committer()
	if err != nil {
		return nil, err
	}
	return receipt.NewProver(receipt.Config{Log: past, Committer: committer, Poll: receiptPoll, Key: l.keysLater(id)}), nil
}

// receiptUnder returns the JSON of the receipt of a record with the public units. It returns receipt.ErrNotSigned if a key has not signed it.
func receiptUnder(ctx context.Context, of prover, e record.Entry, key string) ([]byte, error) {
	proof, err := of.Prove(ctx, e, []string{receipt.Everybody})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(proof)
	if err != nil {
		return nil, err
	}
	policy, err := transparency.NewPolicy().ForLog(key)
	if err != nil {
		return nil, err
	}
	if _, err := receipt.Verify(text, policy); err != nil {
		return nil, fmt.Errorf("%w by the previous key: %w", receipt.ErrNotSigned, err)
	}
	return append(text, '\n'), nil
}

// prover makes receipts. *receipt.Prover and *transparencyLog implement it.
type prover interface {
	Prove(ctx context.Context, e record.Entry, parties []string) (*receipt.Receipt, error)
}

// Keys returns the verifier keys of the log as a list (transparency.ParseLogKeys), the oldest first.
func (l servedLog) Keys(ctx context.Context) (string, error) {
	rotations := l.of.rotations(l.Origin())
	if len(rotations) == 0 {
		c, err := l.Checkpoint(ctx)
		return transparency.KeyLine(c.Newest(), time.Time{}), err
	}
	var list strings.Builder
	for _, k := range keyList(rotations) {
		list.WriteString(transparency.KeyLine(k.key, k.until))
	}
	return list.String(), nil
}

// servedLog is a log with its keys. It implements tlog.Log.
type servedLog struct {
	*transparency.Reader
	of *transparencyLog
}
