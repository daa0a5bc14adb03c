package liabilities

import (
	"context"
	"errors"
	"fmt"
	"time"

	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// Retention is how long the balances of a tree are kept.
const Retention = 7 * 24 * time.Hour

// ErrGone reports that the balances of a tree are not kept any more, or never were.
var ErrGone = errors.New("the balances of this tree are not kept any more")

// errUnreadable reports balances that the bucket has, and that were cut off or changed.
var errUnreadable = errors.New("the balances in the bucket are damaged")

// Store keeps the balances of trees in a bucket, encrypted with the master key.
type Store struct {
	Blobs *blob.Store
	Box   *seal.Box
}

// folder returns the prefix of the keys of a journal's blobs.
func folder(journal scalar.ID) string { return "liabilities/" + journal.String() + "/" }

// key returns the key of the balances of a position. Two histories of a log have different keys.
func key(journal scalar.ID, p form.Position) string {
	return fmt.Sprintf("%s%016d.%.16s", folder(journal), p.Sequence, p.Hash)
}

func associatedData(journal scalar.ID, key string) seal.AssociatedData {
	return seal.AssociatedData{Owner: journal.String(), Field: key, Type: "liabilities"}
}

// Keep writes balances. It does nothing if the bucket has them. It replaces balances that cannot be read, such as those that a full disk
// has cut off: all nodes compute the same ones.
func (s Store) Keep(ctx context.Context, journal scalar.ID, b *Balances) error {
	at := key(journal, b.Statement.Position)
	text, err := b.encode()
	if err != nil {
		return err
	}
	sealed, err := s.Box.Seal(text, associatedData(journal, at))
	if err != nil {
		return fmt.Errorf("liabilities: %w", err)
	}
	if created, err := s.Blobs.Create(ctx, at, sealed, blob.Patience); err != nil || created {
		return err
	}
	there, err := s.Blobs.Read(ctx, at, maxBalances)
	if err == nil {
		_, err = s.open(journal, at, there)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errUnreadable), blob.Missing(err):
		return s.Blobs.Write(ctx, at, sealed, blob.Patience)
	}
	return fmt.Errorf("liabilities: reading %s: %w", at, err)
}

// Load reads the balances of a position. It returns ErrGone if there are none.
func (s Store) Load(ctx context.Context, journal scalar.ID, p form.Position) (*Balances, error) {
	at := key(journal, p)
	sealed, err := s.Blobs.Read(ctx, at, maxBalances)
	if blob.Missing(err) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("liabilities: reading %s: %w", at, err)
	}
	b, err := s.open(journal, at, sealed)
	if err != nil {
		return nil, err
	}
	if b.Statement.Position != p {
		return nil, fmt.Errorf("liabilities: %s has the balances of record %d", at, b.Statement.Position.Sequence)
	}
	return b, nil
}

// open decrypts and decodes balances. Its error is errUnreadable, or a *seal.WrongKeyError.
func (s Store) open(journal scalar.ID, at string, sealed []byte) (*Balances, error) {
	var other *seal.WrongKeyError
	text, err := s.Box.Open(sealed, associatedData(journal, at))
	if errors.As(err, &other) {
		return nil, fmt.Errorf("liabilities: opening %s: %w", at, err)
	}
	var b *Balances
	if err == nil {
		b, err = decodeBalances(text)
	}
	if err != nil {
		return nil, fmt.Errorf("liabilities: %w: %s: %w", errUnreadable, at, err)
	}
	return b, nil
}

// Sweep deletes the balances that were written before a time.
func (s Store) Sweep(ctx context.Context, journal scalar.ID, before time.Time) error {
	all, err := s.Blobs.List(ctx, folder(journal))
	if err != nil {
		return fmt.Errorf("liabilities: %w", err)
	}
	for _, o := range all {
		if !o.IsDir && o.ModTime.Before(before) {
			if err := s.Blobs.Delete(ctx, o.Key); err != nil {
				return err
			}
		}
	}
	return nil
}
