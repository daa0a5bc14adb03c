package seal_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/seal"
)

var place = seal.Place{Owner: "operator", Field: "password_hash", Type: "user"}

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
	for _, other := range []seal.Place{
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

func TestMasterKeyFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, filepath.FromSlash(seal.File))
	if _, err := seal.Open(seal.Options{Folder: folder}); !errors.Is(err, seal.ErrNoKey) {
		t.Fatalf("no key and none may be made: %v, want ErrNoKey", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("a key was made although none may be")
	}
	first, err := seal.Open(seal.Options{Folder: folder, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key's file has mode %v (%v), want 0600", info.Mode(), err)
	}
	for _, create := range []bool{true, false} {
		again, err := seal.Open(seal.Options{Folder: folder, Create: create})
		if err != nil || again.KeyID() != first.KeyID() {
			t.Fatalf("the second start has another key (%v)", err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := seal.Open(seal.Options{Folder: folder, Value: string(text)}); err != nil || b.KeyID() != first.KeyID() {
		t.Errorf("the same key in the environment: %v", err)
	}
	other := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, seal.KeySize))
	if _, err := seal.Open(seal.Options{Folder: folder, Value: other}); err == nil {
		t.Error("another key in the environment is accepted beside the file")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Open(seal.Options{Folder: folder}); err == nil || !strings.Contains(err.Error(), "0644") {
		t.Errorf("a key that others can read: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%d files beside the key (%v)", len(entries), err)
	}
}

func TestMasterKeyEnvironment(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, seal.KeySize))
	for _, value := range []string{"x", good[:40], strings.TrimRight(good, "="), base64.StdEncoding.EncodeToString(make([]byte, 16))} {
		if _, err := seal.Open(seal.Options{Value: value}); err == nil || strings.Contains(err.Error(), value+" ") {
			t.Errorf("the bad key %q: %v", value, err)
		}
	}
	if _, err := seal.Open(seal.Options{Value: good + "\n"}); err != nil {
		t.Errorf("a good key: %v", err)
	}
	if _, err := seal.Open(seal.Options{}); !errors.Is(err, seal.ErrNoKey) {
		t.Errorf("no key anywhere: %v, want ErrNoKey", err)
	}
	folder := t.TempDir()
	if _, err := seal.Open(seal.Options{Folder: folder, Value: good, Create: true}); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 0 {
		t.Error("a key from the environment was written to the folder")
	}
}
