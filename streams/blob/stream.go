package blob

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"

	"gocloud.dev/blob"
)

// Time limits of a store: pieceWithin for one piece of a blob, endWithin for its end, when a folder syncs the whole
// file.
const (
	pieceWithin = 15 * time.Second
	endWithin   = time.Minute
)

// Writer writes a blob piece by piece. The blob exists once Commit has returned nil, and never in part. A caller that
// does not commit must call Abandon, which does nothing after Commit.
type Writer struct {
	key    string
	worker *worker // nil after the end
	write  func(piece []byte) (int, error)
	close  func([]byte) (int, error)
	cancel context.CancelFunc
	failed error
}

// NewWriter starts to write a blob. The write is abandoned when the context ends.
func (s *Store) NewWriter(ctx context.Context, key string) (*Writer, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &Writer{key: key, cancel: cancel}
	// A store that splits blobs into parts buffers every part that it sends concurrently. One part of the smallest size
	// that all stores accept keeps memory low.
	options := &blob.WriterOptions{ContentType: "application/octet-stream", BufferSize: 5 << 20, MaxConcurrency: 1}
	out, err := open(ctx, s.line, pieceWithin, func(context.Context, func()) (*blob.Writer, error) {
		// The writer's context: the context of the question ends when NewWriter returns.
		return s.bucket.NewWriter(ctx, key, options)
	}, func(late *blob.Writer) {
		cancel() // before Close, which would otherwise commit
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

// Write writes a piece. After an error the caller must not change the piece: a store that hangs may still read it.
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

// Commit completes the blob. If it returns an error, the blob does not exist.
func (w *Writer) Commit() error {
	if w.failed == nil {
		w.failed = w.wrap(w.end(endWithin))
	}
	w.Abandon() // releases the context; a committed blob stays
	return w.failed
}

// Abandon gives up the blob, unless it is committed.
func (w *Writer) Abandon() {
	w.cancel() // before Close, which would otherwise commit
	_ = w.end(pieceWithin)
}

// end closes the underlying writer, at most once.
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
	worker *worker // nil after Close
	read   func(room []byte) (int, error)
	close  func([]byte) (int, error)
	cancel context.CancelFunc
	failed error
}

// NewReader starts to read a blob. The caller must close the reader.
func (s *Store) NewReader(ctx context.Context, key string) (*Reader, error) {
	return s.NewReaderAt(ctx, key, 0)
}

// NewReaderAt starts to read a blob from an offset in bytes on. The caller must close the reader.
func (s *Store) NewReaderAt(ctx context.Context, key string, offset int64) (*Reader, error) {
	ctx, cancel := context.WithCancel(ctx)
	in, err := open(ctx, s.line, pieceWithin, func(context.Context, func()) (*blob.Reader, error) {
		return s.bucket.NewRangeReader(ctx, key, offset, -1, nil)
	},
		func(late *blob.Reader) { late.Close() })
	if err != nil {
		cancel()
		return nil, fmt.Errorf("blob store: reading %s: %w", key, err)
	}
	return &Reader{key: key, worker: newWorker(s.line), read: in.Read, close: func([]byte) (int, error) { return 0, in.Close() }, cancel: cancel}, nil
}

// Read implements io.Reader. After an error the caller must not use the buffer: a store that hangs may still write to
// it.
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

// Close ends the reading. Later calls of Read fail.
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
