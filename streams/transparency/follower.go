package transparency

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	// Every is the least time between two checkpoints.
	Every = time.Second
	// standby is the time without a new head after which a node continues the tree of another, and the time without a record after
	// which a node looks whether its head is still recorded.
	standby = 5 * time.Second
	// retry is the wait after an error of a store.
	retry = 2 * time.Second
	// maxPending bounds the completed tiles and bundles in memory: 8 MiB.
	maxPending = 1024
)

// Source returns the valid records of a journal partition, in order. *journal.Tail implements it.
type Source interface {
	// Poll waits for records and returns at least one. After an error of the context it may be called again.
	Poll(ctx context.Context) ([]record.Entry, error)
	Close()
}

// Config configures a Follower.
type Config struct {
	Origin Origin
	Store  *Store
	Heads  Heads
	Signer *Signer
	// From returns a source of the records after a position.
	From func(at record.Position) Source
	// Root returns the record root of an entry. It need not be safe for concurrent use.
	Root   func(ctx context.Context, e record.Entry) (commitment.Hash, error)
	Logger *slog.Logger
	// Every replaces the constant of that name, unless zero; Standby and Retry those in lower case. For tests.
	Every, Standby, Retry time.Duration
}

// Follower extends the tree of one journal partition by the records of the log, and publishes checkpoints. It keeps nothing in
// this process that it could not read again: after any error it continues from the recorded head and the stored tiles.
//
// Followers of several nodes may run at the same time. The one that does not record the next head first waits until no new head
// has been recorded for a while, and then continues from the last one.
type Follower struct {
	cfg Config
	log *slog.Logger

	// The goroutine of Run has these.
	damaged  bool     // the stored tiles are not those of the recorded head
	unsigned unsigned // kept while stores fail and the tree is read again

	mu     sync.Mutex
	status Status
}

// unsigned is the oldest record that no checkpoint covers.
type unsigned struct {
	sequence int64
	read     time.Time // when it was first read; zero if there is no such record
}

// add notes a record that was read and is not signed.
func (u *unsigned) add(sequence int64) {
	if u.read.IsZero() {
		*u = unsigned{sequence, time.Now()}
	}
}

// sign notes that a checkpoint of a size was published.
func (u *unsigned) sign(size int64) {
	if u.sequence < size {
		*u = unsigned{}
	}
}

// Status says how far a follower has come.
type Status struct {
	Size     int64     // leaves of the tree; 0 while another node extends it
	Signed   int64     // size of the last checkpoint that this node knows
	Unsigned time.Time // when the first record that no checkpoint covers was read; zero if there is none
	Halted   bool      // the log contradicts what was signed, and nothing is signed any more
	// StoredFrom is the sequence of the first record with stored leaves, as of the last Thin.
	StoredFrom int64
}

// NewFollower returns a follower. It does nothing before Run.
func NewFollower(cfg Config) *Follower {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		at     *time.Duration
		preset time.Duration
	}{{&cfg.Every, Every}, {&cfg.Standby, standby}, {&cfg.Retry, retry}} {
		if *d.at == 0 {
			*d.at = d.preset
		}
	}
	return &Follower{cfg: cfg, log: cfg.Logger.With("tlog", cfg.Origin.String())}
}

// Status returns how far the follower has come.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

func (f *Follower) update(change func(*Status)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.status)
}

// Run follows the log until the context ends or the log is invalid, and returns the error. Errors of the stores are logged
// and retried. If the log contradicts a signed tree, Run logs that and signs nothing more.
func (f *Follower) Run(ctx context.Context) error {
	for {
		err := f.lead(ctx)
		f.damaged = errors.Is(err, ErrDamaged)
		if errors.Is(err, ErrMoved) {
			f.unsigned = unsigned{} // the other node signs it
		}
		f.update(func(s *Status) { s.Size, s.Unsigned = 0, f.unsigned.read })
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case record.Final(err):
			return err
		case errors.Is(err, ErrInconsistent):
			f.log.Error("no more checkpoints are signed", "error", err)
			f.update(func(s *Status) { s.Halted = true })
			<-ctx.Done()
			return ctx.Err()
		case errors.Is(err, ErrMoved):
			f.log.Info("another node extends the tree")
			err = f.stand(ctx)
		}
		if err != nil && ctx.Err() == nil {
			f.log.Warn("the transparency log is behind", "error", err)
			wait(ctx, f.cfg.Retry)
		}
	}
}

// stand returns once no node has recorded a head for a while.
func (f *Follower) stand(ctx context.Context) error {
	var last Head
	for {
		head, err := f.cfg.Heads.Head(ctx, f.cfg.Origin)
		if err != nil {
			return err
		}
		f.update(func(s *Status) { s.Signed = head.Size })
		if head.Size == last.Size {
			return nil
		}
		last = head
		if !wait(ctx, f.cfg.Standby) {
			return ctx.Err()
		}
	}
}

// wait returns false if the context ends before the time has passed.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// lead extends the tree from the recorded head on.
func (f *Follower) lead(ctx context.Context) error {
	w, err := f.open(ctx)
	if err != nil {
		return err
	}
	source := f.cfg.From(w.at)
	defer source.Close()
	for {
		entries, err := w.poll(ctx, source)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := w.append(ctx, e); err != nil {
				return err
			}
		}
		if len(entries) == 0 && !w.waiting() {
			if _, err := w.lost(ctx); err != nil {
				return err
			}
		}
		if len(w.pending) >= maxPending {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
		if w.due() {
			if err := w.publish(ctx); err != nil {
				return err
			}
		}
	}
}

// open returns a writer at the recorded head, or at the beginning if the tree has to be built again.
func (f *Follower) open(ctx context.Context) (*writer, error) {
	head, err := f.cfg.Heads.Head(ctx, f.cfg.Origin)
	if err != nil {
		return nil, err
	}
	must, err := f.signed(ctx, head)
	if err != nil {
		return nil, err
	}
	w := &writer{Follower: f, head: head, must: must, at: record.Before, tree: new(Tree)}
	f.update(func(s *Status) { s.Signed = head.Size })
	if w.again = must.N > 0 && (must.N != head.Size || head.Forgotten || f.damaged); must.N == 0 {
		return w, nil
	}
	if w.again {
		f.log.Warn("the tree is built again from the log")
		return w, f.cfg.Store.storesAll(ctx)
	}
	tree, err := f.cfg.Store.Restore(ctx, head.Size, head.Root)
	if err != nil {
		return nil, err
	}
	w.tree, w.at = tree, head.Position
	// A process that was killed may have recorded the head and not published its checkpoint.
	if err := w.announce(ctx, head); err != nil {
		return nil, err
	}
	f.unsigned.sign(head.Size)
	return w, nil
}

// signed returns the largest tree that is known to be signed. The published checkpoint is larger than the head if Postgres was
// lost or restored from a backup.
func (f *Follower) signed(ctx context.Context, head Head) (tlog.Tree, error) {
	must := tlog.Tree{N: head.Size, Hash: head.Root}
	note, err := f.cfg.Store.Checkpoint(ctx)
	if err != nil || note == nil {
		return must, err
	}
	known, err := f.cfg.Signer.known(ctx)
	if err != nil {
		return must, err
	}
	o, err := f.cfg.Signer.open(known, note)
	switch {
	case errors.Is(err, errUnknownKey): // the record that named it may be lost, with the tree that it signed
		return must, fmt.Errorf("%w: the published checkpoint: %w", ErrInconsistent, err)
	case err != nil:
		f.log.Warn("the published checkpoint is not this log's, and is replaced", "error", err)
	case o.Size == must.N && o.Root != must.Hash:
		return must, fmt.Errorf("%w: of size %d, the root %v is recorded and %v is published", ErrInconsistent, o.Size, must.Hash, o.Root)
	case o.Size > must.N:
		f.log.Warn("a larger tree was published than is recorded", "published", o.Size, "recorded", must.N)
		must = o.Tree()
	}
	return must, nil
}
