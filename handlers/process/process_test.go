package process

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// patience is more than the longest pause, after which everything that can be done is done.
const patience = 3 * lastPause

// settle lets everybody work until all wait for something that will not come.
func settle() {
	time.Sleep(patience)
	synctest.Wait()
}

// events returns the events of a type in a journal's records.
func events[E decide.Event](m *memory) (out []E) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, entry := range m.entries {
		for _, e := range entry.Record.Events {
			if e, ok := e.(E); ok {
				out = append(out, e)
			}
		}
	}
	return out
}

// erase has owners erased at once.
func (v *venue) erase(refs ...owner.Ref) {
	v.t.Helper()
	for _, ref := range refs {
		v.must(operator, &onboarding.EraseOwner{Ref: ref, Reason: onboarding.Sealed("reason")})
	}
}

// erased checks that owners have no key and no file, and that this was confirmed once.
func (v *venue) erased(refs ...owner.Ref) {
	v.t.Helper()
	confirmed := events[*onboarding.KeyDestroyed](v.onboarding)
	for _, ref := range refs {
		id, err := v.keys.KeyID(v.t.Context(), ref.String())
		n := 0
		for _, e := range confirmed {
			if e.Ref == ref && e.KeyID == id {
				n++
			}
		}
		if err != nil || n != 1 {
			v.t.Errorf("the destruction of %v's key %s is confirmed %d times (%v)", ref, id, n, err)
		}
		if _, err := v.keys.Seal(v.t.Context(), nil, seal.OwnerFields(ref)); !errors.Is(err, seal.ErrDestroyed) {
			v.t.Errorf("%v's key: %v", ref, err)
		}
		if v.files[ref.String()+"/file"] {
			v.t.Errorf("%v's file is there", ref)
		}
	}
	if len(confirmed) != len(refs) {
		v.t.Errorf("%d destructions are confirmed, not %d", len(confirmed), len(refs))
	}
}

// opened checks that owners have an account each, in this order, opened by one command that names the record it follows from.
func (v *venue) opened(refs ...owner.Ref) {
	v.t.Helper()
	var got, want []string
	for _, e := range events[*trading.CustomerRegistered](v.trading) {
		got = append(got, e.Broker+" "+e.CustomerCode+e.Name)
	}
	for _, ref := range refs {
		want = append(want, "alpha "+onboarding.CustomerCode(ref.ID))
	}
	if !slices.Equal(got, want) {
		v.t.Errorf("opened are %q, not %q", got, want)
	}
	last := int64(-1)
	for _, c := range v.trading.commands {
		if c.Metadata.Source == nil || c.Metadata.Source.Journal != onboardingJournal || c.Metadata.Source.Sequence <= last || c.Actor != actor {
			v.t.Errorf("%+v follows a command of the record %d", c, last)
			continue
		}
		last = c.Metadata.Source.Sequence
		if moved, ok := v.onboarding.entries[last].Record.Events[len(v.onboarding.entries[last].Record.Events)-1].(*onboarding.NoticeGiven); !ok || moved.Type != "entitlementCompleted" {
			v.t.Errorf("the record %d that it follows from finished nothing", last)
		}
	}
}

// points are where managers can be killed, or what they ask can fail.
func points() []string {
	return []string{"before destroy", "after destroy", "before delete", "after delete", "before owner.confirm_key_destroyed",
		"after owner.confirm_key_destroyed", "before customer.register", "after customer.register"}
}

// TestKilledAnywhere kills the managers at each point, once and three times in a row, and lets others go on.
func TestKilledAnywhere(t *testing.T) {
	for _, point := range points() {
		for _, times := range []int32{1, 3} {
			t.Run(point, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					v := newVenue(t)
					v.must(operator, &onboarding.SetRetention{})
					ann, bob := v.register(1), v.register(2)
					var killed atomic.Int32
					v.fault = func(where string) error {
						if where != point || killed.Load() == times {
							return nil
						}
						killed.Add(1)
						v.kill()
						return context.Canceled
					}
					stop := v.manage()
					v.erase(ann)
					v.finish(bob)
					for range times {
						settle()
						stop()
						stop = v.manage()
					}
					settle()
					stop()
					if killed.Load() == 0 {
						t.Error("it was not killed")
					}
					v.erased(ann)
					v.opened(bob)
				})
			})
		}
	}
}

// TestWhateverFailsIsRepeated has each thing that managers ask for fail three times, with another manager at work beside.
func TestWhateverFailsIsRepeated(t *testing.T) {
	for _, point := range points() {
		t.Run(point, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVenue(t)
				v.must(operator, &onboarding.SetRetention{})
				var mu sync.Mutex
				left := 3
				v.fault = func(where string) error {
					mu.Lock()
					defer mu.Unlock()
					if where != point || left == 0 {
						return nil
					}
					left--
					return &submit.OutcomeUnknownError{}
				}
				one := v.manage()
				defer one()
				other := v.manage()
				defer other()
				ann, bob, cal := v.register(1), v.register(2), v.register(3)
				v.erase(ann)
				v.finish(bob)
				v.finish(cal)
				settle()
				v.erased(ann)
				v.opened(bob, cal)
			})
		})
	}
}

// TestManyManagersDoEachThingOnce runs one on each of four nodes, whose folds they share, and starts one more behind all.
func TestManyManagersDoEachThingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVenue(t)
		v.must(operator, &onboarding.SetRetention{})
		for range 4 {
			stop := v.manage()
			defer stop()
		}
		var gone, there []owner.Ref
		for n := range byte(20) {
			ref := v.register(n + 1)
			if n%2 == 0 {
				v.erase(ref)
				gone = append(gone, ref)
			} else {
				v.finish(ref)
				v.finish(ref) // one account, however many entitlements
				there = append(there, ref)
			}
		}
		settle()
		late := v.manage()
		defer late()
		settle()
		v.erased(gone...)
		v.opened(there...)
	})
}

// TestADestructionIsConfirmedOnceNobodyHoldsTheKey: another node may have read the key just before.
func TestADestructionIsConfirmedOnceNobodyHoldsTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVenue(t)
		v.must(operator, &onboarding.SetRetention{})
		ann := v.register(1)
		var destroyed, confirmed time.Time
		v.fault = func(where string) error {
			switch where {
			case "after destroy":
				destroyed = time.Now()
			case "before owner.confirm_key_destroyed":
				confirmed = time.Now()
			}
			return nil
		}
		stop := v.manage()
		v.erase(ann)
		settle()
		stop()
		v.erased(ann)
		if waited := confirmed.Sub(destroyed); waited < seal.KeyLifetime {
			t.Errorf("it is confirmed after %v", waited)
		}
	})
}

// TestAMissingKeyIsNotCalledDestroyed: it may lie in a store that is not mounted. Others do not wait for it.
func TestAMissingKeyIsNotCalledDestroyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVenue(t)
		v.must(operator, &onboarding.SetRetention{})
		ann, bob := v.register(1), v.register(2)
		keys := v.keys
		var err error
		if v.keys, err = seal.OpenOwners(t.Context(), "mem://", mustBox(t)); err != nil { // not the store that they are in
			t.Fatal(err)
		}
		if err := v.keys.Create(t.Context(), bob.String()); err != nil {
			t.Fatal(err)
		}
		stop := v.manage()
		v.erase(ann, bob)
		settle()
		v.erased(bob)
		stop()
		v.keys = keys // mounted
		stop = v.manage()
		settle()
		stop()
		if n := len(events[*onboarding.KeyDestroyed](v.onboarding)); n != 2 {
			t.Errorf("%d destructions are confirmed", n)
		}
	})
}

func mustBox(t *testing.T) *seal.Box {
	t.Helper()
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// TestAnAccountWhoseCodeIsTakenHoldsUpNobody: another broker may have an account of that code.
func TestAnAccountWhoseCodeIsTakenHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVenue(t)
		ann, bob := v.register(1), v.register(2)
		taken := &trading.RegisterCustomer{CustomerCode: onboarding.CustomerCode(ann.ID)}
		if _, err := v.trading.submit(decide.Command{Type: taken.CommandType(), Actor: decide.Actor{Sub: "x", Broker: "beta"}, Payload: taken}); err != nil {
			t.Fatal(err)
		}
		v.finish(ann)
		v.finish(bob)
		for range 2 {
			stop := v.manage()
			settle()
			stop()
			var failed dto.Metric // which an operator is told of
			if err := v.last.failures.WithLabelValues("bridge").Write(&failed); err != nil || failed.GetCounter().GetValue() != 1 {
				t.Errorf("%v failures are counted (%v)", failed.GetCounter().GetValue(), err)
			}
		}
		var got []string
		for _, e := range events[*trading.CustomerRegistered](v.trading) {
			got = append(got, e.Broker+" "+e.CustomerCode)
		}
		if want := []string{"beta " + taken.CustomerCode, "alpha " + onboarding.CustomerCode(bob.ID)}; !slices.Equal(got, want) {
			t.Errorf("there are the accounts %q, not %q", got, want)
		}
	})
}

// TestNoAccountForWhoIsLeaving: an owner who is restricted before its account is open gets none.
func TestNoAccountForWhoIsLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVenue(t)
		var away atomic.Bool
		away.Store(true)
		v.fault = func(where string) error {
			if where == "before customer.register" && away.Load() {
				return &submit.NotAcceptedError{}
			}
			return nil
		}
		stop := v.manage()
		defer stop()
		ann, bob := v.register(1), v.register(2)
		v.finish(ann)
		v.finish(bob)
		settle()
		v.erase(ann)
		away.Store(false)
		settle()
		v.opened(bob)
	})
}

// TestAFoldThatIsBehindDoublesNothing: what a manager sees may be older than what it has done.
func TestAFoldThatIsBehindDoublesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVenue(t)
		v.must(operator, &onboarding.SetRetention{})
		ann, bob, cal := v.register(1), v.register(2), v.register(3)
		v.erase(ann)
		v.finish(bob)
		v.trading.hold(true)
		for range 3 { // each sees no account
			stop := v.manage()
			settle()
			stop()
		}
		v.finish(cal)
		stop := v.manage()
		settle()
		v.trading.hold(false)
		settle()
		stop()
		v.erased(ann)
		v.opened(bob, cal)
	})
}

// TestHoldsOfTheLogAreWrittenFirst: a build before there were holds in the key store wrote none there. While one of them can't
// be written, no key is destroyed.
func TestHoldsOfTheLogAreWrittenFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVenue(t)
		v.must(operator, &onboarding.SetRetention{})
		ann, bob, cal := v.register(1), v.register(2), v.register(3)
		hold := func(ref owner.Ref) {
			v.must(operator, &onboarding.HoldOwner{Ref: ref, Reason: onboarding.Sealed("reason")})
		}
		hold(ann)
		v.erase(bob)
		var away atomic.Bool
		away.Store(true)
		v.fault = func(where string) error {
			if where == "before hold" && away.Load() {
				return seal.ErrAway
			}
			return nil
		}
		stop := v.manage()
		defer stop()
		settle()
		if n := len(events[*onboarding.KeyDestroyed](v.onboarding)); n != 0 {
			t.Errorf("%d keys are destroyed before the holds are written", n)
		}
		away.Store(false)
		settle()
		v.erased(bob)
		hold(cal) // by a node of an older build
		settle()
		for _, ref := range []owner.Ref{ann, cal} {
			if held, err := v.keys.Held(t.Context(), ref.String()); len(held) != 1 || err != nil {
				t.Errorf("%v is held by %q (%v)", ref, held, err)
			}
		}
	})
}

// TestAKeyThatACopyHoldsIsKept: the log knows nothing of that hold. Others do not wait for it, and it is destroyed once it is
// released.
func TestAKeyThatACopyHoldsIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVenue(t)
		v.must(operator, &onboarding.SetRetention{})
		ann, bob := v.register(1), v.register(2)
		if _, err := v.keys.Hold(t.Context(), ann.String()); err != nil {
			t.Fatal(err)
		}
		stop := v.manage()
		defer stop()
		v.erase(ann, bob)
		settle()
		v.erased(bob)
		if _, err := v.keys.Seal(t.Context(), nil, seal.OwnerFields(ann)); err != nil {
			t.Errorf("a key that is held: %v", err)
		}
		if _, err := v.keys.Release(t.Context(), ann.String()); err != nil {
			t.Fatal(err)
		}
		settle()
		v.erased(ann, bob)
	})
}
