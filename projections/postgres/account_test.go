package postgres

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWriteFileFollowsNoLink puts a link where root is about to write a file into the account's own folder.
func TestWriteFileFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "password.tmp")
	if err := os.WriteFile(victim, []byte("root's"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	a := account{uid: os.Getuid(), gid: os.Getgid(), other: true}
	if err := a.writeFile(path, "secret"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "root's" {
		t.Errorf("the file behind the link holds %q, %v", text, err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the new file is %v, %v", info, err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "secret" {
		t.Errorf("the new file holds %q, %v", text, err)
	}
}
