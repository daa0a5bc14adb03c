package blob

import (
	"context"
	"fmt"
	"io"
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
	store  *Store
	key    string
	out    *blob.Writer // nil once it is closed
	turn   turn
	cancel context.CancelFunc
	failed error
}

// turn has what is asked of one blob be asked one by one, also where an earlier question was left behind: that may go on,
// and the next one has to wait for it.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take asks within a time, in its turn.
func take[T any](t turn, l *line, within time.Duration, question func() (T, error)) (T, error) {
	return ask(context.Background(), l, within, func(context.Context, func()) (T, error) {
		t <- struct{}{}
		defer func() { <-t }()
		return question()
	})
}

// NewWriter begins to write a blob, which is given up when the context ends.
func (s *Store) NewWriter(ctx context.Context, key string) (*Writer, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &Writer{store: s, key: key, turn: newTurn(), cancel: cancel}
	// A store that cuts blobs into parts keeps as many in memory as it sends at once: one, of the least size that all take.
	options := &blob.WriterOptions{ContentType: "application/octet-stream", BufferSize: 5 << 20, MaxConcurrency: 1}
	out, err := ask(ctx, s.line, pieceWithin, func(context.Context, func()) (*blob.Writer, error) {
		return s.bucket.NewWriter(ctx, key, options) // under the writer's context: the question's ends with the question
	})
	if err != nil {
		cancel()
		return nil, w.wrap(err)
	}
	w.out = out
	return w, nil
}

// Write writes a piece. After an error the piece must not be changed: a store that hangs may still read it.
func (w *Writer) Write(piece []byte) (int, error) {
	if w.failed != nil {
		return 0, w.failed
	}
	out := w.out
	n, err := take(w.turn, w.store.line, pieceWithin, func() (int, error) { return out.Write(piece) })
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
	out := w.out
	if w.out = nil; out == nil {
		return nil
	}
	_, err := take(w.turn, w.store.line, within, func() (struct{}, error) { return struct{}{}, out.Close() })
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
	store  *Store
	key    string
	in     *blob.Reader
	turn   turn
	cancel context.CancelFunc
	failed error
}

// NewReader begins to read a blob. The caller closes it.
func (s *Store) NewReader(ctx context.Context, key string) (*Reader, error) {
	ctx, cancel := context.WithCancel(ctx)
	in, err := ask(ctx, s.line, pieceWithin, func(context.Context, func()) (*blob.Reader, error) { return s.bucket.NewReader(ctx, key, nil) })
	if err != nil {
		cancel()
		return nil, fmt.Errorf("blob store: reading %s: %w", key, err)
	}
	return &Reader{store: s, key: key, in: in, turn: newTurn(), cancel: cancel}, nil
}

// Read implements io.Reader. After an error the room must not be used: a store that hangs may still write to it.
func (r *Reader) Read(b []byte) (int, error) {
	if r.failed != nil {
		return 0, r.failed
	}
	n, err := take(r.turn, r.store.line, pieceWithin, func() (int, error) { return r.in.Read(b) })
	switch {
	case err == io.EOF: //nolint:errorlint // of a reader, bare
		r.failed = err
	case err != nil:
		r.failed = fmt.Errorf("blob store: reading %s: %w", r.key, err)
	}
	return n, r.failed
}

// Close ends the reading.
func (r *Reader) Close() error {
	defer r.cancel()
	_, err := take(r.turn, r.store.line, pieceWithin, func() (struct{}, error) { return struct{}{}, r.in.Close() })
	return err
}
