package fence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

var onboarding = scalar.ID{1, 2, 3, 15: 4}

const settle = ReadEvery + 15*time.Second

func keyStore(t *testing.T, folder string) *seal.KeyStore {
	t.Helper()
	k, err := seal.OpenKeyStore(t.Context(), "file://"+filepath.ToSlash(folder)+"?create_dir=false")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// watch returns the watch of a node whose log is at a location. In a bubble of synctest, its clock is that of the bubble.
func watch(keys *seal.KeyStore, place string) *Watch {
	start := time.Now()
	return NewWatch(Config{Keys: keys, Settle: settle, Command: "perpetua admin take-over", Logger: slog.New(slog.DiscardHandler),
		Elapsed:  func() time.Duration { return time.Since(start) },
		Identify: func(context.Context) (scalar.ID, string, bool, error) { return onboarding, place, true, nil }})
}

func (w *Watch) must(t *testing.T, want error) {
	t.Helper()
	if err := w.Confirm(t.Context()); !errors.Is(err, want) || want == nil && err != nil {
		t.Errorf("the venue at %s may: %v, want %v", w.location, err, want)
	}
}

// TestOneVenueCreatesTheFence: of the nodes of many venues that start at once, those of one are let act.
func TestOneVenueCreatesTheFence(t *testing.T) {
	for range 20 {
		folder := t.TempDir()
		var all []*Watch
		for i := range 12 {
			all = append(all, watch(keyStore(t, folder), fmt.Sprint("place ", i%4)))
		}
		var start sync.WaitGroup
		for _, w := range all {
			start.Go(func() { w.Read(t.Context()) })
		}
		start.Wait()
		venues := make(map[string]int)
		for _, w := range all {
			err := w.Confirm(t.Context())
			for errors.Is(err, seal.ErrAway) { // the disk is slow
				err = w.Confirm(t.Context())
			}
			if v := w.View(); err == nil {
				venues[v.Venue]++
			} else if !errors.Is(err, seal.ErrFenced) || v.Audience() == v.Fence.Audience() {
				t.Errorf("a node may: %v, its audience %s", err, v.Audience())
			}
		}
		if len(venues) != 1 {
			t.Fatalf("%d venues act", len(venues))
		}
		for _, nodes := range venues {
			if nodes != 3 {
				t.Errorf("%d nodes of the venue act, not all three", nodes)
			}
		}
	}
}

// TestTakeOver: the copy acts once the venue before it has stopped, and that one learns of it.
func TestTakeOver(t *testing.T) {
	folder := t.TempDir()
	live, copied := watch(keyStore(t, folder), "old"), watch(keyStore(t, folder), "new")
	live.must(t, nil)
	copied.must(t, seal.ErrFenced)
	before := live.View()
	begun := false
	f, err := TakeOver(t.Context(), copied.cfg.Keys, onboarding, "new", time.Millisecond, func(f Fence, damage error) {
		begun = true
		if !f.Settling || f.Epoch != 2 || damage != nil {
			t.Errorf("it begins with %+v", f)
		}
		copied.must(t, seal.ErrAway) // it waits
		live.must(t, seal.ErrFenced)
	})
	if err != nil || !begun || f.Epoch != 2 || f.Settling || f.Venue != before.Venue {
		t.Fatalf("taken over: %+v, %v", f, err)
	}
	copied.must(t, nil)
	if v := copied.View(); v.Audience() == before.Audience() || v.Audience() == live.View().Audience() || v.Venue != before.Venue {
		t.Errorf("its audience is %s, before %s, the other's %s", v.Audience(), before.Audience(), live.View().Audience())
	}
	if again, err := TakeOver(t.Context(), copied.cfg.Keys, onboarding, "new", time.Hour, nil); err != nil || again.Epoch != 2 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// TestATakeOverThatWasBrokenOff is finished by the next one, and by the nodes themselves.
func TestATakeOverThatWasBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, err := seal.OpenKeyStore(t.Context(), "mem://")
		if err != nil {
			t.Fatal(err)
		}
		defer keys.Close()
		live, copied := watch(keys, "old"), watch(keys, "new")
		live.must(t, nil)
		killed, kill := context.WithCancel(t.Context())
		if _, err := TakeOver(killed, keys, onboarding, "new", settle, func(Fence, error) { kill() }); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		copied.must(t, seal.ErrAway)
		live.must(t, seal.ErrFenced)
		time.Sleep(settle - time.Second)
		copied.must(t, seal.ErrAway)
		time.Sleep(time.Second)
		copied.must(t, nil)
		restarted := watch(keys, "new")
		restarted.must(t, seal.ErrAway) // it cannot know for how long
		if f, err := TakeOver(t.Context(), keys, onboarding, "new", settle, nil); err != nil || f.Epoch != 2 {
			t.Fatalf("%+v, %v", f, err)
		}
		restarted.must(t, nil)
	})
}

// TestTwoTakeOversAtOnce: one of them fails.
func TestTwoTakeOversAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, err := seal.OpenKeyStore(t.Context(), "mem://")
		if err != nil {
			t.Fatal(err)
		}
		defer keys.Close()
		watch(keys, "old").must(t, nil)
		errs := make([]error, 2)
		var both sync.WaitGroup
		for i, place := range []string{"one", "two"} {
			both.Go(func() { _, errs[i] = TakeOver(t.Context(), keys, onboarding, place, settle, nil) })
		}
		both.Wait()
		if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs...), ErrOther) {
			t.Errorf("the outcomes are %v and %v", errs[0], errs[1])
		}
	})
}

func TestMove(t *testing.T) {
	folder := t.TempDir()
	keys := keyStore(t, folder)
	live := watch(keys, "old")
	live.must(t, nil)
	before := live.View()
	var other *NotHolderError
	if _, err := Move(t.Context(), keys, onboarding, "elsewhere", "new"); !errors.As(err, &other) || other.Fence.Location != "old" {
		t.Errorf("moving a copy: %v", err)
	}
	if err := CheckMove(t.Context(), keys, onboarding, "elsewhere", "new"); !errors.As(err, &other) {
		t.Errorf("checking the move of a copy: %v", err)
	}
	for range 2 { // it can be repeated
		if err := CheckMove(t.Context(), keys, onboarding, "old", "new"); err != nil {
			t.Fatal(err)
		}
		if f, err := Move(t.Context(), keys, onboarding, "old", "new"); err != nil || f.Location != "new" || f.Epoch != 1 {
			t.Fatalf("%+v, %v", f, err)
		}
	}
	moved := watch(keys, "new")
	moved.must(t, nil)
	if v := moved.View(); v.Audience() != before.Audience() {
		t.Errorf("the audience is %s, before the move %s", v.Audience(), before.Audience())
	}
	live.must(t, seal.ErrFenced)
}

// TestAKeyStoreThatIsAwayMeansWait: neither fenced nor free.
func TestAKeyStoreThatIsAwayMeansWait(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "keys")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	live, copied, late := watch(keyStore(t, folder), "old"), watch(keyStore(t, folder), "new"), watch(keyStore(t, folder), "old")
	live.must(t, nil)
	copied.must(t, seal.ErrFenced)
	if err := os.Rename(folder, folder+" away"); err != nil {
		t.Fatal(err)
	}
	live.must(t, seal.ErrAway)
	late.must(t, seal.ErrAway)
	copied.must(t, seal.ErrFenced) // it knows
	if v := late.View(); v.Known() || v.Audience() != "" {
		t.Errorf("a venue that never read its fence is %s", v.Status)
	}
	if err := os.Rename(folder+" away", folder); err != nil {
		t.Fatal(err)
	}
	live.must(t, nil)
	late.must(t, nil)
}

// TestAFenceThatDisappears: an unmounted folder is empty, so a copy must not create its own fence there.
func TestAFenceThatDisappears(t *testing.T) {
	folder := t.TempDir()
	live, copied := watch(keyStore(t, folder), "old"), watch(keyStore(t, folder), "new")
	live.must(t, nil)
	copied.must(t, seal.ErrFenced)
	mounted := filepath.Join(folder, "fence")
	if err := os.Rename(mounted, mounted+" away"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		copied.must(t, seal.ErrFenced)
		live.must(t, seal.ErrAway)
	}
	if _, err := os.Stat(mounted); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a fence was created: %v", err)
	}
	restarted := watch(keyStore(t, folder), "new")
	restarted.cfg.Belongs = func(context.Context) error { return errors.New("no key of any owner") }
	restarted.must(t, seal.ErrAway)
	if err := os.Rename(mounted+" away", mounted); err != nil {
		t.Fatal(err)
	}
	live.must(t, nil)
	copied.must(t, seal.ErrFenced)
	restarted.must(t, seal.ErrFenced)
}

// TestAFenceOfAnOlderBuild: the location that it names is that of every topic of an embedded broker. The venue that may have
// written it goes on without a take-over.
func TestAFenceOfAnOlderBuild(t *testing.T) {
	folder := t.TempDir()
	keys := keyStore(t, folder)
	if _, err := Create(t.Context(), keys, onboarding, "embedded"); err != nil {
		t.Fatal(err)
	}
	live, copied := watch(keys, "embedded/onboarding"), watch(keys, "embedded/copy.onboarding")
	former := func(place string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return place, nil }
	}
	live.cfg.Former, copied.cfg.Former = former("embedded"), former("")
	copied.must(t, seal.ErrFenced)
	live.must(t, nil)
	copied.cfg.Former = former("embedded") // it is accepted once
	copied.must(t, seal.ErrFenced)
	if f := live.View().Fence; f.Location != "embedded/onboarding" || f.Epoch != 1 || f.Venue != VenueAt(onboarding, "embedded").String() {
		t.Errorf("the fence is %+v", f)
	}
}

// TestTakeOverOfADamagedFence: its epoch is above any that the damaged one can have had.
func TestTakeOverOfADamagedFence(t *testing.T) {
	folder := t.TempDir()
	live := watch(keyStore(t, folder), "old")
	live.must(t, nil)
	before := live.View()
	path := filepath.Join(folder, "fence", onboarding.String())
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content[:len(content)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	live.must(t, seal.ErrAway)
	var damage error
	f, err := TakeOver(t.Context(), live.cfg.Keys, onboarding, "old", time.Millisecond, func(_ Fence, was error) { damage = was })
	if err != nil || f.Epoch <= before.Epoch || f.Venue != before.Venue || f.Settling || !errors.Is(damage, ErrDamaged) {
		t.Fatalf("taken over: %+v, %v; damage: %v", f, err, damage)
	}
	live.must(t, nil)
	if live.View().Audience() == before.Audience() {
		t.Error("the audience is as before")
	}
	newer := fmt.Appendf(nil, `{"version":2,"journal_id":%q}`, onboarding.String())
	if err := os.WriteFile(path, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := TakeOver(t.Context(), live.cfg.Keys, onboarding, "old", time.Millisecond, nil); err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("taking over the fence of a newer build: %v", err)
	}
}

// TestLostFence: a key store without a fence gets one only from TakeOverLost. Its epoch is above those of the lost one, and an
// interrupted attempt can be repeated.
func TestLostFence(t *testing.T) {
	keys, err := seal.OpenKeyStore(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	if _, err := TakeOver(t.Context(), keys, onboarding, "here", 0, nil); !errors.Is(err, ErrNone) {
		t.Fatalf("taking over without a fence: %v", err)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	if _, err := TakeOverLost(interrupted, keys, onboarding, "here", time.Hour, func(Fence, error) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	f, err := TakeOverLost(t.Context(), keys, onboarding, "here", 0, nil)
	if err != nil || f.Location != "here" || f.Settling || f.Epoch < f.Created.Unix() {
		t.Fatalf("taken over: %+v, %v", f, err)
	}
	if again, err := TakeOver(t.Context(), keys, onboarding, "here", time.Hour, nil); err != nil || again.Epoch != f.Epoch {
		t.Errorf("taken over again: %+v, %v", again, err)
	}
}

// TestCallersOfAKeyStoreThatHangs: while it is away, Check returns at once. Calls of Confirm share a read, and end with their
// contexts.
func TestCallersOfAKeyStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, err := seal.OpenKeyStore(t.Context(), "mem://")
		if err != nil {
			t.Fatal(err)
		}
		defer keys.Close()
		w := watch(keys, "old")
		w.must(t, nil)
		const patience = 4 * time.Second
		var reads atomic.Int32
		w.ask = func(context.Context) (Fence, error) {
			reads.Add(1)
			time.Sleep(patience)
			return Fence{}, seal.ErrAway
		}
		ctx, end := context.WithCancel(t.Context())
		var polling, all sync.WaitGroup
		polling.Go(func() { w.Run(ctx) })
		time.Sleep(ReadEvery) // the first read of Run is under way
		begin := time.Now()
		for range 5 {
			all.Go(func() {
				if err := w.Check(ctx); !errors.Is(err, seal.ErrAway) || time.Since(begin) > 0 {
					t.Errorf("checked after %v: %v", time.Since(begin), err)
				}
			})
		}
		all.Wait()
		for range 5 {
			all.Go(func() {
				if err := w.Confirm(ctx); !errors.Is(err, seal.ErrAway) || time.Since(begin) > 2*patience {
					t.Errorf("confirmed after %v: %v", time.Since(begin), err)
				}
			})
			all.Go(func() {
				const limit = time.Second / 2
				brief, cancel := context.WithTimeout(ctx, limit)
				defer cancel()
				if err := w.Confirm(brief); !errors.Is(err, seal.ErrAway) || time.Since(begin) > limit {
					t.Errorf("confirmed within %v, after %v: %v", limit, time.Since(begin), err)
				}
			})
		}
		all.Wait()
		if n := reads.Load(); n > 3 { // that of Run, one for the five, and the next of Run
			t.Errorf("the key store was read %d times", n)
		}
		end()
		polling.Wait()
	})
}

// TestAVenueThatWasSuspendedReadsTheFenceFirst: another venue may have taken over while Go's monotonic clock stood still.
func TestAVenueThatWasSuspendedReadsTheFenceFirst(t *testing.T) {
	keys := keyStore(t, t.TempDir())
	w := watch(keys, "old")
	var suspended time.Duration
	w.cfg.Elapsed = func() time.Duration { return suspended }
	w.must(t, nil)
	suspended += ReadEvery
	if err := w.Check(t.Context()); !errors.Is(err, seal.ErrAway) {
		t.Errorf("it acts after a suspension: %v", err)
	}
	w.must(t, nil)
	if err := w.Check(t.Context()); err != nil {
		t.Errorf("it read the fence and does not act: %v", err)
	}
}

// TestWhatActsStopsAndGoesOn: it runs while the fence is the venue's own and was read a short while ago.
func TestWhatActsStopsAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, err := seal.OpenKeyStore(t.Context(), "mem://")
		if err != nil {
			t.Fatal(err)
		}
		defer keys.Close()
		w := watch(keys, "old")
		ctx, end := context.WithCancel(t.Context())
		runs := 0
		var running atomic.Bool
		var all sync.WaitGroup
		all.Go(func() { w.Run(ctx) })
		all.Go(func() {
			err := w.While(ctx, func(ctx context.Context) error {
				runs++
				running.Store(true)
				defer running.Store(false)
				<-ctx.Done()
				return ctx.Err()
			})
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		at := func(want bool, what string) {
			t.Helper()
			synctest.Wait()
			if is := running.Load(); is != want {
				t.Errorf("%s: running is %v", what, is)
			}
		}
		time.Sleep(2 * time.Second)
		at(true, "its own")
		if _, err := TakeOver(t.Context(), keys, onboarding, "new", settle, nil); err != nil {
			t.Fatal(err)
		}
		at(false, "taken over")
		if _, err := TakeOver(t.Context(), keys, onboarding, "old", settle, func(Fence, error) { time.Sleep(5 * time.Second); at(false, "settling") }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		at(true, "taken back")
		end()
		all.Wait()
		if runs != 2 {
			t.Errorf("it ran %d times", runs)
		}
	})
}

// TestAStopAfterTheFenceWasLost: a task that ends late, because its venue may not act any more, is not the reason for which a node
// stops that was told to stop meanwhile.
func TestAStopAfterTheFenceWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, err := seal.OpenKeyStore(t.Context(), "mem://")
		if err != nil {
			t.Fatal(err)
		}
		defer keys.Close()
		w := watch(keys, "old")
		w.must(t, nil) // read once, and never again
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		lost, finish := make(chan struct{}), make(chan struct{})
		go func() {
			ended <- w.While(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				close(lost)
				<-finish
				return ctx.Err()
			})
		}()
		<-lost
		stop()
		close(finish)
		if err := <-ended; err != nil {
			t.Errorf("after a stop: %v", err)
		}
	})
}
