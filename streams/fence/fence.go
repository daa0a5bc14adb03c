// Package fence decides which copy of a venue may act on the world.
//
// A log can be copied, and a copy of a venue has the keys, users and webhooks of the original. Only one of the two may destroy
// keys, send webhooks and so on. The fence names that one: it is an object in the key store, fence/<journal id>, that contains
// the location of the acting venue's log. The first venue that starts creates it. Only TakeOver and Move change it.
//
// Every venue compares the fence with the location of its log. If they differ, the venue is fenced. If the key store does not
// answer, the venue waits: it is neither fenced nor free.
//
// Timing. A venue starts an action only if it has read the fence within ReadEvery, and it reads the fence again before it
// destroys a key. After another venue has written the fence, the previous holder therefore starts nothing after ReadEvery, and
// its last delivery ends LongestDelivery later. A take-over waits for both. The age of a read
// includes the time during which the machine was suspended. The protocol never compares two clocks.
package fence

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// ReadEvery is the maximum age of the last read of the fence when a venue starts an action.
const ReadEvery = 3 * time.Second

// LongestDelivery is the maximum duration of an action: an attempt to deliver a webhook.
const LongestDelivery = 15 * time.Second

// Settle is the time between a take-over and the first action. Within it, the previous holder has read the fence and finished
// its last delivery.
const Settle = ReadEvery + LongestDelivery

// Journal is the name of the journal that the fence is named after. Its records cause the actions outside the log: changes of
// keys, webhooks, files.
const Journal = "onboarding"

// Locate returns the id that names a venue's fence, and the location of the venue's log. founded is false if the log is empty.
func Locate(ctx context.Context, client *journal.Client) (id scalar.ID, location string, founded bool, err error) {
	id, founded, err = client.JournalID(ctx, Journal)
	if err != nil || !founded {
		return id, "", false, err
	}
	at, err := client.LogLocation(ctx, Journal)
	return id, at.String(), err == nil, err
}

// FormerLocation returns the location that older builds recorded for the venue's log; "" if they recorded none.
func FormerLocation(ctx context.Context, client *journal.Client) (string, error) {
	at, err := client.FormerLogLocation(ctx, Journal)
	return at.String(), err
}

// Fence is the content of fence/<journal id>.
type Fence struct {
	Version   int    `json:"version"`
	JournalID string `json:"journal_id"` // id of the journal that the fence is named after
	// Epoch begins with 1. Every take-over raises it by one.
	Epoch int64 `json:"epoch"`
	// Venue names the venue in holds and tokens. It stays the same for good.
	Venue string `json:"venue_id"`
	// Location is the location of the acting venue's log: a journal.LogLocation as a string.
	Location string `json:"place"`
	// Settling is true during a take-over, until the previous holder must have stopped.
	Settling bool      `json:"settling,omitempty"`
	Created  time.Time `json:"created_at"`
	Changed  time.Time `json:"changed_at"`
}

// Audience returns the audience of the tokens of the venue that holds the fence.
func (f Fence) Audience() string { return fmt.Sprintf("%s/%d", f.Venue, f.Epoch) }

// ErrDamaged reports a fence that cannot be decoded. TakeOver replaces it.
var ErrDamaged = errors.New("the fence in the key store is damaged; a take-over replaces it")

// ErrNone reports a key store without a fence for the venue.
var ErrNone = errors.New("the key store has no fence of this venue")

func name(of scalar.ID) string { return "fence/" + of.String() }

func (f Fence) encode() ([]byte, error) {
	line, err := json.Marshal(f)
	return append(line, '\n'), err
}

func decode(content []byte, of scalar.ID) (Fence, error) {
	var f Fence
	err := json.Unmarshal(content, &f)
	switch {
	case err == nil && f.Version > 1:
		return Fence{}, fmt.Errorf("%s has version %d, which this build does not know", name(of), f.Version)
	case err != nil || f.Version != 1 || f.JournalID != of.String() || f.Epoch < 1 || f.Venue == "" || f.Location == "":
		return Fence{}, fmt.Errorf("%s: %w", name(of), ErrDamaged)
	}
	return f, nil
}

// Read returns the fence of a journal; ErrNone if there is none.
func Read(ctx context.Context, keys *seal.KeyStore, of scalar.ID) (Fence, error) {
	content, err := keys.Read(ctx, name(of))
	if errors.Is(err, fs.ErrNotExist) {
		return Fence{}, fmt.Errorf("%w: %w", ErrNone, err)
	}
	if err != nil {
		return Fence{}, err
	}
	return decode(content, of)
}

func newFence(of scalar.ID, location string) Fence {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return Fence{Version: 1, JournalID: of.String(), Epoch: 1, Venue: VenueAt(of, location).String(), Location: location, Created: now, Changed: now}
}

// Create creates the fence for the venue at a location, if it does not exist, and returns the fence in the key store.
func Create(ctx context.Context, keys *seal.KeyStore, of scalar.ID, location string) (Fence, error) {
	content, err := newFence(of, location).encode()
	if err != nil {
		return Fence{}, err
	}
	if err := keys.Create(ctx, name(of), content); err != nil && !errors.Is(err, fs.ErrExist) {
		return Fence{}, err
	}
	// Read it back even after a success: some stores ignore the condition of the write.
	return Read(ctx, keys, of)
}

// write writes a fence with store, which creates or replaces an object.
func write(ctx context.Context, store func(ctx context.Context, name string, content []byte) error, of scalar.ID, f Fence) error {
	f.Changed = time.Now().UTC().Truncate(time.Microsecond)
	content, err := f.encode()
	if err != nil {
		return err
	}
	return store(ctx, name(of), content)
}

// Renew rewrites a fence that an older build wrote for the log at a location: it recorded the former location. Any other fence is
// unchanged.
func Renew(ctx context.Context, keys *seal.KeyStore, of scalar.ID, former, location string) error {
	f, err := Read(ctx, keys, of)
	if err == nil {
		_, err = renew(ctx, keys, of, f, former, location)
	}
	return err
}

func renew(ctx context.Context, keys *seal.KeyStore, of scalar.ID, f Fence, former, location string) (Fence, error) {
	if former == "" || f.Location != former {
		return f, nil
	}
	f.Location = location
	return f, write(ctx, keys.Replace, of, f)
}

// ErrOther reports that the fence changed during a take-over.
var ErrOther = errors.New("another process has changed the fence during the take-over")

// TakeOver gives the fence to the venue at a location and returns when that venue may act, after wait. It calls begun, if it is
// not nil, when it has written the fence. An interrupted take-over can be repeated. Of two concurrent take-overs, one fails
// with ErrOther. If the key store has no fence, it is not the store of the venue, and the error is ErrNone.
//
// A damaged fence is replaced; begun gets its error. The epoch then is the current Unix time, which is above every counted
// epoch. The venue id is the one that a venue at the location creates its fence with, so holds of another id stay.
func TakeOver(ctx context.Context, keys *seal.KeyStore, of scalar.ID, location string, wait time.Duration, begun func(f Fence, damage error)) (Fence, error) {
	return takeOver(ctx, keys, of, location, wait, begun, ErrDamaged)
}

// TakeOverLost is TakeOver for a key store that lost the fence. It creates one like that which replaces a damaged fence. The
// caller MUST know that the key store is the venue's: an unmounted one has no fence either.
func TakeOverLost(ctx context.Context, keys *seal.KeyStore, of scalar.ID, location string, wait time.Duration, begun func(f Fence, damage error)) (Fence, error) {
	return takeOver(ctx, keys, of, location, wait, begun, ErrDamaged, ErrNone)
}

// takeOver is TakeOver. It replaces a fence that cannot be read because of one of the errors in replaced.
func takeOver(ctx context.Context, keys *seal.KeyStore, of scalar.ID, location string, wait time.Duration,
	begun func(f Fence, damage error), replaced ...error) (Fence, error) {
	f, damage := Read(ctx, keys, of)
	if slices.ContainsFunc(replaced, func(e error) bool { return errors.Is(damage, e) }) {
		f = newFence(of, location)
		f.Epoch = f.Created.Unix()
	} else if damage != nil {
		return Fence{}, damage
	}
	if damage == nil && f.Location == location && !f.Settling {
		return f, nil
	}
	if damage != nil || f.Location != location {
		f.Epoch, f.Location, f.Settling = f.Epoch+1, location, true
		store := keys.Replace
		if errors.Is(damage, ErrNone) {
			store = keys.Create
		}
		if err := write(ctx, store, of, f); err != nil {
			return Fence{}, err
		}
	}
	if begun != nil {
		begun(f, damage)
	}
	select {
	case <-ctx.Done():
		return Fence{}, ctx.Err()
	case <-time.After(wait):
	}
	now, err := Read(ctx, keys, of)
	if err != nil {
		return Fence{}, err
	}
	if now.Location != location || now.Epoch != f.Epoch {
		return Fence{}, fmt.Errorf("%w: epoch %d, its log at %s", ErrOther, now.Epoch, now.Location)
	}
	now.Settling = false
	return now, write(ctx, keys.Replace, of, now)
}

// NotHolderError reports that a venue cannot be moved because it does not hold the fence.
type NotHolderError struct {
	Fence Fence
	From  string
}

// Error names both locations.
func (e *NotHolderError) Error() string {
	return fmt.Sprintf("the venue at %s does not hold its fence: that is held for the log at %s (epoch %d). Move that one, or take over at the new place", e.From, e.Fence.Location, e.Fence.Epoch)
}

// CheckMove returns nil if Move could move the fence of a journal from a location: *NotHolderError if another holds it.
func CheckMove(ctx context.Context, keys *seal.KeyStore, of scalar.ID, from, to string) error {
	f, err := Read(ctx, keys, of)
	switch {
	case errors.Is(err, ErrNone):
		return nil // the venue last ran with a build that had no fences
	case err != nil:
		return err
	case f.Location != from && f.Location != to:
		return &NotHolderError{f, from}
	}
	return nil
}

// Move changes the location in the fence, in one write, after the venue's log was moved. No node of the venue may run at the old
// location. It can be repeated.
func Move(ctx context.Context, keys *seal.KeyStore, of scalar.ID, from, to string) (Fence, error) {
	f, err := Read(ctx, keys, of)
	switch {
	case errors.Is(err, ErrNone):
		if f, err = Create(ctx, keys, of, to); err == nil && f.Location != to {
			err = &NotHolderError{f, from}
		}
		return f, err
	case err != nil:
		return Fence{}, err
	case f.Location == to:
		return f, nil
	case f.Location != from:
		return Fence{}, &NotHolderError{f, from}
	}
	f.Location = to
	return f, write(ctx, keys.Replace, of, f)
}

// VenueAt derives a venue id from a location, so that nodes that start together compute the same id. It identifies the venue that
// creates the fence, and every fenced venue. The holder of the fence uses the id in the fence.
func VenueAt(of scalar.ID, location string) (id scalar.ID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "perpetua venue %s %s", of, location))
	copy(id[:], sum[:])
	id[6] = id[6]&0x0f | 0x80 // version 8
	id[8] = id[8]&0x3f | 0x80
	return id
}
