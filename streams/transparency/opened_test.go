package transparency

import (
	"crypto/rand"
	"crypto/sha256"
	"math"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// newSigner returns the two halves of a new key of a log.
func newSigner(t *testing.T) (note.Signer, note.Verifier) {
	t.Helper()
	secret, public, err := note.GenerateKey(rand.Reader, "venue.example/tlog/trading/0/x")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(public)
	if err != nil {
		t.Fatal(err)
	}
	return signer, verifier
}

// TestSizesThatNoLogHas: a venue may sign any size. Package tlog does not end for the largest ones.
func TestSizesThatNoLogHas(t *testing.T) {
	signer, verifier := newSigner(t)
	other := tlog.Hash(sha256.Sum256([]byte("x")))
	for _, c := range []struct {
		size int64
		root tlog.Hash
		want string // in the error
	}{
		{1 << 53, other, ""},
		{1<<53 + 1, other, "at most 9007199254740992"},
		{math.MaxInt64, other, "at most 9007199254740992"},
		{0, sha256.Sum256(nil), ""},
		{0, other, "no record"},
	} {
		signed, err := note.Sign(&note.Note{Text: checkpointText(signer.Name(), c.size, c.root)}, signer)
		if err != nil {
			t.Fatal(err)
		}
		_, err = NewPolicy(verifier).Open(signed)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("size %d, root %v: %v", c.size, c.root, err)
		}
	}
}

// TestOtherKeys: the error names the keys that have signed, so that a reader sees which one is missing.
func TestOtherKeys(t *testing.T) {
	var signed []byte
	var names []string
	var last *Policy
	for range 2 {
		secret, public, err := note.GenerateKey(rand.Reader, "venue.example/tlog/trading/0/x")
		if err != nil {
			t.Fatal(err)
		}
		signer, err := note.NewSigner(secret)
		if err != nil {
			t.Fatal(err)
		}
		verifier, err := note.NewVerifier(public)
		if err != nil {
			t.Fatal(err)
		}
		if last = NewPolicy(verifier); len(signed) > 0 {
			break
		}
		if signed, err = note.Sign(&note.Note{Text: checkpointText(signer.Name(), 0, sha256.Sum256(nil))}, signer); err != nil {
			t.Fatal(err)
		}
		names = strings.SplitAfterN(public, "+", 3)
	}
	if _, err := last.Open(signed); err == nil || !strings.HasSuffix(err.Error(), strings.TrimSuffix(names[0]+names[1], "+")) {
		t.Error(err)
	}
}

// TestManyOtherKeys: the error stays short if the note has many long names.
func TestManyOtherKeys(t *testing.T) {
	var signers []note.Signer
	var last note.Verifier
	for i := range 8 {
		name := "venue.example/" + strings.Repeat(string(rune('a'+i)), 1000)
		secret, public, err := note.GenerateKey(rand.Reader, name)
		if err != nil {
			t.Fatal(err)
		}
		signer, err := note.NewSigner(secret)
		if err != nil {
			t.Fatal(err)
		}
		if last, err = note.NewVerifier(public); err != nil {
			t.Fatal(err)
		}
		if i < 7 {
			signers = append(signers, signer)
		}
	}
	signed, err := note.Sign(&note.Note{Text: checkpointText(signers[0].Name(), 0, sha256.Sum256(nil))}, signers...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewPolicy(last).Open(signed); err == nil || len(err.Error()) > 1200 || !strings.HasSuffix(err.Error(), ", and 2 more") {
		t.Error(err)
	}
}

// TestSignaturesInAnotherForm: the last digit of 68 bytes in base64 has two spare bits. Package note reads the same signature if they are
// set, and verify_receipt.py and the page /check refuse it.
func TestSignaturesInAnotherForm(t *testing.T) {
	signer, verifier := newSigner(t)
	signed, err := note.Sign(&note.Note{Text: checkpointText(signer.Name(), 0, sha256.Sum256(nil))}, signer)
	if err != nil {
		t.Fatal(err)
	}
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	last := len(signed) - len("=\n") - 1
	signed[last] = digits[strings.IndexByte(digits, signed[last])+1]
	if _, err := NewPolicy(verifier).Open(signed); err == nil || !strings.Contains(err.Error(), "usual form") {
		t.Error(err)
	}
}
