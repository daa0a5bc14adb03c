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

// scripted returns a cluster in a folder whose initdb is a shell script. The script is called with the new data directory as $2.
func scripted(t *testing.T, dir, initdb string) *cluster {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "initdb"), []byte("#!/bin/sh\n"+initdb), 0o700); err != nil {
		t.Fatal(err)
	}
	user := account{name: strconv.Itoa(os.Getuid()), uid: os.Getuid(), gid: os.Getgid()}
	return &cluster{account: user, binaries: dir, base: dir, data: filepath.Join(dir, "data"), logger: slog.New(slog.DiscardHandler)}
}

// stopInitdb begins an initialization, stops it when initdb has written to the fifo dir/begun, and returns the error.
func stopInitdb(t *testing.T, dir, initdb string) error {
	t.Helper()
	begun := filepath.Join(dir, "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = os.ReadFile(begun)
		cancel()
	}()
	_, err := scripted(t, dir, initdb).initialize(ctx)
	return err
}

// TestStopDuringInitdb: the end of the context is the error, and not the signal that ends initdb, so that Ctrl-C is no failure.
func TestStopDuringInitdb(t *testing.T) {
	dir := t.TempDir()
	if err := stopInitdb(t, dir, "echo begun > "+filepath.Join(dir, "begun")+"; exec sleep 600"); !errors.Is(err, context.Canceled) {
		t.Errorf("a stop during initdb: %v", err)
	}
}

// TestInitdbOutlivesItsProcess: the initdb of a killed process removes its folder while that of the next process works. No folder is left.
func TestInitdbOutlivesItsProcess(t *testing.T) {
	dir := t.TempDir()
	first, begun := filepath.Join(dir, "first"), filepath.Join(dir, "begun")
	if err := stopInitdb(t, dir, `mkdir "$2" && echo "$2" > `+first+` && echo begun > `+begun+`; exec sleep 600`); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c := scripted(t, dir, `mkdir "$2" && rm -rf "$(cat `+first+`)"`)
	password, err := c.initialize(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(c.data, passwordFile)); err != nil || string(text) != password+"\n" {
		t.Errorf("the password is %q, not %q, %v", text, password, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "new*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
