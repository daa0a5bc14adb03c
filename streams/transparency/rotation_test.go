package transparency

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// schedule is the keys of a log that rotates: the first key signs trees up to the size from, both up to the size until, and then the
// second.
type schedule struct {
	keys        [2]*Key
	from, until int64
	missing     error // of the second key
}

// Signing implements Keys.
func (s *schedule) Signing(_ context.Context, size int64) ([]*Key, error) {
	switch {
	case size <= s.from:
		return s.keys[:1], nil
	case s.missing != nil:
		return nil, s.missing
	case size <= s.until:
		return []*Key{s.keys[1], s.keys[0]}, nil
	}
	return s.keys[1:], nil
}

// Known implements Keys.
func (s *schedule) Known(ctx context.Context) (all []note.Verifier, err error) {
	for _, k := range s.keys {
		v, err := k.Known(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, v...)
	}
	return all, nil
}

// TestKilledInARotation kills a follower after each change, between trees that the old key, both keys, and the new key sign. The last
// change of the first run and the first one of the next are of different keys.
func TestKilledInARotation(t *testing.T) {
	keys := [2]*Key{newKey(t, 0), newKey(t, 1)}
	for at, ended := 0, false; !ended; at++ {
		heads, log := new(memoryHeads), newLog(7, 250)
		v := newVenue(t, log, heads)
		v.signer = NewSigner(testOrigin, heads, &schedule{keys: keys, from: 250, until: 300})
		if err := v.runUntil(v.follower(nil), 250); err != nil {
			t.Fatal(err)
		}
		k := &killer{left: at}
		for _, size := range []int64{300, 310} {
			log.grow(size - log.size)
			if err := v.runUntil(v.follower(k), size); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		ended = k.left > 0
		if err := v.runUntil(v.follower(nil), 310); err != nil {
			t.Fatalf("killed after %d changes: %v", at, err)
		}
		v.check(310)
		heads.history(t, log)
		if c, err := heads.Published(t.Context(), testOrigin); err != nil || c.Verifier != keys[1].Verifier() {
			t.Errorf("killed after %d changes, it is signed by %s (%v)", at, c.Verifier, err)
		}
	}
}

// TestSignsWithTheKeysOfTheTree: the checkpoint has a signature of each key that the tree has, and no head is recorded for a tree that
// cannot be signed.
func TestSignsWithTheKeysOfTheTree(t *testing.T) {
	heads, keys := new(memoryHeads), &schedule{keys: [2]*Key{newKey(t, 0), newKey(t, 1)}, from: 5, until: 7}
	s := NewSigner(testOrigin, heads, keys)
	old := Head{}
	for size, want := range []int{0, 0, 0, 0, 0, 1, 2, 2, 1, 1} {
		if size < 5 {
			continue
		}
		next, hashes := newHead(t, 1, int64(size))
		c, err := s.Sign(t.Context(), old, next, hashes)
		if err != nil {
			t.Fatal(err)
		}
		old = next
		if got := strings.Count(string(c.Note), "— "); got != want || strings.Count(c.Verifier, "\n") != want-1 || size > 5 && c.Newest() != keys.keys[1].Verifier() {
			t.Errorf("the tree of size %d has %d signatures, not %d, of %s", size, got, want, c.Verifier)
		}
	}
	keys.missing = errors.New("the key is lost")
	next, hashes := newHead(t, 1, 10)
	if _, err := s.Sign(t.Context(), old, next, hashes); !errors.Is(err, keys.missing) || heads.head.Size != 9 {
		t.Errorf("without the key, the head is of size %d: %v", heads.head.Size, err)
	}
}

// TestUnknownKey: if the log has lost the record that names the key of the published checkpoint, nothing is signed, also if
// the heads are lost too.
func TestUnknownKey(t *testing.T) {
	log := newLog(5, 20)
	v := newVenue(t, log, new(memoryHeads))
	v.signer = NewSigner(testOrigin, v.heads, newKey(t, 1))
	if err := v.runUntil(v.follower(nil), 20); err != nil {
		t.Fatal(err)
	}
	lost := new(memoryHeads)
	v.heads, v.signer = lost, NewSigner(testOrigin, lost, newKey(t, 0))
	f := v.follower(nil)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	for deadline := time.Now().Add(time.Minute); !f.Status().Halted; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it goes on")
		}
	}
	stop()
	<-done
	if len(lost.all) > 0 {
		t.Errorf("%d trees are signed", len(lost.all))
	}
}
