package fence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// Status is the status of a venue.
type Status string

// The statuses.
const (
	Unknown  Status = "unknown"  // the fence was never read
	Own      Status = "own"      // the venue may act
	Fenced   Status = "fenced"   // another venue may act
	Settling Status = "settling" // after a take-over, until the previous holder must have stopped
	Away     Status = "away"     // the venue held the fence and can no longer read it
)

// Statuses returns all statuses.
func Statuses() []Status { return []Status{Unknown, Own, Fenced, Settling, Away} }

// View is a snapshot of the status.
type View struct {
	Status   Status
	Fence    Fence  // as it was last read
	Location string // of the venue's own log
	// Venue and Epoch identify the venue. For a fenced venue the id is VenueAt its location, and the epoch is 0.
	Venue string
	Epoch int64

	audience string
}

// Acts reports whether the venue may act on the world.
func (v View) Acts() bool { return v.Status == Own }

// IsFenced reports whether another venue holds the fence.
func (v View) IsFenced() bool { return v.Status == Fenced }

// Known reports whether the fence was ever read.
func (v View) Known() bool { return v.Status != Unknown }

// Audience returns the audience of the venue's tokens; "" while the fence is unknown.
func (v View) Audience() string { return v.audience }

// Config configures a Watch.
type Config struct {
	Keys *seal.KeyStore
	// Identify returns the id that names the fence, and the location of the log. founded is false if the log is empty.
	Identify func(ctx context.Context) (journal scalar.ID, location string, founded bool, err error)
	// Former returns the location that an older build recorded for the same log; "" if there is none. It is called if the fence
	// names another location than the log's. nil for none.
	Former func(ctx context.Context) (location string, err error)
	// Belongs returns an error if the key store is not that of the venue, as far as the venue's log can tell. It is called before
	// the fence is created: an empty folder has no fence either. nil to skip the check.
	Belongs func(ctx context.Context) error
	// Settle is the time for which a venue waits if it finds a take-over unfinished.
	Settle time.Duration
	// Elapsed is a monotonic clock, as that of journal.Clock. It MUST count the time during which the machine is suspended, because
	// the fence may change in that time.
	Elapsed func() time.Duration
	// Command is the command line of a take-over, for messages.
	Command string
	Logger  *slog.Logger
}

const (
	pollEvery  = time.Second
	foundEvery = 50 * time.Millisecond // while the journal is not founded
)

// Watch polls the fence of a venue. It implements seal.Guard and is safe for concurrent use.
type Watch struct {
	cfg Config

	reading chan struct{} // contains one element during a read
	ask     func(context.Context) (Fence, error)

	mu       sync.Mutex
	begun    int64 // the number of reads that have begun
	answered int64 // the number of the last read that has ended, unless its caller broke it off
	failure  error // of that read
	journal  scalar.ID
	location string // "" until it is known
	fence    Fence
	holder   string        // the audience of the venue that holds it
	alone    string        // the id of this venue while it is fenced
	known    bool          // fence was read
	read     time.Duration // when the question was asked that fence answers, on Elapsed
	settling time.Duration // since when this process has seen the take-over that fence tells of, on Elapsed
	away     error         // why the last question was not answered
	last     Status
	changed  chan struct{} // closed and replaced when the status changes
}

// NewWatch returns a watch. Run polls the fence.
func NewWatch(c Config) *Watch {
	w := &Watch{cfg: c, reading: make(chan struct{}, 1), last: Unknown, changed: make(chan struct{})}
	w.ask = w.askStore
	return w
}

// Run reads the fence until the context ends.
func (w *Watch) Run(ctx context.Context) {
	for {
		pause := pollEvery
		if err := w.Read(ctx); errors.Is(err, errNotFounded) {
			pause = foundEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

var (
	errNotFounded = errors.New("the journal is not founded yet")
	errVanished   = errors.New("the fence has disappeared from the key store, which may be another one or not mounted: restore it, or restart the venue if it is the right one")
)

// identifyWithin limits the time for which the brokers are asked for the location of the log.
const identifyWithin = 10 * time.Second

// Read reads the fence, and creates it if it does not exist. Concurrent calls share a read that began after
// all these calls.
func (w *Watch) Read(ctx context.Context) error {
	w.mu.Lock()
	started := w.begun
	w.mu.Unlock()
	select {
	case w.reading <- struct{}{}:
		defer func() { <-w.reading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	w.mu.Lock()
	answered, failure := w.answered, w.failure
	w.mu.Unlock()
	if answered > started {
		return failure
	}
	return w.readAlone(ctx)
}

// readAlone reads the fence. The caller has put an element into reading.
func (w *Watch) readAlone(ctx context.Context) error {
	// Take the time before the read: the fence may change while the answer is in flight.
	at := w.cfg.Elapsed()
	w.mu.Lock()
	w.begun++
	w.mu.Unlock()
	f, err := w.ask(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil || err == nil { // otherwise the error may concern this caller only
		if err != nil && w.away == nil && !w.known && !errors.Is(err, errNotFounded) {
			w.cfg.Logger.Warn("the fence cannot be read yet: what acts outside waits", "error", err)
		}
		w.away, w.answered, w.failure = err, w.begun, err
	}
	if err == nil {
		if f.Settling && (!w.fence.Settling || w.fence.Epoch != f.Epoch || w.fence.Location != f.Location) {
			w.settling = at
		}
		w.fence, w.holder, w.known, w.read = f, f.Audience(), true, at
	}
	w.tell()
	return err
}

// askStore reads the fence, and before that the journal id and the location until both are known.
func (w *Watch) askStore(ctx context.Context) (Fence, error) {
	journal, location, err := w.identify(ctx)
	if err != nil {
		return Fence{}, err
	}
	f, err := Read(ctx, w.cfg.Keys, journal)
	switch {
	case errors.Is(err, ErrNone):
		return w.create(ctx, journal, location)
	case err == nil && f.Location != location && w.cfg.Former != nil:
		former, err := w.cfg.Former(ctx)
		if err != nil {
			return Fence{}, err
		}
		return renew(ctx, w.cfg.Keys, journal, f, former, location)
	}
	return f, err
}

// create creates the fence if this process has never read one. A fence that disappears does not make its reader the holder:
// an empty folder answers like this where a file system was unmounted.
func (w *Watch) create(ctx context.Context, journal scalar.ID, location string) (Fence, error) {
	w.mu.Lock()
	known := w.known
	w.mu.Unlock()
	if known {
		return Fence{}, errVanished
	}
	if w.cfg.Belongs != nil {
		if err := w.cfg.Belongs(ctx); err != nil {
			return Fence{}, err
		}
	}
	return Create(ctx, w.cfg.Keys, journal, location)
}

// identify returns the journal id and the location of the log. It asks the brokers until both are known.
func (w *Watch) identify(ctx context.Context) (journal scalar.ID, location string, err error) {
	w.mu.Lock()
	journal, location = w.journal, w.location
	w.mu.Unlock()
	if location != "" {
		return journal, location, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, identifyWithin, fmt.Errorf("the brokers do not say within %v where the log is", identifyWithin))
	defer cancel()
	journal, location, founded, err := w.cfg.Identify(ctx)
	if err == nil && !founded {
		err = errNotFounded
	}
	if err != nil {
		return journal, "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.journal, w.location, w.alone = journal, location, VenueAt(journal, location).String()
	return journal, location, nil
}

// tell logs a change of the status and wakes the waiters. The caller holds the lock.
func (w *Watch) tell() {
	v := w.view()
	if v.Status == w.last {
		return
	}
	before := w.last
	w.last = v.Status
	close(w.changed)
	w.changed = make(chan struct{})
	about := []any{"epoch", v.Fence.Epoch, "venue", v.Fence.Venue, "place", v.Location}
	switch v.Status {
	case Fenced:
		w.cfg.Logger.Warn("this venue is FENCED: it is a copy, and destroys no keys, sends no webhooks and does nothing else outside of its log. "+
			"For analysis it can stay so. To have it act in place of the other: "+w.cfg.Command, append(about, "held_for", v.Fence.Location)...)
	case Settling:
		w.cfg.Logger.Info("this venue has taken over; it acts once the one before must have stopped", append(about, "within", w.cfg.Settle)...)
	case Away:
		w.cfg.Logger.Warn("the fence cannot be read: what acts outside waits", append(about, "error", w.away)...)
	case Own:
		level := slog.LevelInfo
		if before == Unknown {
			level = slog.LevelDebug
		}
		w.cfg.Logger.Log(context.Background(), level, "this venue holds its fence", about...)
	}
}

// view computes the current status. The caller holds the lock.
func (w *Watch) view() View {
	v := View{Status: Unknown, Fence: w.fence, Location: w.location}
	if !w.known {
		return v
	}
	v.Venue, v.Epoch, v.audience = w.fence.Venue, w.fence.Epoch, w.holder
	switch {
	case w.fence.Location != w.location: // once fenced, it stays so until the key store says otherwise
		v.Status, v.Venue, v.Epoch, v.audience = Fenced, w.alone, 0, w.alone+"/0"
	case w.cfg.Elapsed()-w.read >= ReadEvery:
		v.Status = Away
	case w.fence.Settling && w.cfg.Elapsed()-w.settling < w.cfg.Settle:
		v.Status = Settling
	default:
		v.Status = Own
	}
	return v
}

// View returns the current status.
func (w *Watch) View() View {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view()
}

// Venue implements seal.Guard.
func (w *Watch) Venue() string { return w.View().Venue }

// Check implements seal.Guard. It reads nothing, except before the first answer of the key store: Run reads the fence, and
// requests that meet a key store that is away must not add to its reads.
func (w *Watch) Check(ctx context.Context) error {
	w.mu.Lock()
	v, away := w.view(), w.away
	w.mu.Unlock()
	if v.Status == Unknown && (away == nil || errors.Is(away, errNotFounded)) {
		return w.Confirm(ctx)
	}
	return w.verdict(v)
}

// Confirm implements seal.Guard. It waits for a read that began after the call.
func (w *Watch) Confirm(ctx context.Context) error {
	if err := w.Read(ctx); err != nil && !w.View().IsFenced() {
		return fmt.Errorf("read the fence: %w: %w", seal.ErrAway, err)
	}
	return w.verdict(w.View())
}

func (w *Watch) verdict(v View) error {
	switch v.Status {
	case Own:
		return nil
	case Fenced:
		return fmt.Errorf("%w: %s", seal.ErrFenced, w.cfg.Command)
	case Settling:
		return fmt.Errorf("%w: this venue has just taken over", seal.ErrAway)
	}
	return fmt.Errorf("%w: the fence cannot be read", seal.ErrAway)
}

// Await waits until a view satisfies a condition. It checks after every change of the status and once a second.
func (w *Watch) Await(ctx context.Context, holds func(View) bool) error {
	for {
		w.mu.Lock()
		v, changed := w.view(), w.changed
		w.mu.Unlock()
		if holds(v) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-time.After(pollEvery): // what time alone changes: a fence that settles
		}
	}
}

// While calls run whenever the venue may act, and cancels its context when the venue may not. It returns when ctx ends, or when
// run returns while its context is active.
func (w *Watch) While(ctx context.Context, run func(context.Context) error) error {
	for {
		if err := w.Await(ctx, View.Acts); err != nil {
			return nil
		}
		if err := w.during(ctx, run); !errors.Is(err, errStopped) {
			return err
		}
	}
}

var errStopped = errors.New("the venue may not act any more")

// during calls run once. It returns errStopped if the venue lost the permission to act.
func (w *Watch) during(ctx context.Context, run func(context.Context) error) error {
	acting, stop := context.WithCancelCause(ctx)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		if w.Await(acting, func(v View) bool { return !v.Acts() }) == nil {
			stop(errStopped)
		}
	}()
	err := run(acting)
	stopped := errors.Is(context.Cause(acting), errStopped)
	stop(nil)
	<-watching
	if stopped && (err == nil || errors.Is(err, context.Canceled)) {
		return errStopped
	}
	return err
}
