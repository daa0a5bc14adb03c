package seal_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/seal"
)

var place = seal.AssociatedData{Owner: "operator", Field: "password_hash", Type: "user"}

func box(t *testing.T, fill byte) *seal.Box {
	t.Helper()
	b, err := seal.New(bytes.Repeat([]byte{fill}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSealAndOpen(t *testing.T) {
	b := box(t, 1)
	for _, plain := range []string{"", "x", strings.Repeat("long", 1000)} {
		sealed, err := b.Seal([]byte(plain), place)
		if err != nil {
			t.Fatal(err)
		}
		again, err := b.Seal([]byte(plain), place)
		if err != nil || bytes.Equal(sealed, again) {
			t.Errorf("sealing %d bytes twice gives the same ciphertext (%v)", len(plain), err)
		}
		got, err := b.Open(sealed, place)
		if err != nil || string(got) != plain {
			t.Errorf("opened %d bytes as %q, %v", len(plain), got, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	b := box(t, 1)
	sealed, err := b.Seal([]byte("secret"), place)
	if err != nil {
		t.Fatal(err)
	}
	var wrong *seal.WrongKeyError
	if _, err := box(t, 2).Open(sealed, place); !errors.As(err, &wrong) {
		t.Errorf("another key: %v, want a WrongKeyError", err)
	}
	for i := range sealed {
		flipped := bytes.Clone(sealed)
		flipped[i] ^= 1
		if _, err := b.Open(flipped, place); err == nil {
			t.Errorf("byte %d flipped: opened", i)
		}
		if _, err := b.Open(sealed[:i], place); err == nil {
			t.Errorf("cut to %d bytes: opened", i)
		}
	}
	for _, other := range []seal.AssociatedData{
		{Owner: "auditor", Field: "password_hash", Type: "user"},
		{Owner: "operator", Field: "private", Type: "user"},
		{Owner: "operator", Field: "password_hash", Type: "signing_key"},
		{Owner: "operatorpassword_hash", Type: "user"},
	} {
		if _, err := b.Open(sealed, other); !errors.Is(err, seal.ErrDamaged) {
			t.Errorf("at %+v: %v, want ErrDamaged", other, err)
		}
	}
}

func TestDerivedKeysDiffer(t *testing.T) {
	b := box(t, 1)
	if bytes.Equal(b.Derive("a"), b.Derive("b")) || bytes.Equal(b.Derive("a"), box(t, 2).Derive("a")) {
		t.Error("two purposes or two master keys give the same key")
	}
	if !bytes.Equal(b.MAC([]byte("x")), box(t, 1).MAC([]byte("x"))) || bytes.Equal(b.MAC([]byte("x")), b.MAC([]byte("y"))) {
		t.Error("the MAC does not depend on key and data alone")
	}
}
