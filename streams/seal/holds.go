package seal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// A venue and its copies may share a key store while their logs differ, so no single log can permit the destruction of a key.
// Three kinds of objects decide:
//
//   - held/<owner>/<venue id> says that a venue holds the owner's key;
//   - attempt/<owner>/<attempt id> announces an attempt to destroy it;
//   - decided/<owner>/<attempt id> decides the attempt: it destroys, or it is withdrawn.
//
// Destroy announces an attempt and then looks for holds. If there is none, it creates the decision "destroy", and only if that
// succeeds writes the tombstone. Hold creates its object, then looks for attempts, and creates the decision "withdraw" for each.
// If an attempt is decided otherwise, Hold completes the destruction. Once Hold has returned nil, the key exists until Release.
//
// Each write is durable before the read that follows it, so at least one side finds the other's object. If both do, only one of
// them creates the decision: the store creates an object only if absent. No step depends on time: an attempt may pause anywhere
// for any time, also right before it writes the tombstone.
//
// Invariants:
//   - An attempt id is used by one call of Destroy. Only that call creates its decision "destroy".
//   - A decision is removed only when it no longer matters: after the tombstone is durable, or, if it is "withdraw", by the call
//     that it stopped.
//   - An attempt is removed only after its decision "withdraw" or after the tombstone, or by its call before that has decided.

// ErrFenced reports that another copy of the venue holds the fence, so this one must not change the key store.
var ErrFenced = errors.New("another copy of this venue holds the fence, so this one changes no keys")

// ErrHeld reports that a key was not destroyed because a venue holds it. The error is a *HeldError.
var ErrHeld = errors.New("the owner's key is held")

// HeldError names the venues that hold a key.
type HeldError struct {
	Owner  string
	Venues []string
}

// Error lists the names of the holds in the key store.
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

func heldFolder(owner string) string { return "held/" + owner }

// marker is the content of a hold, an attempt, and a decision.
type marker struct {
	Owner    string    `json:"owner"`
	Venue    string    `json:"venue"`
	Decision decision  `json:"decision,omitempty"` // of a decision
	At       time.Time `json:"at"`
}

// mark creates an object with a marker. It returns fs.ErrExist if the object exists.
func (o *Owners) mark(ctx context.Context, name string, m marker) error {
	m.Venue = o.guard.Venue()
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return o.store.create(ctx, name, append(text, '\n'))
}

// Hold prevents the destruction of an owner's key until Release, and returns when that is certain. fresh is true if this venue
// did not hold the key before. If the key is destroyed, the error is ErrDestroyed and no hold remains. After any other error the
// hold may exist but is not certain, and the caller should retry.
func (o *Owners) Hold(ctx context.Context, owner string) (fresh bool, err error) {
	if _, err := keyFileName(owner); err != nil {
		return false, err
	}
	if err := o.guard.Check(ctx); err != nil {
		return false, err
	}
	name := heldFolder(owner) + "/" + o.guard.Venue()
	err = o.mark(ctx, name, marker{Owner: owner, At: now()})
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return false, away("hold the key of "+owner, err)
	}
	fresh = err == nil
	err = o.withdrawAll(ctx, owner)
	if (errors.Is(err, ErrDestroyed) || errors.Is(err, ErrMissing)) && fresh {
		_, gone := o.Release(ctx, owner)
		return false, errors.Join(err, gone)
	}
	return fresh, err
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
