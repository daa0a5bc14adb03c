package seal

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
)

// A venue and its copies may share a key store while their logs differ, so no single log can permit the destruction of a key.
// Two objects per owner decide:
//
//   - held/<owner>/<venue id> says that a venue holds the owner's key;
//   - destroying/<owner> says that an attempt to destroy it is in progress.
//
// Hold creates its object and then looks for the other. Destroy creates its object and then looks for holds. Each write is
// durable before the read that follows it, so at least one of the two calls finds the other's object. If Destroy finds a hold,
// it withdraws. If Hold finds an attempt, it waits until the attempt is withdrawn or the tombstone is written. Once Hold has
// returned nil, the key therefore exists until Release.
//
// Invariants:
//   - An attempt that finds no hold either writes the tombstone or, until it has begun to, removes its object. It never removes
//     the object after it began: the write may have happened, or may still happen.
//   - destroying/<owner> belongs to one attempt, which its content names. Another process removes it only after it has seen the
//     same attempt for longer than an attempt can live.

// ErrFenced reports that another copy of the venue holds the fence, so this one must not change the key store.
var ErrFenced = errors.New("another copy of this venue holds the fence, so this one changes no keys")

// ErrHeld reports that a key was not destroyed because a venue holds it. The error is a *HeldError.
var ErrHeld = errors.New("the owner's key is held")

// ErrDestroying reports an attempt by another process, which may have died. The caller should retry.
var ErrDestroying = errors.New("the destruction of the owner's key is under way elsewhere")

// HeldError names the venues that hold a key.
type HeldError struct {
	Owner  string
	Venues []string
}

// Error names the holds as the key store has them.
func (e *HeldError) Error() string {
	return fmt.Sprintf("%v: the key store has %s/{%s}", ErrHeld, heldFolder(e.Owner), strings.Join(e.Venues, ","))
}

// Is makes the error an ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Guard says whether a venue may change keys. Implementations MUST be safe for concurrent use.
type Guard interface {
	// Check returns nil if the venue held the fence when that was last read, which MUST be at most three seconds ago. It
	// returns ErrFenced if another held it, and ErrAway if the fence cannot be read.
	Check(ctx context.Context) error
	// Confirm reads the fence and returns what Check would.
	Confirm(ctx context.Context) error
	// Venue returns the venue's id, by which its holds are known.
	Venue() string
}

// unguarded permits everything. It is the default, for tests.
type unguarded struct{}

func (unguarded) Check(context.Context) error   { return nil }
func (unguarded) Confirm(context.Context) error { return nil }
func (unguarded) Venue() string                 { return "venue" }

const (
	// attemptLife is how long after its beginning an attempt may begin to write the tombstone.
	attemptLife = 20 * time.Second
	// attemptDead is how long another process's attempt must remain unchanged before it counts as dead. It exceeds the sum of
	// attemptLife and the duration of a write.
	attemptDead = 60 * time.Second
	// holdPatience is how long a hold waits for a destruction that is under way.
	holdPatience = 10 * time.Second
	// holdPoll is the interval between two reads during that wait.
	holdPoll = 50 * time.Millisecond
)

func heldFolder(owner string) string     { return "held/" + owner }
func destroyingName(owner string) string { return "destroying/" + owner }

// marker is the content of a hold and of an attempt.
type marker struct {
	Owner   string    `json:"owner"`
	Venue   string    `json:"venue"`
	Attempt string    `json:"attempt,omitempty"`
	At      time.Time `json:"at"`
}

func (m marker) encode() ([]byte, error) {
	text, err := json.Marshal(m)
	return append(text, '\n'), err
}

// attempt is a destruction that this process has begun.
type attempt struct {
	id        string
	until     time.Time // when it is too late to begin the tombstone
	committed bool      // the tombstone may be written
}

// attempts holds the unfinished destructions of this process, and the time when it first read each one of another process.
type attempts struct {
	destroying sync.Mutex // held through Destroy

	own map[string]*attempt // by owner; under destroying

	mu   sync.Mutex
	seen map[string]seenAttempt // by owner
}

type seenAttempt struct {
	id    string
	since time.Time
}

func newAttempts() *attempts {
	return &attempts{own: make(map[string]*attempt), seen: make(map[string]seenAttempt)}
}

// dead reports whether another process's attempt has been unchanged for longer than attemptDead. Only the local clock is used:
// the times in the key store come from other clocks.
func (a *attempts) dead(owner, id string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s, known := a.seen[owner]; known && s.id == id {
		return now.Sub(s.since) > attemptDead
	}
	a.seen[owner] = seenAttempt{id, now}
	return false
}

func (a *attempts) forget(owner string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.seen, owner)
}

// Hold prevents the destruction of an owner's key until Release, and returns when that is certain. fresh is true if this venue
// did not hold the key before. If the key is destroyed, the error is ErrDestroyed and no hold remains. If an attempt to destroy
// it does not end in time, the error is ErrDestroying: the hold exists but is not certain, and the caller should retry.
func (o *Owners) Hold(ctx context.Context, owner string) (fresh bool, err error) {
	if _, err := keyFileName(owner); err != nil {
		return false, err
	}
	if err := o.guard.Check(ctx); err != nil {
		return false, err
	}
	name := heldFolder(owner) + "/" + o.guard.Venue()
	content, err := marker{Owner: owner, Venue: o.guard.Venue(), At: now()}.encode()
	if err != nil {
		return false, err
	}
	err = o.store.create(ctx, name, content)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return false, away("hold the key of "+owner, err)
	}
	fresh = err == nil
	err = o.outwait(ctx, owner)
	if (errors.Is(err, ErrDestroyed) || errors.Is(err, ErrMissing)) && fresh {
		_, gone := o.Release(ctx, owner)
		return false, errors.Join(err, gone)
	}
	return fresh, err
}

// outwait waits until no attempt to destroy the owner's key exists. It returns nil if the key still exists then.
func (o *Owners) outwait(ctx context.Context, owner string) error {
	until := time.Now().Add(holdPatience)
	for {
		// In this order: a destruction removes its object only after the tombstone.
		id, err := o.attemptOn(ctx, owner)
		if err != nil {
			return err
		}
		f, err := o.file(ctx, owner)
		switch {
		case err != nil:
			return err
		case !f.Destroyed.IsZero():
			return fmt.Errorf("%s: %w", owner, ErrDestroyed)
		case id == "":
			return nil
		case o.attempts.dead(owner, id, time.Now()):
			if err := o.removeAttempt(ctx, owner, id); err != nil {
				return err
			}
			continue
		case time.Now().After(until):
			return fmt.Errorf("%s: %w", owner, ErrDestroying)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(holdPoll):
		}
	}
}

// MayChange returns nil if this venue may change the key store, and ErrFenced or ErrAway otherwise.
func (o *Owners) MayChange(ctx context.Context) error { return o.guard.Check(ctx) }

// Release ends this venue's hold of an owner's key, and reports whether there was one. Holds of other venues stay.
func (o *Owners) Release(ctx context.Context, owner string) (held bool, err error) {
	if _, err := keyFileName(owner); err != nil {
		return false, err
	}
	if err := o.guard.Confirm(ctx); err != nil {
		return false, err
	}
	err = o.store.remove(ctx, heldFolder(owner)+"/"+o.guard.Venue())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, away("release the key of "+owner, err)
	}
	return true, nil
}

// Held returns the ids of the venues that hold an owner's key.
func (o *Owners) Held(ctx context.Context, owner string) ([]string, error) {
	if _, err := keyFileName(owner); err != nil {
		return nil, err
	}
	venues, err := o.store.list(ctx, heldFolder(owner))
	if err != nil {
		return nil, away("look for holds of "+owner, err)
	}
	slices.Sort(venues)
	return venues, nil
}

// attemptOn returns the id of the attempt to destroy a key, or "".
func (o *Owners) attemptOn(ctx context.Context, owner string) (id string, err error) {
	content, err := o.store.read(ctx, destroyingName(owner))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", away("look who destroys the key of "+owner, err)
	}
	var m marker
	if json.Unmarshal(content, &m) != nil || m.Attempt == "" {
		return "unknown: " + string(content), nil // not ours; it counts as an attempt all the same
	}
	return m.Attempt, nil
}

// removeAttempt removes destroying/<owner> if it is still that of an attempt.
func (o *Owners) removeAttempt(ctx context.Context, owner, id string) error {
	at, err := o.attemptOn(ctx, owner)
	if err != nil || at != id {
		return err
	}
	if err := o.store.remove(ctx, destroyingName(owner)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return away("withdraw the destruction of the key of "+owner, err)
	}
	o.attempts.forget(owner)
	return nil
}

// Destroy replaces an owner's key by a tombstone, and returns once the tombstone is durable. It can be repeated. Other nodes may
// have the key in memory for up to KeyLifetime, so a caller MUST wait that long before it certifies the destruction.
//
// Destroy returns a *HeldError if a venue holds the key, ErrFenced if another copy of this venue holds the fence, and
// ErrDestroying if another process is destroying the key. The key is unchanged then.
func (o *Owners) Destroy(ctx context.Context, owner string) error {
	o.attempts.destroying.Lock()
	defer o.attempts.destroying.Unlock()
	f, err := o.file(ctx, owner)
	if err != nil {
		return err
	}
	if f.Destroyed.IsZero() {
		a, err := o.begin(ctx, owner)
		if err != nil {
			return err
		}
		if err := o.finish(ctx, f, a); err != nil {
			return err
		}
	}
	o.cache.forget(owner)
	// The tombstone is durable, so the attempt is not needed any longer, even if another process began it: Hold reads the
	// tombstone.
	delete(o.attempts.own, owner)
	if err := o.store.remove(ctx, destroyingName(owner)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return away("clear up after the key of "+owner, err)
	}
	return nil
}

// begin creates destroying/<owner>, or returns this process's unfinished attempt.
func (o *Owners) begin(ctx context.Context, owner string) (*attempt, error) {
	if err := o.guard.Confirm(ctx); err != nil {
		return nil, err
	}
	if a := o.attempts.own[owner]; a != nil {
		if at, err := o.attemptOn(ctx, owner); err != nil || at == a.id {
			if !a.committed {
				a.until = time.Now().Add(attemptLife)
			}
			return a, err
		}
		delete(o.attempts.own, owner) // another process considered it dead and removed it
	}
	a := &attempt{id: rand.Text(), until: time.Now().Add(attemptLife)}
	content, err := marker{Owner: owner, Venue: o.guard.Venue(), Attempt: a.id, At: now()}.encode()
	if err != nil {
		return nil, err
	}
	err = o.store.create(ctx, destroyingName(owner), content)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, o.meet(ctx, owner)
	case err != nil:
		// The object may have been created all the same. The next call then continues this attempt.
		o.attempts.own[owner] = a
		return nil, away("begin to destroy the key of "+owner, err)
	}
	o.attempts.own[owner] = a
	return a, nil
}

// meet removes another process's attempt if it is dead, so that the next call can begin. It always returns an error.
func (o *Owners) meet(ctx context.Context, owner string) error {
	id, err := o.attemptOn(ctx, owner)
	if err != nil {
		return err
	}
	if id != "" && o.attempts.dead(owner, id, time.Now()) {
		if err := o.removeAttempt(ctx, owner, id); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", owner, ErrDestroying)
}

// finish writes the tombstone, or withdraws the attempt if it must not.
func (o *Owners) finish(ctx context.Context, f *keyFile, a *attempt) error {
	if !a.committed {
		if err := o.mayDestroy(ctx, f.Owner, a); err != nil {
			if gone := o.removeAttempt(ctx, f.Owner, a.id); gone == nil {
				delete(o.attempts.own, f.Owner)
			}
			return err
		}
		a.committed = true
	}
	tombstone := &keyFile{Version: f.Version, Owner: f.Owner, KeyID: f.KeyID, Created: f.Created, Destroyed: now()}
	content, err := tombstone.encode()
	if err != nil {
		return err
	}
	name, err := keyFileName(f.Owner)
	if err != nil {
		return err
	}
	if err := o.store.overwrite(ctx, name, content); err != nil {
		return away("destroy the key of "+f.Owner, err)
	}
	return nil
}

// mayDestroy returns nil if an attempt may write the tombstone.
func (o *Owners) mayDestroy(ctx context.Context, owner string, a *attempt) error {
	held, err := o.Held(ctx, owner)
	if err != nil {
		return err
	}
	if len(held) > 0 {
		return &HeldError{owner, held}
	}
	if err := o.guard.Confirm(ctx); err != nil {
		return err
	}
	// This check must come last. Two attempts may have begun if the store ignores the condition of a conditional write, and
	// another process may have removed this attempt because it was slow.
	at, err := o.attemptOn(ctx, owner)
	if err != nil {
		return err
	}
	if at != a.id || time.Now().After(a.until) {
		return fmt.Errorf("%s: %w", owner, ErrDestroying)
	}
	return nil
}
