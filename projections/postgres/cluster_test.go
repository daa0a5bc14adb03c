package postgres

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// TestStopDuringInitdb: the end of the context is the error, and not the signal that ends initdb, so that Ctrl-C is no failure.
func TestStopDuringInitdb(t *testing.T) {
	dir := t.TempDir()
	begun := filepath.Join(dir, "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	initdb := "#!/bin/sh\necho begun > " + begun + "\nexec sleep 600\n"
	if err := os.WriteFile(filepath.Join(dir, "initdb"), []byte(initdb), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = os.ReadFile(begun) // returns when initdb has written to it
		cancel()
	}()
	user := account{name: strconv.Itoa(os.Getuid()), uid: os.Getuid(), gid: os.Getgid()}
	c := &cluster{account: user, binaries: dir, base: dir, data: filepath.Join(dir, "data"), logger: slog.New(slog.DiscardHandler)}
	if _, err := c.initialize(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a stop during initdb: %v", err)
	}
}
