package node

import (
	"strings"
	"testing"
)

// TestConnectionsLeaveFiles: a small limit of open files leaves half of them for the log and the stores, and a large one 512.
func TestConnectionsLeaveFiles(t *testing.T) {
	for files, want := range map[uint64]int{128: 64, 1024: 512, 20000: 19488, 1 << 63: 1<<31 - 1} {
		if got := connectionsOf(files); got != want {
			t.Errorf("of %d files, %d are left to clients, want %d", files, got, want)
		}
	}
}

// TestTooFewOpenFiles: a node does not start if few clients could take the files that its log needs.
func TestTooFewOpenFiles(t *testing.T) {
	if err := checkFiles(64); err == nil || !strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("with 64 files: %v", err)
	}
	if err := checkFiles(128); err != nil {
		t.Errorf("with 128 files: %v", err)
	}
}
