package transparency_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	. "github.com/perpetua-exchange/perpetua/streams/transparency"
	"github.com/perpetua-exchange/perpetua/streams/transparency/witnesstest"
)

// another returns another key of the log.
func (l *publishedLog) another(seed byte) *Key {
	l.t.Helper()
	k, err := NewKey(l.origin, append(make([]byte, 31), seed))
	if err != nil {
		l.t.Fatal(err)
	}
	return k
}

func TestParseLogKeys(t *testing.T) {
	l := publish(t, 1)
	a, b := l.key.Verifier(), l.another(2).Verifier()
	at := time.Date(2026, 12, 27, 13, 20, 1, 118204000, time.UTC)
	keys, err := ParseLogKeys("# a comment\n\n" + KeyLine(a, at) + KeyLine(b, time.Time{}))
	if err != nil || len(keys) != 2 || !keys[0].Until.Equal(at) || !keys[1].Until.IsZero() || keys[1].Name() != l.origin.String() {
		t.Errorf("%+v, %v", keys, err)
	}
	other := strings.TrimSuffix(KeyLine(publish(t, 2).key.Verifier(), time.Time{}), "\n") // of the same origin
	for text, want := range map[string]string{
		"":                             "there is no verifier key",
		"# " + a:                       "there is no verifier key",
		a + "\nx\n":                    "line 2: the key of the log",
		a + " until\n":                 "line 1: a line is",
		a + " until yesterday\n":       `line 1: "yesterday" is not a time`,
		a + " before 2026-12-27\n":     "line 1: a line is",
		a + "\n" + other:               "line 2: the key occurs a second time",
		a + "\n\n" + foreign(t) + "\n": "line 3: the key is that of",
	} {
		if _, err := ParseLogKeys(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// foreign returns the key of another log.
func foreign(t *testing.T) string {
	t.Helper()
	k, err := NewKey(Origin{Host: "other.example", Journal: "trading"}, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	return k.Verifier()
}

// FuzzParseLogKeys: what is read is written again as a list of the same keys.
func FuzzParseLogKeys(f *testing.F) {
	f.Add("venue.example/tlog/trading/0/x+a8e45c83+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop until 2026-12-27T13:20:01Z\n# c\n")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseLogKeys(text)
		if err != nil {
			return
		}
		for i, k := range keys {
			if k.Name() != keys[0].Name() || i > 0 && k.KeyHash() == keys[i-1].KeyHash() {
				t.Errorf("%q has two keys that do not go together", text)
			}
		}
	})
}

// pair are keys that sign every tree.
type pair []*Key

func (p pair) Signing(context.Context, int64) ([]*Key, error) { return p, nil }

func (p pair) Known(c context.Context) (all []note.Verifier, err error) {
	for _, k := range p {
		v, err := k.Known(c)
		if err != nil {
			return nil, err
		}
		all = append(all, v...)
	}
	return all, nil
}

// TestRetiredKeys tries checkpoints that the old key, the new one, or both have signed, on verifiers that know one of them or both,
// before and after the old key retired, with cosignatures from before and after.
func TestRetiredKeys(t *testing.T) {
	l := publish(t, 1)
	old, next := l.key, l.another(2)
	w := witnesstest.Start(t, "witness.example/w")
	retires := time.Now().Add(-time.Hour).Truncate(time.Second).UTC()
	witnessed, err := ParsePolicy([]byte("witness w " + w.Key().String() + "\nquorum w\n"))
	if err != nil {
		t.Fatal(err)
	}
	both := KeyLine(old.Verifier(), retires) + KeyLine(next.Verifier(), time.Time{})
	before, after := retires.Add(-time.Second), retires
	for _, tt := range []struct {
		name     string
		signed   pair
		cosigned time.Time // zero: it is not
		keys     string
		policy   *Policy
		now      time.Time
		want     error // any for an error without a name
	}{
		{"old, to one who knows no rotation", pair{old}, time.Time{}, old.Verifier(), NewPolicy(), after, nil},
		{"both, to one who knows the old key", pair{next, old}, time.Time{}, old.Verifier(), NewPolicy(), after, nil},
		{"both, to one who knows the new key", pair{next, old}, time.Time{}, next.Verifier(), NewPolicy(), after, nil},
		{"both, to one who knows both", pair{next, old}, time.Time{}, both, NewPolicy(), after, nil},
		{"new, to one who knows both", pair{next}, time.Time{}, both, NewPolicy(), after, nil},
		{"new, to one who knows the old key", pair{next}, time.Time{}, old.Verifier(), NewPolicy(), after, errAny},
		{"old, before it retires", pair{old}, time.Time{}, both, NewPolicy(), before, nil},
		{"old, after it retired", pair{old}, time.Time{}, both, NewPolicy(), after, ErrRetired},
		{"old, cosigned before, without witnesses in the policy", pair{old}, before, both, NewPolicy(), after, ErrRetired},
		{"old, cosigned before", pair{old}, before, both, witnessed, after, nil},
		{"old, cosigned too late", pair{old}, after, both, witnessed, after, ErrRetired},
		{"old, not cosigned", pair{old}, time.Time{}, both, witnessed, after, ErrRetired},
		{"old, not cosigned, before it retires", pair{old}, time.Time{}, both, witnessed, before, ErrQuorum},
		{"both, cosigned too late for the old key", pair{next, old}, after, both, witnessed, after, nil},
		{"old, to one who knows only that it retired", pair{old}, time.Time{}, KeyLine(old.Verifier(), retires), NewPolicy(), after, ErrRetired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := NewSigner(l.origin, l, tt.signed).Sign(t.Context(), Head{}, Head{Size: 5, Root: [32]byte{1}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, _, _ := strings.Cut(string(c.Note), "\n\n"); !tt.cosigned.IsZero() {
				c.Note = append(c.Note, w.CosignAt(text+"\n", tt.cosigned)...)
			}
			p, err := tt.policy.ForLog(tt.keys)
			if err != nil {
				t.Fatal(err)
			}
			p.Now = func() time.Time { return tt.now }
			o, err := p.Open(c.Note)
			if !errors.Is(err, tt.want) && (tt.want != errAny || err == nil) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if err == nil && o.Retired.IsZero() == (tt.name == "old, cosigned before") {
				t.Errorf("the key that vouches for it retired at %v", o.Retired)
			}
			if _, err := p.OpenRemembered(c.Note); tt.want != errAny && err != nil {
				t.Errorf("remembered: %v", err)
			}
		})
	}
}

var errAny = errors.New("any error")

// TestPolicyListsBothKeys: of the keys of a log, those count that the policy has.
func TestPolicyListsBothKeys(t *testing.T) {
	l := publish(t, 1)
	old, next := l.key, l.another(2)
	both := KeyLine(old.Verifier(), time.Now()) + KeyLine(next.Verifier(), time.Time{})
	for lines, want := range map[string]int{"": 2, "log " + old.Verifier(): 1, "log " + next.Verifier(): 1,
		fmt.Sprintf("log %s\nlog %s", old.Verifier(), next.Verifier()): 2, "log " + foreign(t): 0} {
		p, err := ParsePolicy([]byte(lines + "\nquorum none\n"))
		if err != nil {
			t.Fatal(err)
		}
		one, err := p.ForLog(both)
		switch {
		case want == 0 && err == nil:
			t.Errorf("%q has the log", lines)
		case want > 0 && (err != nil || len(one.Logs) != want):
			t.Errorf("%q: %v, %v", lines, one, err)
		}
	}
}

// TestCosignerFollowsARotation: the witness goes on cosigning while it knows the old key, and after its operator has replaced that by
// the new one. Without that it stops when the old key retires.
func TestCosignerFollowsARotation(t *testing.T) {
	l := publish(t, 1)
	p, w := l.witnessed(1, "quorum w0\n")
	old, next := l.key, l.another(2)
	sign := func(size int, keys ...*Key) {
		l.signer = NewSigner(l.origin, l, pair(keys))
		l.key = keys[0]
		l.grow(size)
	}
	sign(5, old)
	c, _ := l.cosign(p)
	l.until(p, 5)
	sign(300, next, old)
	l.until(p, 305)
	sign(1, next)
	awaitStatus(t, c, func(err error) bool { return err != nil && strings.Contains(err.Error(), "it answered 403") })
	if err := w[0].Knows(next.Verifier()); err != nil {
		t.Fatal(err)
	}
	if o := l.until(p, 306); len(o.Cosigned) != 1 {
		t.Errorf("%+v", o)
	}
}
