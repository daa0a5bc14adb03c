package transparency

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// newHead returns the head of a log's tree of a size, and its hashes.
func newHead(t testing.TB, seed uint64, size int64) (Head, tlog.HashReader) {
	t.Helper()
	r := &reference{seed: seed}
	for ; r.size < size; r.size++ {
		entry := Entry(rootAt(seed, r.size))
		more, err := tlog.StoredHashes(r.size, entry[:], r)
		if err != nil {
			t.Fatal(err)
		}
		r.hashes = append(r.hashes, more...)
	}
	root, err := tlog.TreeHash(size, r)
	if err != nil {
		t.Fatal(err)
	}
	return Head{Size: size, Root: root}, r
}

// newKey returns a key of the log of the tests.
func newKey(t testing.TB, seed byte) *Key {
	t.Helper()
	k, err := NewKey(testOrigin, append(make([]byte, 31), seed))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// opener returns the policy of checkpoints that a key has signed.
func opener(t testing.TB, key *Key) *Policy {
	t.Helper()
	p, err := NewPolicy().ForLog(key.Verifier())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSignerSignsOnlyExtensions(t *testing.T) {
	heads := new(memoryHeads)
	s := NewSigner(testOrigin, heads, newKey(t, 0))
	first, hashes := newHead(t, 1, 300)
	if _, err := s.Sign(t.Context(), Head{}, first, hashes); err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]struct {
		seed uint64
		size int64
		want error
	}{"smaller": {1, 299, ErrInconsistent}, "another of the size": {2, 300, ErrInconsistent}, "of another log": {2, 400, ErrInconsistent}, "none": {1, 0, nil}} {
		next, hashes := Head{}, tlog.HashReader(nil)
		if try.size > 0 {
			next, hashes = newHead(t, try.seed, try.size)
		}
		if c, err := s.Sign(t.Context(), first, next, hashes); err == nil || try.want != nil && !errors.Is(err, try.want) || c.Note != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	again, err := s.Sign(t.Context(), first, first, nil)
	if err != nil {
		t.Error(err)
	}
	next, hashes := newHead(t, 1, 301)
	if _, err := s.Sign(t.Context(), first, next, hashes); err != nil {
		t.Error(err)
	}
	if _, err := s.Sign(t.Context(), first, next, hashes); !errors.Is(err, ErrMoved) {
		t.Errorf("from a head that is not the last: %v", err)
	}
	if len(heads.all) != 2 {
		t.Errorf("%d heads are recorded", len(heads.all))
	}
	if o, err := opener(t, newKey(t, 0)).Open(again.Note); err != nil || o.Size != 300 || o.Root != first.Root {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestCheckpointsAreReadStrictly(t *testing.T) {
	key := newKey(t, 0)
	policy := opener(t, key)
	name, hash := testOrigin.String(), "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="
	for text, good := range map[string]bool{
		name + "\n7\n" + hash + "\n":                         true,
		name + "\n7\n" + hash + "\nan extension\n":           true,
		name + "\n07\n" + hash + "\n":                        false,
		name + "\n+7\n" + hash + "\n":                        false,
		name + "\n-7\n" + hash + "\n":                        false,
		name + "\n7\n":                                       false,
		name + "x\n7\n" + hash + "\n":                        false,
		name + "\n7\n" + hash[1:] + "\n":                     false,
		name + "\n7\n" + hash[:43] + "\n":                    false,
		name + "\n9223372036854775808\n" + hash + "\n":       false,
		"other.example/log\n7\n" + hash + "\n":               false,
		name + "\n7\n" + hash[:42] + "J=\n":                  false, // the last bits are not zero
		strings.ToUpper(name) + "\n7\n" + hash + "\n":        false,
		name + "\n7\n" + strings.ToLower(hash) + " \n":       false,
		name + "\n7 \n" + hash + "\n":                        false,
		name + "\n0x7\n" + hash + "\n":                       false,
		name + "\n7\n" + strings.TrimRight(hash, "=\n"):      false,
		name + "\n7\n" + strings.TrimRight(hash, "=") + "\n": false,
	} {
		signed, err := note.Sign(&note.Note{Text: text}, key.signer)
		if err != nil {
			continue // a text without a newline at its end
		}
		if _, err := policy.Open(signed); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
		signed[len(signed)-10] ^= 1
		if _, err := policy.Open(signed); err == nil {
			t.Errorf("%q is read with another signature", text)
		}
	}
}

// TestSignerKeepsItsKeySecret: no error quotes it.
func TestSignerKeepsItsKeySecret(t *testing.T) {
	for _, host := range []string{"a b", "a+b", "\xff"} {
		o := testOrigin
		o.Host = host
		_, err := NewKey(o, []byte(strings.Repeat("s", 32)))
		if err == nil || strings.Contains(err.Error(), "c3Nzc3Nz") {
			t.Errorf("%q: %v", host, err)
		}
	}
	if _, err := NewKey(testOrigin, make([]byte, 31)); err == nil {
		t.Error("a short seed is accepted")
	}
}
