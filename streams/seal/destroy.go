package seal

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// decision is the outcome of an attempt to destroy a key.
type decision string

// The decisions.
const (
	destroys decision = "destroy"
	withdrew decision = "withdraw"
)

func attemptFolder(owner string) string    { return "attempt/" + owner }
func attemptName(owner, id string) string  { return attemptFolder(owner) + "/" + id }
func decisionFolder(owner string) string   { return "decided/" + owner }
func decisionName(owner, id string) string { return decisionFolder(owner) + "/" + id }

// Destroy replaces an owner's key by a tombstone, and returns once the tombstone is durable. It can be repeated. Other nodes may
// have the key in memory for up to KeyLifetime, so a caller MUST wait that long before it certifies the destruction.
//
// Destroy returns a *HeldError if a venue holds the key, and ErrFenced if another copy of this venue holds the fence. The key is
// unchanged then. After any other error the key may be destroyed later, by the next Destroy or Hold of any venue.
func (o *Owners) Destroy(ctx context.Context, owner string) error {
	f, err := o.file(ctx, owner)
	if err != nil {
		return err
	}
	for done := !f.Destroyed.IsZero(); !done; {
		if done, err = o.attempt(ctx, f); err != nil {
			return err
		}
	}
	o.cache.forget(owner)
	return o.clearUp(ctx, owner)
}

// attempt makes one attempt to destroy a key. It returns false if a hold withdrew the attempt.
func (o *Owners) attempt(ctx context.Context, f *keyFile) (done bool, err error) {
	if err := o.guard.Confirm(ctx); err != nil {
		return false, err
	}
	if done, err := o.resume(ctx, f); done || err != nil {
		return done, err
	}
	id := rand.Text()
	if err := o.mark(ctx, attemptName(f.Owner, id), marker{Owner: f.Owner, At: now()}); err != nil {
		return false, away("begin to destroy the key of "+f.Owner, err)
	}
	if err := o.mayDestroy(ctx, f.Owner); err != nil {
		return false, errors.Join(err, o.removeAttempt(ctx, f.Owner, id))
	}
	at, err := o.decide(ctx, f.Owner, id, destroys)
	switch {
	case err != nil: // the decision may exist already, or may still be created
		return false, err
	case at.Decision == withdrew:
		return false, o.removeAttempt(ctx, f.Owner, id)
	}
	return true, o.bury(ctx, f, at.At)
}

// mayDestroy returns nil if no venue holds a key and this venue may destroy it.
func (o *Owners) mayDestroy(ctx context.Context, owner string) error {
	held, err := o.Held(ctx, owner)
	if err != nil {
		return err
	}
	if len(held) > 0 {
		return &HeldError{owner, held}
	}
	return o.guard.Confirm(ctx)
}

// resume completes an attempt that was decided but not carried out, perhaps because its process died. It returns false if
// there is none.
func (o *Owners) resume(ctx context.Context, f *keyFile) (done bool, err error) {
	ids, err := o.store.list(ctx, decisionFolder(f.Owner))
	if err != nil {
		return false, away("look who destroys the key of "+f.Owner, err)
	}
	for _, id := range ids {
		at, err := o.decisionOn(ctx, f.Owner, id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return false, err
		case at.Decision == destroys:
			return true, o.bury(ctx, f, at.At)
		}
	}
	return false, nil
}

// withdrawAll ends every attempt to destroy a key. It returns nil if the key still exists then.
func (o *Owners) withdrawAll(ctx context.Context, owner string) error {
	ids, err := o.store.list(ctx, attemptFolder(owner))
	if err != nil {
		return away("look who destroys the key of "+owner, err)
	}
	decided := make([]marker, len(ids))
	for i, id := range ids {
		if decided[i], err = o.decide(ctx, owner, id, withdrew); err != nil {
			return err
		}
	}
	// The file must be read after the decisions: these are removed after the tombstone.
	f, err := o.file(ctx, owner)
	if err != nil {
		return err
	}
	if !f.Destroyed.IsZero() {
		return fmt.Errorf("%s: %w", owner, ErrDestroyed)
	}
	for i, id := range ids {
		if decided[i].Decision == destroys {
			if err := o.bury(ctx, f, decided[i].At); err != nil {
				return err
			}
			return fmt.Errorf("%s: %w", owner, ErrDestroyed)
		}
		if err := o.remove(ctx, attemptName(owner, id)); err != nil {
			return err
		}
	}
	return nil
}

// decide creates the decision on an attempt, and returns it. If the attempt was decided before, it returns that decision.
func (o *Owners) decide(ctx context.Context, owner, id string, d decision) (marker, error) {
	m := marker{Owner: owner, Decision: d, At: now()}
	for {
		err := o.mark(ctx, decisionName(owner, id), m)
		if err == nil {
			return m, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return marker{}, away("decide on the key of "+owner, err)
		}
		at, err := o.decisionOn(ctx, owner, id)
		if !errors.Is(err, fs.ErrNotExist) { // otherwise it was removed after the create, and creating another one is harmless
			return at, err
		}
	}
}

// decisionOn returns the decision on an attempt; fs.ErrNotExist if there is none.
func (o *Owners) decisionOn(ctx context.Context, owner, id string) (m marker, err error) {
	content, err := o.store.read(ctx, decisionName(owner, id))
	if errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	if err != nil {
		return m, away("read a decision on the key of "+owner, err)
	}
	if err := json.Unmarshal(content, &m); err != nil || m.Decision != destroys && m.Decision != withdrew {
		return m, fmt.Errorf("%s: %w", decisionName(owner, id), ErrDamaged)
	}
	return m, nil
}

// bury writes the tombstone. Its time is that of the decision, so every process that completes an attempt writes the
// same bytes.
func (o *Owners) bury(ctx context.Context, f *keyFile, at time.Time) error {
	tombstone := &keyFile{Version: f.Version, Owner: f.Owner, KeyID: f.KeyID, Created: f.Created, Destroyed: at}
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
	o.cache.forget(f.Owner)
	return nil
}

// removeAttempt removes an attempt of this call and its decision. The attempt must not be decided otherwise than "withdraw".
func (o *Owners) removeAttempt(ctx context.Context, owner, id string) error {
	return errors.Join(o.remove(ctx, attemptName(owner, id)), o.remove(ctx, decisionName(owner, id)))
}

// clearUp removes all attempts to destroy a key and their decisions, once the tombstone is durable.
func (o *Owners) clearUp(ctx context.Context, owner string) error {
	for _, folder := range []string{attemptFolder(owner), decisionFolder(owner)} {
		names, err := o.store.list(ctx, folder)
		if err != nil {
			return away("clear up after the key of "+owner, err)
		}
		for _, name := range names {
			if err := o.remove(ctx, folder+"/"+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove removes an object if it exists.
func (o *Owners) remove(ctx context.Context, name string) error {
	if err := o.store.remove(ctx, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return away("remove "+name, err)
	}
	return nil
}
