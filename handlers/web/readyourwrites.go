package web

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// readYourWrites records the latest position of each journal that this node returned to each user. A read by the same user
// waits for that position, so clients see their own writes without sending X-Min-Log-Position. All tokens and API keys of
// a user count as one.
//
// It belongs to Auth, so that the requests of all handlers are recorded if they carry a token or a key.
type readYourWrites struct {
	// reached returns how far the sources of each journal's answers are. It may ask a database, so it is called without the
	// lock, and it is set before the first request.
	reached func() map[string]int64

	mu       sync.Mutex
	latest   map[userJournal]returned
	changes  uint64 // counts the changes of latest
	clearing bool   // a request is making room
}

// userJournal is the key of a recorded position.
type userJournal struct{ username, journal string }

// returned is what a user was last answered with in one journal: the sequence of a write's answer and the one of a read's,
// -1 for none. They are apart because a read waits longer for the former.
type returned struct {
	written, read int64
	change        uint64 // the latest change of the two
}

// maxRecorded is how many positions are recorded before room is made: those go that all sources have reached, since nobody
// waits for them, and then those that were recorded the longest ago, until a quarter is free.
const maxRecorded = 32768

func newReadYourWrites() *readYourWrites {
	return &readYourWrites{latest: make(map[userJournal]returned), reached: func() map[string]int64 { return nil }}
}

// of returns what is recorded of a user.
func (r *readYourWrites) of(username string) answers { return answers{r, username} }

// record changes what is recorded under a key.
func (r *readYourWrites) record(k userJournal, change func(last *returned) (changed bool)) {
	if r.store(k, change) {
		r.makeRoom()
	}
}

// store is record without making room. It reports whether the caller has to do that.
func (r *readYourWrites) store(k userJournal, change func(last *returned) bool) (full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.latest[k]
	if !known {
		last = returned{written: -1, read: -1}
	}
	if !change(&last) {
		return false
	}
	r.changes++
	last.change = r.changes
	r.latest[k] = last
	if len(r.latest) <= maxRecorded || r.clearing {
		return false
	}
	r.clearing = true
	return true
}

// makeRoom forgets positions, as maxRecorded says.
func (r *readYourWrites) makeRoom() {
	reached := r.reached()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clearing = false
	maps.DeleteFunc(r.latest, func(k userJournal, last returned) bool {
		at, known := reached[k.journal]
		return known && max(last.written, last.read) <= at
	})
	excess := len(r.latest) - maxRecorded*3/4
	if excess <= 0 {
		return
	}
	changes := make([]uint64, 0, len(r.latest))
	for _, last := range r.latest {
		changes = append(changes, last.change)
	}
	slices.Sort(changes)
	maps.DeleteFunc(r.latest, func(_ userJournal, last returned) bool { return last.change < changes[excess] })
}

// A Positioned is a source of answers that knows how far it is. Folds and projections are.
type Positioned interface {
	Position() record.Position
}

// ReadsFrom names the sources from which reads are answered, by journal. Positions that all of them have reached are
// forgotten first. It MUST be called before the first request, and recording MUST NOT happen under the lock of a source.
func (a *Auth) ReadsFrom(sources map[string][]Positioned) {
	a.answered.reached = func() map[string]int64 {
		reached := make(map[string]int64, len(sources))
		for name, all := range sources {
			for i, s := range all {
				if at := s.Position().Sequence; i == 0 || at < reached[name] {
					reached[name] = at
				}
			}
		}
		return reached
	}
}

// answers are the positions that one user was answered with. The zero answers record nothing.
type answers struct {
	memory   *readYourWrites
	username string
}

// wrote records the position that a write is answered with. It is called for every write, so it only stores a number.
func (u answers) wrote(p record.LogPosition) {
	u.record(p, func(last *returned) *int64 { return &last.written })
}

// looked records the position that a read is answered with.
func (u answers) looked(p record.LogPosition) {
	u.record(p, func(last *returned) *int64 { return &last.read })
}

func (u answers) record(p record.LogPosition, of func(*returned) *int64) {
	if u.memory == nil || p.Partition != 0 {
		return
	}
	u.memory.record(userJournal{u.username, p.Journal}, func(last *returned) bool {
		sequence := of(last)
		if *sequence >= p.Sequence {
			return false
		}
		*sequence = p.Sequence
		return true
	})
}

// wroteElsewhere is wrote for an answer that came from another node.
func (u answers) wroteElsewhere(h http.Header) {
	for _, text := range h[HeaderLogPosition] {
		if p, err := record.ParseLogPosition(text); err == nil {
			u.wrote(p)
		}
	}
}

// last returns the sequences of a journal that the user's writes and reads were last answered with, -1 for none.
func (u answers) last(journal string) (written, read int64) {
	if u.memory == nil {
		return -1, -1
	}
	u.memory.mu.Lock()
	defer u.memory.mu.Unlock()
	if last, known := u.memory.latest[userJournal{u.username, journal}]; known {
		return last.written, last.read
	}
	return -1, -1
}

// AwaitAnswered waits until source has reached the positions of a journal that this node last returned to the user: up to two
// seconds for the user's writes, and half a second for what the user has only read, as reads over HTTP do. It returns when
// that time is over as well.
func (a *Auth) AwaitAnswered(ctx context.Context, username, journal string, source Waiter) {
	written, read := a.answered.of(username).last(journal)
	for _, w := range []struct {
		sequence int64
		limit    time.Duration
	}{{written, waitLimit}, {read, lookLimit}} {
		if w.sequence < 0 {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, w.limit)
		_ = source.Wait(limited, w.sequence) // an error of the source is reported by the read that follows
		cancel()
	}
}

// lookLimit is how long a read waits for what its user has only read. It is shorter than waitLimit: rows that are far
// behind would else hold up every read of who looks at a fold now and then, and has written nothing.
const lookLimit = 500 * time.Millisecond

// wanted is what a read of a journal waits for: the sequence that the client names, and those that this node last answered
// its user's writes and reads with; -1 for none.
type wanted struct{ named, written, read int64 }

func wantedBy(c echo.Context, name string, named int64) wanted {
	written, read := AskOf(c).answered.last(name)
	return wanted{named, written, read}
}

// patience is how long a read waits: waitLimit for writes and for what the client names, lookLimit for reads.
type patience struct{ long, short context.Context }

func newPatience(c echo.Context) (p patience, cancel func()) {
	long, cancelLong := context.WithTimeout(c.Request().Context(), waitLimit)
	short, cancelShort := context.WithTimeout(long, lookLimit)
	return patience{long, short}, func() { cancelShort(); cancelLong() }
}

// waitNamed waits for the position that the client names.
func (w wanted) waitNamed(c echo.Context, p patience, source Waiter) error {
	if w.named < 0 {
		return nil
	}
	return await(p.long, c, source, w.named)
}

// waitAnswered waits for what the user was answered with. That it is not reached in time is no error.
func (w wanted) waitAnswered(c echo.Context, p patience, source Waiter) error {
	if w.written > w.named {
		if err := attempt(p.long, c, source, w.written); err != nil {
			return err
		}
	}
	if w.read > max(w.named, w.written) {
		return attempt(p.short, c, source, w.read)
	}
	return nil
}

// attempt is await without an error where the time to wait is over.
func attempt(wait context.Context, c echo.Context, source Waiter, sequence int64) error {
	err := await(wait, c, source, sequence)
	if err != nil && wait.Err() != nil && c.Request().Context().Err() == nil {
		return nil
	}
	return err
}

// satisfied reports whether an answer as of a sequence will do: it holds all that can still be waited for.
func (w wanted) satisfied(p patience, asOf int64) bool {
	return asOf >= w.named &&
		(asOf >= w.written || p.long.Err() != nil) &&
		(asOf >= w.read || p.short.Err() != nil)
}

// Await makes a read of a journal wait until the source has reached the position in X-Min-Log-Position and the ones that
// this node last answered the user with: up to two seconds, and half a second for what the user has only read. A named
// position that is not reached in time is answered 412. If only another one is not reached, the read returns what there
// is, and names the position that it is as of.
func Await(c echo.Context, name string, source Waiter) error {
	named, err := leastSequence(c, name)
	if err != nil {
		return err
	}
	return awaitAll(c, wantedBy(c, name, named), source)
}

// awaitOf is Await for one of several journals that a request reads. X-Min-Log-Position names another one.
func awaitOf(c echo.Context, name string, source Waiter) error {
	return awaitAll(c, wantedBy(c, name, -1), source)
}

func awaitAll(c echo.Context, w wanted, source Waiter) error {
	if w == (wanted{-1, -1, -1}) {
		return nil
	}
	p, cancel := newPatience(c)
	defer cancel()
	if err := w.waitNamed(c, p, source); err != nil {
		return err
	}
	_ = w.waitAnswered(c, p, source) // a source that failed is found out by who reads it
	return nil
}
