// Package files keeps uploaded files in the bucket, each sealed as a stream with its owner's key. No file is ever in memory
// whole, and none is anywhere in the clear.
//
// A file is written under a key that is made for it, before the journal knows of it. Who writes it keeps it, and then tells
// the journal; or discards it. A process that is killed in between leaves a file that no record names: Sweep removes those.
package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// Sealer seals streams with the keys of owners; *seal.Owners does.
type Sealer interface {
	Writer(ctx context.Context, w io.Writer, at seal.Place) (io.WriteCloser, error)
	Reader(ctx context.Context, r io.Reader, at seal.Place) (io.Reader, error)
}

// Store is where files are kept. It is safe for concurrent use.
type Store struct {
	blobs  *blob.Store
	sealer Sealer
	prefix string // of all keys
}

// New returns a store in a bucket, which stays its user's to close. Venues that share a bucket have different prefixes: of
// files that are no other's, what one does not know is swept.
func New(bucket *gocloud.Bucket, sealer Sealer, prefix string) *Store {
	return &Store{blob.NewStore(bucket), sealer, prefix + "documents/"}
}

// key returns where the file of a document lies. The last two digits of the document's id, which are random, are a folder: so
// none holds more than a 256th of all files.
func (s *Store) key(id scalar.ID) string {
	text := id.String()
	return s.prefix + text[len(text)-2:] + "/" + text
}

// ErrChanged says that a file in the bucket is not the one that was kept there.
var ErrChanged = errors.New("the file in the bucket is not the one that was uploaded")

// File says where a file is kept and what it is.
type File struct {
	owner.Ref           // whose it is
	ID        scalar.ID // of its document
	Source    string    // its key in the bucket
	SHA256    []byte    // of what lies there, sealed
	Size      int64     // in clear, in bytes
}

// Draft is a file that is being written.
type Draft struct {
	store  *Store
	file   File
	sealed io.WriteCloser
	hash   hash.Hash
	out    *blob.Writer
	kept   bool
}

// Create begins to write a file. It is given up when the context ends before it is kept.
func (s *Store) Create(ctx context.Context, of owner.Ref, id scalar.ID) (*Draft, error) {
	d := &Draft{store: s, file: File{Ref: of, ID: id, Source: s.key(id)}, hash: sha256.New()}
	var err error
	if d.out, err = s.blobs.NewWriter(ctx, d.file.Source); err != nil {
		return nil, err
	}
	if d.sealed, err = s.sealer.Writer(ctx, io.MultiWriter(d.hash, d.out), seal.DocumentFile(of, id)); err != nil {
		d.out.Abandon()
		return nil, fmt.Errorf("seal a file: %w", err)
	}
	return d, nil
}

// Write adds to the file, in the clear.
func (d *Draft) Write(b []byte) (int, error) {
	n, err := d.sealed.Write(b)
	d.file.Size += int64(n)
	return n, err
}

// Keep ends the file, which then lies in the bucket for good.
func (d *Draft) Keep() (File, error) {
	if err := d.sealed.Close(); err != nil {
		d.out.Abandon()
		return File{}, fmt.Errorf("seal a file: %w", err)
	}
	if err := d.out.Commit(); err != nil {
		return File{}, err
	}
	d.kept = true
	d.file.SHA256 = d.hash.Sum(nil)
	return d.file, nil
}

// Discard gives the file up, and removes it if it is kept. What can't be removed now, Sweep removes later.
func (d *Draft) Discard(ctx context.Context) error {
	if !d.kept {
		d.out.Abandon()
		return nil
	}
	return d.store.blobs.Delete(ctx, d.file.Source)
}

// Open reads a file. The last part of it comes only once all of it has turned out to be what was kept; where it is not, the
// reader fails with ErrChanged or seal.ErrDamaged. The caller closes it.
func (s *Store) Open(ctx context.Context, f File) (io.ReadCloser, error) {
	in, err := s.blobs.NewReader(ctx, f.Source)
	if err != nil {
		return nil, err
	}
	clear, err := s.sealer.Reader(ctx, &verified{from: in, hash: sha256.New(), want: f.SHA256}, seal.DocumentFile(f.Ref, f.ID))
	if err != nil {
		in.Close()
		return nil, fmt.Errorf("open a file: %w", err)
	}
	return struct {
		io.Reader
		io.Closer
	}{clear, in}, nil
}

// verified ends only if what it has read has the hash: what opens a sealed stream looks for its end before it gives the
// last part away.
type verified struct {
	from io.Reader
	hash hash.Hash
	want []byte
}

// Read implements io.Reader.
func (v *verified) Read(b []byte) (int, error) {
	n, err := v.from.Read(b)
	v.hash.Write(b[:n])
	if errors.Is(err, io.EOF) && !bytes.Equal(v.hash.Sum(nil), v.want) {
		return 0, ErrChanged
	}
	return n, err
}
