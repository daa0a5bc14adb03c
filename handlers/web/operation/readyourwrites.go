package operation

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// ReadYourWrites records, for each user and journal, the latest position that this node has returned. A read by the
// same user waits for that position, so clients see their own writes without sending X-Min-Log-Position. All tokens
// and API keys of a user share the positions.
//
// One instance serves the authenticated requests of all handlers.
type ReadYourWrites struct {
	// reached returns the position of the slowest source of each journal. It may query a database, so it is called
	// without the lock. It is set before the first request.
	reached func() map[string]int64

	mu       sync.Mutex
	latest   map[userJournal]returned
	changes  uint64 // number of changes to latest
	clearing bool   // a request is making room
}

// userJournal is the key of a recorded position.
type userJournal struct{ username, journal string }

// returned holds the highest sequences returned to a user for one journal, by writes and by reads; -1 means none.
// They are separate because a read waits longer for a write than for another read.
type returned struct {
	written, read int64
	change        uint64 // number of the last change to this entry
}

// maxRecorded is the number of entries above which entries are removed. First, all entries are removed that every
// source has reached, because no read would wait for them. Then the least recently changed ones are removed until a
// quarter is free.
const maxRecorded = 32768

// NewReadYourWrites returns a ReadYourWrites without positions.
func NewReadYourWrites() *ReadYourWrites {
	return &ReadYourWrites{latest: make(map[userJournal]returned), reached: func() map[string]int64 { return nil }}
}

// Of returns the recorder for a user's positions.
func (r *ReadYourWrites) Of(username string) Answered { return Answered{r, username} }

// record changes an entry.
func (r *ReadYourWrites) record(k userJournal, change func(last *returned) (changed bool)) {
	if r.store(k, change) {
		r.makeRoom()
	}
}

// store changes an entry and reports whether the caller must make room.
func (r *ReadYourWrites) store(k userJournal, change func(last *returned) bool) (full bool) {
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

// makeRoom removes entries as described at maxRecorded.
func (r *ReadYourWrites) makeRoom() {
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

// A Positioned is a source with a position. Folds and projections implement it.
type Positioned interface {
	Position() record.Position
}

// ReadsFrom sets the sources of reads for each journal. An entry that all sources have reached is removed first.
// ReadsFrom MUST be called before the first request, and positions MUST NOT be recorded under the lock of a source.
func (r *ReadYourWrites) ReadsFrom(sources map[string][]Positioned) {
	r.reached = func() map[string]int64 {
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

// Answered records the positions returned to one user. The zero Answered records nothing.
type Answered struct {
	memory   *ReadYourWrites
	username string
}

// wrote records the position of a response to a write. It is called for every write and therefore stores only a
// number.
func (u Answered) wrote(p record.LogPosition) {
	u.record(p, func(last *returned) *int64 { return &last.written })
}

// looked records the position of a response to a read.
func (u Answered) looked(p record.LogPosition) {
	u.record(p, func(last *returned) *int64 { return &last.read })
}

func (u Answered) record(p record.LogPosition, of func(*returned) *int64) {
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

// last returns the sequences last returned by writes and by reads, or -1 for none.
func (u Answered) last(journal string) (written, read int64) {
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

// Written returns the sequence that this node last returned to the user for a write to a journal, or -1 for none.
func (a Request) Written(journal string) int64 {
	written, _ := a.Answered.last(journal)
	return written
}

// AwaitAnswered waits until source has reached the positions of a journal that this node last returned to the user: up
// to two seconds for a write, and up to half a second for a read, as Await does. It returns nothing: the caller reads
// the source as it then stands.
func (r *ReadYourWrites) AwaitAnswered(ctx context.Context, username, journal string, source Waiter) {
	written, read := r.Of(username).last(journal)
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

// lookLimit is how long a read waits for a position that its user has only read. It is shorter than waitLimit: rows
// that are far behind would otherwise delay every read of a user who reads a fold now and then and has written nothing.
const lookLimit = 500 * time.Millisecond

// wanted holds the sequences that a read waits for: the one that the client requires, and those that this node last
// returned to the user. -1 means none.
type wanted struct{ named, written, read int64 }

func wantedBy(a Request, name string, named int64) wanted {
	written, read := a.Answered.last(name)
	return wanted{named, written, read}
}

// patience limits the time of a read: long for writes and for the client's position (waitLimit), short for reads
// (lookLimit).
type patience struct{ long, short context.Context }

func newPatience(a Request) (p patience, cancel func()) {
	long, cancelLong := context.WithTimeout(a.Context(), waitLimit)
	short, cancelShort := context.WithTimeout(long, lookLimit)
	return patience{long, short}, func() { cancelShort(); cancelLong() }
}

// waitNamed waits for the position that the client requires.
func (w wanted) waitNamed(a Request, p patience, source Waiter) error {
	if w.named < 0 {
		return nil
	}
	return await(p.long, a, source, w.named)
}

// waitAnswered waits for the positions returned to the user. A timeout is not an error.
func (w wanted) waitAnswered(a Request, p patience, source Waiter) error {
	if w.written > w.named {
		if err := attempt(p.long, a, source, w.written); err != nil {
			return err
		}
	}
	if w.read > max(w.named, w.written) {
		return attempt(p.short, a, source, w.read)
	}
	return nil
}

// attempt is await, but a timeout is not an error.
func attempt(wait context.Context, a Request, source Waiter, sequence int64) error {
	err := await(wait, a, source, sequence)
	if err != nil && wait.Err() != nil && a.Context().Err() == nil {
		return nil
	}
	return err
}

// satisfied reports whether a response at sequence asOf is acceptable. It ignores positions for which the time to
// wait is over.
func (w wanted) satisfied(p patience, asOf int64) bool {
	return asOf >= w.named &&
		(asOf >= w.written || p.long.Err() != nil) &&
		(asOf >= w.read || p.short.Err() != nil)
}

// Await waits until the source has reached the position in X-Min-Log-Position and the positions that this node last
// returned to the user. It waits up to two seconds, and half a second for positions that the user has only read. If
// the client's position is not reached in time, it returns a 412. If only another position is not reached, the read
// continues, and its response states the actual position.
func Await(a Request, name string, source Waiter) error {
	named, err := leastSequence(a, name)
	if err != nil {
		return err
	}
	return awaitAll(a, wantedBy(a, name, named), source)
}

// awaitOf is Await for one of several journals of a request. X-Min-Log-Position belongs to another one of them.
func awaitOf(a Request, name string, source Waiter) error {
	return awaitAll(a, wantedBy(a, name, -1), source)
}

func awaitAll(a Request, w wanted, source Waiter) error {
	if w == (wanted{-1, -1, -1}) {
		return nil
	}
	p, cancel := newPatience(a)
	defer cancel()
	if err := w.waitNamed(a, p, source); err != nil {
		return err
	}
	_ = w.waitAnswered(a, p, source) // an error of the source also appears when the caller reads from it
	return nil
}
