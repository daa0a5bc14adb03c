package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestTheEndOfTheTerminal stops a venue as Ctrl-C does.
func TestTheEndOfTheTerminal(t *testing.T) {
	t.Parallel()
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
