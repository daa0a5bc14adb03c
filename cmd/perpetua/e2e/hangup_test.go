package e2e

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestTheEndOfTheTerminal stops a venue as Ctrl-C does.
func TestTheEndOfTheTerminal(t *testing.T) {
	t.Parallel()
	// Under nohup, this process ignores the signal, and so would the venue. A process that handles it starts others that do not.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(handled) })
	v := newVenue(t)
	v.start()
	v.cmd.Process.Signal(syscall.SIGHUP)
	select {
	case <-v.exited:
	case <-time.After(patience):
		t.Fatalf("it goes on:\n%s", v.output)
	}
	if code := v.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("perpetua exited with %d:\n%s", code, v.output)
	}
	if _, err := os.Stat(filepath.Join(v.dir, "run.json")); !os.IsNotExist(err) {
		t.Errorf("run.json after a clean stop: %v", err)
	}
}
