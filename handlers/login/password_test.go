package login

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/seal"
)

func TestHashPassword(t *testing.T) {
	hash := hashPassword("right", costOf(0))
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=65536,t=3,p=4$") {
		t.Errorf("the hash is %s", hash)
	}
	for password, want := range map[string]bool{"right": true, "Right": false, "": false} {
		if got, err := verifyPassword(hash, password); got != want || err != nil {
			t.Errorf("%q: %v, %v", password, got, err)
		}
	}
	if first, second := hashPassword("x", cheap), hashPassword("x", cheap); first == second {
		t.Error("two hashes of one password are equal")
	}
}

func TestUnknownUsersCostTheSame(t *testing.T) {
	known := newDesk(t).memory
	h := New(Options{Identity: known, Now: time.Now})
	c, _, hash, err := parsePHC(h.decoy)
	if err != nil || c != standard || len(hash) != hashSize {
		t.Errorf("the decoy costs %+v, %v", c, err)
	}
	if right, err := verifyPassword(newHandler(Options{Identity: known, Now: time.Now}, cheap).decoy, "x"); right || err != nil {
		t.Errorf("against the decoy: %v, %v", right, err)
	}
}

// TestKnownHash holds our reading of the PHC form against one that the reference implementation made.
func TestKnownHash(t *testing.T) {
	const phc = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if ok, err := verifyPassword(phc, "password"); !ok || err != nil {
		t.Errorf("the reference hash does not verify: %v, %v", ok, err)
	}
}

func TestParsePHCRefuses(t *testing.T) {
	good := hashPassword("x", cheap)
	for _, phc := range []string{"", "x", strings.Replace(good, "argon2id", "argon2i", 1), strings.Replace(good, "v=19", "v=16", 1),
		strings.Replace(good, "m=8", "m=99999999", 1), strings.Replace(good, "m=8", "m=0", 1), strings.Replace(good, "t=1", "t=0", 1),
		strings.Replace(good, "p=1", "p=0", 1), strings.Replace(good, "t=1", "t=-1", 1), good + "$", good[:len(good)-30], "$" + good} {
		if _, _, _, err := parsePHC(phc); err == nil {
			t.Errorf("%q is accepted", phc)
		}
	}
}

func FuzzParsePHC(f *testing.F) {
	f.Add(hashPassword("x", cheap))
	f.Fuzz(func(t *testing.T, phc string) {
		c, salt, hash, err := parsePHC(phc)
		if err == nil && (c.memory > 1<<20 || c.passes > 16 || c.lanes == 0 || len(salt) < 8 || len(hash) > 64) {
			t.Errorf("%q asks for %+v", phc, c)
		}
	})
}

func TestSealPassword(t *testing.T) {
	box, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := SealPassword(box, "user", "right", 8)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("argon2")) {
		t.Error("the hash stands in the clear")
	}
	hash, err := box.Open(sealed, passwordData("user"))
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := verifyPassword(string(hash), "right"); !ok || err != nil {
		t.Errorf("the sealed hash does not verify: %v", err)
	}
	if _, err := box.Open(sealed, passwordData("another")); err == nil {
		t.Error("the hash can be moved to another user")
	}
}
