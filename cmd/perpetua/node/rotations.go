package node

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey"
	"github.com/perpetua-exchange/perpetua/streams/receipt"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// rotationsEvery is the time between two looks for rotations that are not proven.
const rotationsEvery = 10 * time.Second

// proveRotations writes a receipt of each record that names a key to the bucket, until the context ends. It does so while both keys
// sign, so that those who know only the previous key can verify the receipt.
func (l *transparencyLog) proveRotations(ctx context.Context) error {
	reader, _, err := l.published(ctx)
	if err != nil {
		return err
	}
	store, proven := transparency.NewStore(l.blobs, reader.Origin()), make(map[int]bool)
	for {
		for _, r := range l.rotations(reader.Origin()) {
			if proven[r.Generation] {
				continue
			}
			switch err := l.proveRotation(ctx, store, r); {
			case err == nil:
				proven[r.Generation] = true
			case ctx.Err() == nil && !errors.Is(err, receipt.ErrNotSigned):
				l.logger.Warn("the rotation of a signing key is not proven yet", "generation", r.Generation, "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rotationsEvery):
		}
	}
}

// proveRotation writes the receipt of a rotation unless it exists.
func (l *transparencyLog) proveRotation(ctx context.Context, store *transparency.Store, r checkpointkey.Rotation) error {
	if _, err := store.Rotation(ctx, r.Generation); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	e, err := l.Record(ctx, r.Sequence)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, rotationsEvery)
	defer cancel()
	proof, err := l.Prove(within, e, []string{receipt.Everybody})
	if err != nil {
		return err
	}
	text, err := json.Marshal(proof)
	if err != nil {
		return err
	}
	return store.WriteRotation(ctx, r.Generation, append(text, '\n'))
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
