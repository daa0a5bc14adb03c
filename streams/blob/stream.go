package blob

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"

	"gocloud.dev/blob"
)

// How long a store may take over a piece of a blob, and over its end: a folder syncs all of it then.
const (
	pieceWithin = 15 * time.Second
	endWithin   = time.Minute
)

// Writer writes a blob piece by piece. The blob is there once Commit has returned nil, and never in part. Whoever does not
// commit abandons; to abandon what is committed does nothing.
type Writer struct {
	key    string
	worker *worker // nil once it is closed
	write  func(piece []byte) (int, error)
	close  func([]byte) (int, error)
	cancel context.CancelFunc
	failed error
}

// NewWriter begins to write a blob, which is given up when the context ends.
func (s *Store) NewWriter(ctx context.Context, key string) (*Writer, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &Writer{key: key, cancel: cancel}
	// A store that cuts blobs into parts keeps as many in memory as it sends at once: one, of the least size that all take.
	options := &blob.WriterOptions{ContentType: "application/octet-stream", BufferSize: 5 << 20, MaxConcurrency: 1}
	out, err := open(ctx, s.line, pieceWithin, func(context.Context, func()) (*blob.Writer, error) {
		return s.bucket.NewWriter(ctx, key, options) // under the writer's context: the question's ends with the question
	}, func(late *blob.Writer) {
		cancel() // before the end, which would otherwise commit
		_ = late.Close()
	})
	if err != nil {
		cancel()
		return nil, w.wrap(err)
	}
	w.worker, w.write = newWorker(s.line), out.Write
	w.close = func([]byte) (int, error) { return 0, out.Close() }
	return w, nil
}

// Write writes a piece. After an error the piece must not be changed: a store that hangs may still read it.
func (w *Writer) Write(piece []byte) (int, error) {
	if w.failed != nil {
		return 0, w.failed
	}
	if w.worker == nil {
		return 0, w.wrap(fs.ErrClosed)
	}
	n, err := w.worker.ask(pieceWithin, w.write, piece)
	if err != nil {
		w.failed = w.wrap(err)
	}
	return n, w.failed
}

// Commit ends the blob. After an error it is not there.
func (w *Writer) Commit() error {
	if w.failed == nil {
		w.failed = w.wrap(w.end(endWithin))
	}
	w.Abandon() // what is there stays
	return w.failed
}

// Abandon gives the blob up, unless it is committed.
func (w *Writer) Abandon() {
	w.cancel() // before the end, which would otherwise commit
	_ = w.end(pieceWithin)
}

// end closes the writer, once.
func (w *Writer) end(within time.Duration) error {
	worker := w.worker
	if w.worker = nil; worker == nil {
		return nil
	}
	defer worker.end()
	_, err := worker.ask(within, w.close, nil)
	return err
}

func (w *Writer) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("blob store: writing %s: %w", w.key, err)
}

// Reader reads a blob piece by piece.
type Reader struct {
	key    string
	worker *worker // nil once it is closed
	read   func(room []byte) (int, error)
	close  func([]byte) (int, error)
	cancel context.CancelFunc
	failed error
}

// NewReader begins to read a blob. The caller closes it.
func (s *Store) NewReader(ctx context.Context, key string) (*Reader, error) {
	ctx, cancel := context.WithCancel(ctx)
	in, err := open(ctx, s.line, pieceWithin, func(context.Context, func()) (*blob.Reader, error) { return s.bucket.NewReader(ctx, key, nil) },
		func(late *blob.Reader) { late.Close() })
	if err != nil {
		cancel()
		return nil, fmt.Errorf("blob store: reading %s: %w", key, err)
	}
	return &Reader{key: key, worker: newWorker(s.line), read: in.Read, close: func([]byte) (int, error) { return 0, in.Close() }, cancel: cancel}, nil
}

// Read implements io.Reader. After an error the room must not be used: a store that hangs may still write to it.
func (r *Reader) Read(room []byte) (int, error) {
	if r.failed != nil {
		return 0, r.failed
	}
	n, err := r.worker.ask(pieceWithin, r.read, room)
	switch {
	case err == io.EOF: //nolint:errorlint // of a reader, bare
		r.failed = err
	case err != nil:
		r.failed = fmt.Errorf("blob store: reading %s: %w", r.key, err)
	}
	return n, r.failed
}

// Close ends the reading. Nothing is read after it.
func (r *Reader) Close() error {
	defer r.cancel()
	worker := r.worker
	if r.worker = nil; worker == nil {
		return nil
	}
	r.failed = fs.ErrClosed
	defer worker.end()
	_, err := worker.ask(pieceWithin, r.close, nil)
	return err
}
