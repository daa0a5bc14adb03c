package seal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tink-crypto/tink-go/v2/streamingaead/subtle"
)

const (
	// segmentSize is the length of a sealed segment of a stream in bytes. It bounds the part of a file that is in
	// memory.
	segmentSize   = 64 << 10
	streamVersion = 1
)

// Writer returns a writer of a sealed stream. It encrypts the data with the key of its owner, in segments of 64
// KiB, and writes them to w. Close completes the stream, and does not close w. Readers fail at the end of a stream that
// was not closed. Once the key is destroyed, Write and Close return ErrDestroyed.
func (o *Owners) Writer(ctx context.Context, w io.Writer, at AssociatedData) (io.WriteCloser, error) {
	cipher, header, err := o.stream(ctx, at.Owner)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(header); err != nil {
		return nil, err
	}
	plain, err := cipher.NewEncryptingWriter(w, associated(header, at))
	if err != nil {
		return nil, fmt.Errorf("seal a stream: %w", err)
	}
	return &sealing{ctx, o, at.Owner, plain}, nil
}

// Reader returns a reader of a stream that Writer sealed with the same associated data. It fails with ErrDamaged where the stream
// was changed or cut off, or if its associated data differ. The data before that is correct, but a caller must not
// treat it as the whole. Once the key is destroyed, Read returns ErrDestroyed.
func (o *Owners) Reader(ctx context.Context, r io.Reader, at AssociatedData) (io.Reader, error) {
	cipher, own, err := o.stream(ctx, at.Owner)
	if err != nil {
		return nil, err
	}
	from := &source{r: r}
	header := make([]byte, len(own))
	if _, err := io.ReadFull(from, header); err != nil || string(header) != string(own) {
		return nil, from.openError()
	}
	plain, err := cipher.NewDecryptingReader(from, associated(header, at))
	if err != nil {
		return nil, from.openError()
	}
	return &opening{ctx: ctx, owners: o, owner: at.Owner, from: from, plain: plain}, nil
}

// stream returns the cipher of an owner's streams, and the header of each stream: a version and the id of the key.
func (o *Owners) stream(ctx context.Context, owner string) (*subtle.AESGCMHKDF, []byte, error) {
	box, err := o.cache.get(ctx, owner)
	if err != nil {
		return nil, nil, err
	}
	cipher, err := subtle.NewAESGCMHKDF(box.Derive("stream"), "SHA256", KeySize, segmentSize, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make the cipher: %w", err)
	}
	return cipher, append([]byte{streamVersion}, box.id[:]...), nil
}

// sealing checks at each piece that the key still exists: an upload may take long.
type sealing struct {
	ctx    context.Context // context of the upload
	owners *Owners
	owner  string
	plain  io.WriteCloser
}

func (s *sealing) Write(p []byte) (int, error) {
	if _, err := s.owners.cache.get(s.ctx, s.owner); err != nil {
		return 0, err
	}
	return s.plain.Write(p)
}

func (s *sealing) Close() error {
	if _, err := s.owners.cache.get(s.ctx, s.owner); err != nil {
		return err
	}
	return s.plain.Close()
}

// opening checks the key in the same manner for a download. After an error every Read fails: the cipher treats a
// segment that it could not open as the last one and would then report the end.
type opening struct {
	ctx    context.Context // context of the download
	owners *Owners
	owner  string
	from   *source
	plain  io.Reader
	err    error
}

func (s *opening) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if _, s.err = s.owners.cache.get(s.ctx, s.owner); s.err != nil {
		return 0, s.err
	}
	n, err := s.plain.Read(p)
	if s.err = err; err != nil && !errors.Is(err, io.EOF) {
		s.err = s.from.openError()
	}
	return n, s.err
}

// source records its read error, which distinguishes a failed read from damaged content.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// openError returns the error of a stream that could not be opened.
func (s *source) openError() error {
	if s.err != nil {
		return fmt.Errorf("read a sealed stream: %w", s.err)
	}
	return ErrDamaged
}
