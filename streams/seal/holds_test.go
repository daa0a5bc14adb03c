package seal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"
)

// aVenue is a guard whose answer a test sets.
type aVenue struct {
	id  string
	err atomic.Pointer[error]
}

func (v *aVenue) Check(context.Context) error {
	if err := v.err.Load(); err != nil {
		return *err
	}
	return nil
}
func (v *aVenue) Confirm(ctx context.Context) error { return v.Check(ctx) }
func (v *aVenue) Venue() string                     { return v.id }

// shaken is a store whose calls take random times and may die: a call that dies has happened or not, and everything after it
// fails, as it does for a process that is killed. A process may also pause before or after a call.
type shaken struct {
	store
	mu     sync.Mutex
	random *rand.Rand
	dies   int // the number of the call that dies; 0: none
	pauses int // the number of the call at which the process pauses; 0: none
	resume <-chan struct{}
	calls  int
}

var errKilled = errors.New("killed")

// call makes a call unless the process is dead by then, or dies before it or after it.
func (s *shaken) call(ctx context.Context, do func() error) error {
	s.mu.Lock()
	s.calls++
	before, after, late := time.Duration(s.random.IntN(4)), time.Duration(s.random.IntN(4)), s.random.IntN(2) == 0
	dead, dying, pausing := s.dies > 0 && s.calls > s.dies, s.dies > 0 && s.calls == s.dies, s.calls == s.pauses
	s.mu.Unlock()
	if dead || dying && !late {
		return errKilled
	}
	time.Sleep(before * time.Millisecond)
	if pausing && !late {
		<-s.resume
	}
	err := do()
	if pausing && late {
		<-s.resume
	}
	time.Sleep(after * time.Millisecond)
	if dying {
		return errKilled
	}
	return err
}

func (s *shaken) read(ctx context.Context, name string) (content []byte, err error) {
	err = s.call(ctx, func() error { content, err = s.store.read(ctx, name); return err })
	return content, err
}

func (s *shaken) create(ctx context.Context, name string, content []byte) error {
	return s.call(ctx, func() error { return s.store.create(ctx, name, content) })
}

func (s *shaken) overwrite(ctx context.Context, name string, content []byte) error {
	return s.call(ctx, func() error { return s.store.overwrite(ctx, name, content) })
}

func (s *shaken) remove(ctx context.Context, name string) error {
	return s.call(ctx, func() error { return s.store.remove(ctx, name) })
}

func (s *shaken) list(ctx context.Context, folder string) (names []string, err error) {
	err = s.call(ctx, func() error { names, err = s.store.list(ctx, folder); return err })
	return names, err
}

// traces returns the names of what destructions of a key have left in the key store.
func traces(t *testing.T, s store, owner string) (names []string) {
	t.Helper()
	for _, folder := range []string{attemptFolder(owner), decisionFolder(owner)} {
		left, err := s.list(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, left...)
	}
	return names
}

// node returns a node of a venue on a store, whose calls are shaken by a seed and which dies at a call.
func node(t testing.TB, s store, venue string, seed uint64, dies int) *Owners {
	t.Helper()
	o := newOwners(&shaken{store: s, random: rand.New(rand.NewPCG(seed, uint64(len(venue)))), dies: dies}, testMaster(t, 7))
	o.SetGuard(&aVenue{id: venue})
	return o
}

func TestAHeldKeyIsNotDestroyed(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		live, copied := node(t, s, "live", 1, 0), node(t, s, "copy", 2, 0)
		ann := anna.String()
		if err := live.Create(t.Context(), ann); err != nil {
			t.Fatal(err)
		}
		for _, fresh := range []bool{true, false} { // it can be repeated
			if got, err := live.Hold(t.Context(), ann); got != fresh || err != nil {
				t.Fatalf("hold: %v, %v", got, err)
			}
		}
		var held *HeldError
		for range 2 {
			if err := copied.Destroy(t.Context(), ann); !errors.As(err, &held) || !errors.Is(err, ErrHeld) || fmt.Sprint(held.Venues) != "[live]" {
				t.Fatalf("destroying a key that is held: %v", err)
			}
			if left := traces(t, s, ann); len(left) > 0 {
				t.Errorf("the destruction is not withdrawn: %q", left)
			}
		}
		if was, err := copied.Release(t.Context(), ann); was || err != nil {
			t.Errorf("the copy releases the hold of another: %v, %v", was, err)
		}
		if err := copied.Destroy(t.Context(), ann); !errors.Is(err, ErrHeld) {
			t.Errorf("destroying a key that is still held: %v", err)
		}
		if was, err := live.Release(t.Context(), ann); !was || err != nil {
			t.Errorf("release: %v, %v", was, err)
		}
		if err := copied.Destroy(t.Context(), ann); err != nil {
			t.Errorf("destroying a key that nobody holds: %v", err)
		}
		if _, err := live.Hold(t.Context(), ann); !errors.Is(err, ErrDestroyed) {
			t.Errorf("holding a key that is gone: %v", err)
		}
		if left, err := live.Held(t.Context(), ann); len(left) > 0 || err != nil {
			t.Errorf("there are holds of a key that is gone: %q, %v", left, err)
		}
	})
}

func TestAFencedVenueChangesNoKeys(t *testing.T) {
	o := onFolder(t, t.TempDir())
	ann := anna.String()
	if err := o.Create(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	c := sealed(t, o, "secret", AssociatedData{Owner: ann, Field: "x", Type: "y"})
	for _, why := range []error{ErrFenced, ErrAway} {
		v := &aVenue{id: "copy"}
		v.err.Store(&why)
		o.SetGuard(v)
		_, held := o.Hold(t.Context(), ann)
		_, released := o.Release(t.Context(), ann)
		for what, err := range map[string]error{"create": o.Create(t.Context(), acme.String()), "discard": o.Discard(t.Context(), ann),
			"destroy": o.Destroy(t.Context(), ann), "hold": held, "release": released} {
			if !errors.Is(err, why) {
				t.Errorf("%s: %v, not %v", what, err, why)
			}
		}
		if plain, err := o.Open(t.Context(), c, AssociatedData{Owner: ann, Field: "x", Type: "y"}); string(plain) != "secret" || err != nil {
			t.Errorf("what was sealed opens as %q, %v", plain, err)
		}
	}
}

// TestAVenueThatIsFencedMidwayWithdraws: the fence is read again right before the tombstone.
func TestAVenueThatIsFencedMidwayWithdraws(t *testing.T) {
	o := onFolder(t, t.TempDir())
	ann := anna.String()
	if err := o.Create(t.Context(), ann); err != nil {
		t.Fatal(err)
	}
	v := &later{aVenue: aVenue{id: "old"}, good: 1}
	o.SetGuard(v)
	if err := o.Destroy(t.Context(), ann); !errors.Is(err, ErrFenced) || v.asked != 2 {
		t.Errorf("%v after %d looks at the fence", err, v.asked)
	}
	if left := traces(t, o.store, ann); len(left) > 0 {
		t.Errorf("its attempt is left: %q", left)
	}
	if f, err := o.file(t.Context(), ann); err != nil || !f.Destroyed.IsZero() {
		t.Errorf("the key is destroyed, %v", err)
	}
}

// later is fenced after a number of looks.
type later struct {
	aVenue
	good, asked int
}

func (l *later) Confirm(context.Context) error {
	if l.asked++; l.asked > l.good {
		return ErrFenced
	}
	return nil
}

// TestAnAnsweredHoldStands races holds with destructions by other venues and nodes, any of which may be killed at any call, or
// pause there for an hour.
// Whatever comes first: once a hold is answered, the key is never destroyed; and in the end somebody has come to an end.
func TestAnAnsweredHoldStands(t *testing.T) {
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			s := &bucketStore{memblob.OpenBucket(nil)}
			defer s.close()
			ann := anna.String()
			if err := newOwners(s, testMaster(t, 7)).Create(t.Context(), ann); err != nil {
				t.Fatal(err)
			}
			gone := func() bool {
				f, err := newOwners(s, testMaster(t, 7)).file(t.Context(), ann)
				if err != nil {
					t.Fatal(err)
				}
				return !f.Destroyed.IsZero()
			}
			var answered atomic.Bool
			var all sync.WaitGroup
			for n := range 3 { // nodes that destroy; the first two are of one venue
				dies, pauses := 0, 0
				switch random.IntN(3) {
				case 0:
					dies = 1 + random.IntN(11)
				case 1:
					pauses = 1 + random.IntN(11)
				}
				o := node(t, s, []string{"a", "a", "b"}[n], seed*7+uint64(n), dies)
				hour := make(chan struct{})
				time.AfterFunc(time.Hour, func() { close(hour) })
				o.store.(*shaken).pauses, o.store.(*shaken).resume = pauses, hour
				start := time.Duration(random.IntN(20)) * time.Millisecond
				all.Go(func() {
					time.Sleep(start)
					for range 100 {
						before := answered.Load()
						err := o.Destroy(t.Context(), ann)
						if err == nil && before {
							t.Errorf("seed %d: the key was destroyed although its hold had been answered", seed)
						}
						if err == nil || errors.Is(err, errKilled) {
							return
						}
						time.Sleep(3 * time.Second)
					}
				})
			}
			holder, start := node(t, s, "c", seed, 0), time.Duration(random.IntN(30))*time.Millisecond
			all.Go(func() {
				time.Sleep(start)
				_, err := holder.Hold(t.Context(), ann)
				switch {
				case err == nil:
					if gone() {
						t.Errorf("seed %d: a hold of a key that is gone was answered", seed)
					}
					answered.Store(true)
				case !errors.Is(err, ErrDestroyed):
					t.Errorf("seed %d: hold: %v", seed, err)
				case !gone():
					t.Errorf("seed %d: a hold of a key that exists was refused: %v", seed, err)
				}
			})
			all.Wait()
			if answered.Load() && gone() {
				t.Errorf("seed %d: the hold was answered, and the key is gone", seed)
			}
			if !answered.Load() && !gone() {
				t.Errorf("seed %d: neither held nor destroyed", seed)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// TestADestructionPausesForEver pauses a destruction before and after each of its calls, and holds the key meanwhile. The hold is
// answered without waiting, and stays true when the destruction continues.
func TestADestructionPausesForEver(t *testing.T) {
	for pauses := 1; ; pauses++ {
		reached := false
		for seed := range uint64(4) { // of which some pause before the call, and some after it
			synctest.Test(t, func(t *testing.T) {
				s := &bucketStore{memblob.OpenBucket(nil)}
				defer s.close()
				ann := anna.String()
				if err := newOwners(s, testMaster(t, 7)).Create(t.Context(), ann); err != nil {
					t.Fatal(err)
				}
				resume, ended := make(chan struct{}), make(chan error, 1)
				paused := node(t, s, "a", seed, 0)
				paused.store.(*shaken).pauses, paused.store.(*shaken).resume = pauses, resume
				go func() { ended <- paused.Destroy(t.Context(), ann) }()
				time.Sleep(time.Minute) // it has done all that it will
				_, held := node(t, s, "b", seed, 0).Hold(t.Context(), ann)
				if held != nil && !errors.Is(held, ErrDestroyed) {
					t.Errorf("paused at call %d: hold: %v", pauses, held)
				}
				reached = reached || len(ended) == 0
				close(resume)
				destroyed := <-ended
				f, err := paused.file(t.Context(), ann)
				if err != nil {
					t.Fatal(err)
				}
				if gone := !f.Destroyed.IsZero(); gone == (held == nil) || gone == errors.Is(destroyed, ErrHeld) {
					t.Errorf("paused at call %d: hold: %v, destruction: %v, and the key is gone: %v", pauses, held, destroyed, gone)
				}
				if left := traces(t, s, ann); len(left) > 0 {
					t.Errorf("paused at call %d: %q are left", pauses, left)
				}
			})
		}
		if t.Failed() {
			return
		}
		if !reached {
			if pauses < 9 {
				t.Errorf("a destruction makes %d calls", pauses-1)
			}
			return
		}
	}
}

// TestADestructionThatDiedIsFinished: an attempt whose process was killed at any call holds nobody up. If it was decided, the
// next destruction completes it, even for a venue whose hold came later.
func TestADestructionThatDiedIsFinished(t *testing.T) {
	for dies := 1; dies <= 11; dies++ {
		for seed := range uint64(4) {
			synctest.Test(t, func(t *testing.T) {
				s := &bucketStore{memblob.OpenBucket(nil)}
				defer s.close()
				ann := anna.String()
				if err := newOwners(s, testMaster(t, 7)).Create(t.Context(), ann); err != nil {
					t.Fatal(err)
				}
				if err := node(t, s, "a", seed, dies).Destroy(t.Context(), ann); err == nil && dies < 9 {
					t.Errorf("killed at call %d, it was done", dies)
				}
				if err := node(t, s, "b", seed+1, 0).Destroy(t.Context(), ann); err != nil {
					t.Errorf("killed at call %d: %v", dies, err)
				}
				if left := traces(t, s, ann); len(left) > 0 {
					t.Errorf("killed at call %d: %q are left", dies, left)
				}
			})
		}
	}
}

// TestADecidedDestructionIsCompleted: whoever comes next writes the tombstone, with the time of the decision.
func TestADecidedDestructionIsCompleted(t *testing.T) {
	ann := anna.String()
	for next, complete := range map[string]func(context.Context, *Owners) error{
		"hold":    func(ctx context.Context, o *Owners) error { _, err := o.Hold(ctx, ann); return err },
		"destroy": func(ctx context.Context, o *Owners) error { return o.Destroy(ctx, ann) },
	} {
		o := created(t, t.TempDir())
		store := o.store
		o.store = &unanswered{store: store}
		if err := o.Destroy(t.Context(), ann); !errors.Is(err, ErrAway) {
			t.Fatal(err)
		}
		ids, err := store.list(t.Context(), decisionFolder(ann))
		if err != nil || len(ids) != 1 {
			t.Fatalf("the decisions are %q, %v", ids, err)
		}
		decided, err := o.decisionOn(t.Context(), ann, ids[0])
		if err != nil {
			t.Fatal(err)
		}
		other := newOwners(store, testMaster(t, 7))
		other.SetGuard(&aVenue{id: "other"})
		if err := complete(t.Context(), other); (next == "hold") != errors.Is(err, ErrDestroyed) || next == "destroy" && err != nil {
			t.Errorf("%s: %v", next, err)
		}
		if f, err := other.file(t.Context(), ann); err != nil || !f.Destroyed.Equal(decided.At) {
			t.Errorf("%s: the tombstone is of %v instead of %v, %v", next, f.Destroyed, decided.At, err)
		}
		if held, err := other.Held(t.Context(), ann); len(held) > 0 || err != nil {
			t.Errorf("%s: the holds are %q, %v", next, held, err)
		}
	}
}

// TestAnUncertainTombstoneIsNotWithdrawn: the outcome of a write that nobody answered is unknown, so a hold must not be
// answered on the strength of a withdrawal after it.
func TestAnUncertainTombstoneIsNotWithdrawn(t *testing.T) {
	folder := t.TempDir()
	o := created(t, folder)
	ann := anna.String()
	o.store = &unanswered{store: o.store}
	if err := o.Destroy(t.Context(), ann); !errors.Is(err, ErrAway) {
		t.Fatal(err)
	}
	if err := onFolder(t, folder).store.create(t.Context(), filepath.ToSlash(heldFolder(ann)+"/other"), []byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	if err := o.Destroy(t.Context(), ann); err != nil {
		t.Errorf("the write that was not answered is not repeated: %v", err)
	}
}

// unanswered is a store whose first overwrite is not answered.
type unanswered struct {
	store
	asked bool
}

func (u *unanswered) overwrite(ctx context.Context, name string, content []byte) error {
	if !u.asked {
		u.asked = true
		return ErrAway
	}
	return u.store.overwrite(ctx, name, content)
}
