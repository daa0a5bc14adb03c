package seal

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

func TestOtherNodesForgetADestroyedKeyInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder, at := t.TempDir(), OwnerFields(anna)
		one, other := created(t, folder), onFolder(t, folder)
		s := sealed(t, one, "Anna", at)
		if _, err := other.Open(t.Context(), s, at); err != nil {
			t.Fatal(err)
		}
		if err := one.Destroy(t.Context(), at.Owner); err != nil {
			t.Fatal(err)
		}
		time.Sleep(KeyLifetime)
		if plain, err := other.Open(t.Context(), s, at); !errors.Is(err, ErrDestroyed) {
			t.Errorf("the other opens %q, %v", plain, err)
		}
	})
}

// TestASuspendedNodeForgetsADestroyedKey: Go's monotonic clock stands still while another node destroys the key.
func TestASuspendedNodeForgetsADestroyedKey(t *testing.T) {
	folder, at := t.TempDir(), OwnerFields(anna)
	one, other := created(t, folder), onFolder(t, folder)
	var suspended time.Duration
	other.SetClock(func() time.Duration { return suspended })
	s := sealed(t, one, "Anna", at)
	if _, err := other.Open(t.Context(), s, at); err != nil {
		t.Fatal(err)
	}
	if err := one.Destroy(t.Context(), at.Owner); err != nil {
		t.Fatal(err)
	}
	suspended += KeyLifetime
	if plain, err := other.Open(t.Context(), s, at); !errors.Is(err, ErrDestroyed) {
		t.Errorf("the other opens %q, %v", plain, err)
	}
}

// TestAKeyThatIsReadWhileItIsDestroyed has the answer of the store be on its way for longer than the destruction takes.
func TestAKeyThatIsReadWhileItIsDestroyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := testMaster(t, 1)
		c := newKeyCache(func(context.Context, string) (*Box, error) {
			time.Sleep(KeyLifetime / 2)
			return box, nil
		})
		if _, err := c.get(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(KeyLifetime / 2)
		c.load = func(context.Context, string) (*Box, error) { return nil, ErrDestroyed }
		if _, err := c.get(t.Context(), "x"); !errors.Is(err, ErrDestroyed) {
			t.Errorf("%v after the question it is still used: %v", KeyLifetime, err)
		}
	})
}

// TestAKeyThatIsForgottenWhileItIsRead forgets a key amid a read. The next question asks the store again.
func TestAKeyThatIsForgottenWhileItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := testMaster(t, 1)
		answer := make(chan struct{})
		c := newKeyCache(func(context.Context, string) (*Box, error) { <-answer; return box, nil })
		var read sync.WaitGroup
		read.Go(func() {
			if got, err := c.get(t.Context(), "x"); got != box || err != nil {
				t.Errorf("the read under way: %v, %v", got, err)
			}
		})
		synctest.Wait()
		c.forget("x")
		later := func(context.Context, string) (*Box, error) { return nil, ErrDestroyed }
		for range 2 { // before the answer, and after it
			c.load = later
			if _, err := c.get(t.Context(), "x"); !errors.Is(err, ErrDestroyed) {
				t.Errorf("a destroyed key: %v", err)
			}
			if answer != nil {
				close(answer)
				answer = nil
			}
			read.Wait()
		}
	})
}

func TestKeysInMemoryAreFewAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := testMaster(t, 1)
		c := newKeyCache(func(context.Context, string) (*Box, error) { return box, nil })
		held := func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.keys)
		}
		for i := range cachedKeys + 100 {
			if _, err := c.get(t.Context(), strings.Repeat("x", i%100)+string(rune(i))); err != nil {
				t.Fatal(err)
			}
		}
		if n := held(); n > cachedKeys {
			t.Errorf("%d keys are in memory", n)
		}
		time.Sleep(2 * KeyLifetime)
		synctest.Wait()
		if n := held(); n != 0 {
			t.Errorf("%d keys are in memory for no use", n)
		}
	})
}

// TestFetchGivesUpOnce: of a store that is away, who wants many keys learns after the patience of one question, not of each.
func TestFetchGivesUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		var mu sync.Mutex
		o := newOwners(nil, testMaster(t, 7))
		o.cache.load = func(context.Context, string) (*Box, error) {
			mu.Lock()
			asked++
			mu.Unlock()
			time.Sleep(patience)
			return nil, ErrAway
		}
		var many []string
		for n := range byte(100) {
			many = append(many, owner.Ref{Type: owner.PersonType, ID: scalar.ID{2, n, 15: 9}}.String())
		}
		start := time.Now()
		err := o.Fetch(t.Context(), many)
		took := time.Since(start)
		synctest.Wait() // a question that Fetch no longer waits for may begin only now
		mu.Lock()
		defer mu.Unlock()
		if !errors.Is(err, ErrAway) || took != patience || asked > fetches {
			t.Errorf("%v after %v and %d questions", err, took, asked)
		}
	})
}

// TestFetchReadsSeveralAtOnce, and what it read is at hand. A key that is gone is no error of the others.
func TestFetchReadsSeveralAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 50 * time.Millisecond
		o := newOwners(nil, testMaster(t, 7))
		o.cache.load = func(_ context.Context, of string) (*Box, error) {
			time.Sleep(took)
			if of == "gone" {
				return nil, ErrDestroyed
			}
			return testMaster(t, 1), nil
		}
		var many []string
		for n := range byte(2*fetches - 1) {
			many = append(many, owner.Ref{Type: owner.PersonType, ID: scalar.ID{2, n, 15: 9}}.String())
		}
		start := time.Now()
		if err := o.Fetch(t.Context(), append(many, "gone")); err != nil || time.Since(start) != 2*took {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		for _, of := range many {
			if _, err := o.cache.get(t.Context(), of); err != nil {
				t.Error(err)
			}
		}
		if time.Since(start) != 2*took {
			t.Errorf("the keys are at hand after %v", time.Since(start))
		}
	})
}
