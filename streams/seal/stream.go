package seal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tink-crypto/tink-go/v2/streamingaead/subtle"
)

const (
	// segmentSize is the length of a sealed segment of a stream in bytes: how much of a file is in memory at a time.
	segmentSize   = 64 << 10
	streamVersion = 1
)

// Writer returns a writer of a sealed stream: what is written to it goes to w encrypted with the key of the place's owner, in
// segments of 64 KiB. The stream is complete once it is closed, which does not close w; one that was not closed is not read
// to its end by anybody. Once the key is destroyed, Write and Close return ErrDestroyed.
func (o *Owners) Writer(ctx context.Context, w io.Writer, at Place) (io.WriteCloser, error) {
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

// Reader returns a reader of what was sealed by Writer for the given place. What it returns is as it was written, up to where
// the stream is changed, cut off or of another place: there it fails with ErrDamaged. So whoever reads must not take what
// came before an error for the whole. Once the key is destroyed, Read returns ErrDestroyed.
func (o *Owners) Reader(ctx context.Context, r io.Reader, at Place) (io.Reader, error) {
	cipher, own, err := o.stream(ctx, at.Owner)
	if err != nil {
		return nil, err
	}
	from := &source{r: r}
	header := make([]byte, len(own))
	if _, err := io.ReadFull(from, header); err != nil || string(header) != string(own) {
		return nil, from.fault()
	}
	plain, err := cipher.NewDecryptingReader(from, associated(header, at))
	if err != nil {
		return nil, from.fault()
	}
	return &opening{ctx: ctx, owners: o, owner: at.Owner, from: from, plain: plain}, nil
}

// stream returns the cipher of an owner's streams, and how each of them begins: with a version and the id of the key.
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

// sealing looks at each piece whether the key is still there: an upload may take long.
type sealing struct {
	ctx    context.Context // of the upload
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

// opening does the same for a download, and fails for good: the cipher takes a segment that it could not open for the last.
type opening struct {
	ctx    context.Context // of the download
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
		s.err = s.from.fault()
	}
	return n, s.err
}

// source remembers why it could not be read, to tell that from what is wrong with its content.
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

// fault returns what is wrong with a stream that could not be opened.
func (s *source) fault() error {
	if s.err != nil {
		return fmt.Errorf("read a sealed stream: %w", s.err)
	}
	return ErrDamaged
}
