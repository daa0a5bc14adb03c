package seal_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/seal"
)

func text(fill byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, seal.KeySize))
}

// kms returns the URL of a service that is its key.
func kms(fill byte) string {
	return "base64key://" + base64.URLEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 32))
}

// inFolder returns where the keys of a data folder are.
func inFolder(data string) seal.Options {
	return seal.Options{URL: "file://" + filepath.ToSlash(filepath.Join(data, seal.Folder)), Former: filepath.Join(data, filepath.FromSlash(seal.FormerFile))}
}

func opened(t *testing.T, o seal.Options) string {
	t.Helper()
	b, err := seal.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return b.KeyID()
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func missing(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there: %v", path, err)
	}
}

func TestMasterKeyFile(t *testing.T) {
	data := t.TempDir()
	at := inFolder(data)
	path := filepath.Join(data, seal.Folder, seal.File)
	if _, err := seal.Open(t.Context(), at); !errors.Is(err, seal.ErrNoKey) {
		t.Fatalf("no key and none may be made: %v, want ErrNoKey", err)
	}
	missing(t, filepath.Dir(path))
	at.Create = true
	first := opened(t, at)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key's file has mode %v (%v), want 0600", info.Mode(), err)
	}
	for _, at.Create = range []bool{true, false} {
		if again := opened(t, at); again != first {
			t.Fatal("the second start has another key")
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	with := at
	if with.Value = string(kept); opened(t, with) != first {
		t.Error("the same key in the environment is another")
	}
	with.Value = text(9)
	if _, err := seal.Open(t.Context(), with); err == nil {
		t.Error("another key in the environment is accepted beside the file")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Open(t.Context(), at); err == nil || !strings.Contains(err.Error(), "0644") {
		t.Errorf("a key that others can read: %v", err)
	}
	write(t, path, "x")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Open(t.Context(), at); err == nil {
		t.Error("a damaged key is accepted")
	}
}

func TestMasterKeyEnvironment(t *testing.T) {
	at := inFolder(t.TempDir())
	at.Create = true
	good := text(9)
	for _, at.Value = range []string{"x", good[:40], strings.TrimRight(good, "="), base64.StdEncoding.EncodeToString(make([]byte, 16))} {
		if _, err := seal.Open(t.Context(), at); err == nil || strings.Contains(err.Error(), at.Value+" ") {
			t.Errorf("the bad key %q: %v", at.Value, err)
		}
	}
	at.Value = good + "\n"
	opened(t, at)
	missing(t, strings.TrimPrefix(at.URL, "file://")) // a key from the environment is not written down
	at.KMS = kms(1)
	if _, err := seal.Open(t.Context(), at); err == nil {
		t.Error("the key comes from two places")
	}
}

func TestOfTwoWhoMakeAMasterKeyTheFirstCounts(t *testing.T) {
	for _, service := range []string{"", kms(1)} {
		at := inFolder(t.TempDir())
		at.Create, at.KMS = true, service
		var wg sync.WaitGroup
		var ids [8]string
		for i := range ids {
			wg.Go(func() { ids[i] = opened(t, at) })
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("there are the keys %v", ids)
			}
		}
	}
}

// TestTheKeyOfAnOlderVersionIsMoved goes through every point at which the move can be broken off.
func TestTheKeyOfAnOlderVersionIsMoved(t *testing.T) {
	for name, before := range map[string]struct{ former, kept string }{
		"before the move":      {text(3), ""},
		"between its two ends": {text(3), text(3) + "\n"},
		"after it":             {"", text(3) + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			at, kept := inFolder(data), filepath.Join(data, seal.Folder, seal.File)
			if before.former != "" {
				write(t, at.Former, before.former)
			}
			if before.kept != "" {
				write(t, kept, before.kept)
			}
			if id := opened(t, at); id != box(t, 3).KeyID() { // who only looks moves nothing
				t.Errorf("read is the key %s", id)
			}
			if before.kept == "" {
				missing(t, kept)
			}
			at.Move, at.Create = true, true
			for range 2 {
				if id := opened(t, at); id != box(t, 3).KeyID() {
					t.Errorf("moved is the key %s", id)
				}
				missing(t, filepath.Dir(at.Former))
				if content, err := os.ReadFile(kept); err != nil || string(content) != text(3)+"\n" {
					t.Errorf("kept is %q, %v", content, err)
				}
			}
		})
	}
	data := t.TempDir()
	at := inFolder(data)
	at.Move = true
	write(t, at.Former, text(3))
	write(t, filepath.Join(data, seal.Folder, seal.File), text(4))
	if _, err := seal.Open(t.Context(), at); err == nil {
		t.Error("one of two keys is taken")
	}
	if content, err := os.ReadFile(at.Former); err != nil || string(content) != text(3) {
		t.Errorf("the older is %q, %v", content, err)
	}
}

func TestAKeyManagementServiceWrapsTheMasterKey(t *testing.T) {
	data := t.TempDir()
	at := inFolder(data)
	at.KMS = kms(1)
	clear, wrapped := filepath.Join(data, seal.Folder, seal.File), filepath.Join(data, seal.Folder, seal.WrappedFile)
	if _, err := seal.Open(t.Context(), at); !errors.Is(err, seal.ErrNoKey) {
		t.Fatalf("no key and none may be made: %v, want ErrNoKey", err)
	}
	at.Create = true
	first := opened(t, at)
	missing(t, clear)
	if at.Create = false; opened(t, at) != first {
		t.Error("the second start has another key")
	}
	other := at
	other.KMS = kms(2)
	if _, err := seal.Open(t.Context(), other); err == nil || strings.Contains(err.Error(), kms(2)[12:]) {
		t.Errorf("another service: %v", err)
	}
	for _, other.KMS = range []string{"", "x", "nosuch://key", "base64key://short", "base64key://%zz", "base64key://", "secrets+base64key://", kms(1) + "?a=b"} {
		if _, err := seal.Open(t.Context(), other); err == nil || errors.Is(err, seal.ErrNoKey) {
			t.Errorf("the service %q: %v", other.KMS, err)
		}
		if err := seal.CheckKMS(other.KMS); err == nil || strings.Contains(err.Error(), "short") || strings.Contains(err.Error(), kms(1)[12:]) {
			t.Errorf("the URL %q: %v", other.KMS, err)
		}
	}
	other.KMS = "secrets+keeper+" + kms(1)
	if opened(t, other) != first {
		t.Error("with the prefix of the scheme, the key is another")
	}
	fresh := inFolder(t.TempDir())
	fresh.Create, fresh.KMS = true, "base64key://" // of the library a request for a random key, which is then lost
	if _, err := seal.Open(t.Context(), fresh); err == nil {
		t.Error("a master key is encrypted with a key that nobody has")
	}
	content, err := os.ReadFile(wrapped)
	if err != nil {
		t.Fatal(err)
	}
	write(t, wrapped, string(content[:20]))
	if _, err := seal.Open(t.Context(), at); err == nil {
		t.Error("half a key is accepted")
	}
}

// TestAVenueThatBeganWithoutAServiceGetsOne goes through every point at which that can be broken off.
func TestAVenueThatBeganWithoutAServiceGetsOne(t *testing.T) {
	data := t.TempDir()
	at := inFolder(data)
	at.Create = true
	first := opened(t, at)
	clear := filepath.Join(data, seal.Folder, seal.File)
	content, err := os.ReadFile(clear)
	if err != nil {
		t.Fatal(err)
	}
	at.Create, at.KMS = false, kms(1)
	for range 2 {
		if opened(t, at) != first {
			t.Error("with the service it is another key")
		}
		missing(t, clear)
		write(t, clear, string(content)) // as if it had ended before the key in the clear was removed
	}
	write(t, clear, text(8))
	if _, err := seal.Open(t.Context(), at); err == nil {
		t.Error("one of two keys is taken")
	}
}
