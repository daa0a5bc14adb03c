// Package files stores uploaded files in the bucket, each sealed as a stream with its owner's key. A file is never
// wholly in memory, and never stored in the clear.
//
// A file is written under a new key before the journal records it. The writer then either calls Keep and submits the
// command that records the file, or calls Discard. A process that is killed in between leaves a file without a record;
// Sweeper removes it.
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

// Sealer seals streams with the keys of owners. *seal.Owners implements it.
type Sealer interface {
	Writer(ctx context.Context, w io.Writer, at seal.AssociatedData) (io.WriteCloser, error)
	Reader(ctx context.Context, r io.Reader, at seal.AssociatedData) (io.Reader, error)
}

// Store stores files in a bucket. It is safe for concurrent use.
type Store struct {
	blobs  *blob.Store
	sealer Sealer
	prefix string // prefix of all keys
}

// New returns a store in a bucket. The caller keeps the bucket and closes it. Venues that share a bucket must use
// different prefixes: a venue sweeps every file under its prefix that it does not need.
func New(bucket *gocloud.Bucket, sealer Sealer, prefix string) *Store {
	return &Store{blob.NewStore(bucket), sealer, prefix + "documents/"}
}

// key returns the key of a document's file. The last two digits of the document's id, which are random, name a folder,
// so that each folder holds about a 256th of all files.
func (s *Store) key(id scalar.ID) string {
	text := id.String()
	return s.prefix + text[len(text)-2:] + "/" + text
}

// ErrChanged reports that a file in the bucket is not the one that was stored there.
var ErrChanged = errors.New("the file in the bucket is not the one that was uploaded")

// File locates and describes a stored file.
type File struct {
	owner.Ref           // owner of the file
	ID        scalar.ID // id of the document
	Source    string    // key in the bucket
	SHA256    []byte    // of the sealed content
	Size      int64     // of the content in clear, in bytes
}

// Draft is a file that is being written.
type Draft struct {
	store     *Store
	file      File
	sealed    io.WriteCloser
	hash      hash.Hash
	out       *blob.Writer
	completed bool
}

// Create starts to write a file. The write is abandoned if the context ends before Keep.
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

// Write appends clear bytes to the file.
func (d *Draft) Write(b []byte) (int, error) {
	n, err := d.sealed.Write(b)
	d.file.Size += int64(n)
	return n, err
}

// Keep completes the file. It then stays in the bucket until it is deleted.
func (d *Draft) Keep() (File, error) {
	if err := d.sealed.Close(); err != nil {
		d.out.Abandon()
		return File{}, fmt.Errorf("seal a file: %w", err)
	}
	if err := d.out.Commit(); err != nil {
		return File{}, err
	}
	d.completed = true
	d.file.SHA256 = d.hash.Sum(nil)
	return d.file, nil
}

// Discard abandons the file, or deletes it if Keep has completed it. If the deletion fails, Sweeper deletes the file
// later.
func (d *Draft) Discard(ctx context.Context) error {
	if !d.completed {
		d.out.Abandon()
		return nil
	}
	return d.store.blobs.Delete(ctx, d.file.Source)
}

// Open returns a reader of the file's clear content. The reader returns the last part only after the whole file has
// been verified; if it is not the stored file, the reader fails with ErrChanged or seal.ErrDamaged. The caller must
// close it.
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

// verified is a reader that ends with ErrChanged instead of io.EOF if the content does not have the hash. A reader of a
// sealed stream reads this source to its end before it returns the last part.
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
