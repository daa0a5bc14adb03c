package node

import "testing"

// TestConnectionsLeaveFiles: a small limit of open files leaves half of them for the log and the stores, and a large one 512.
func TestConnectionsLeaveFiles(t *testing.T) {
	for files, want := range map[uint64]int{128: 64, 1024: 512, 20000: 19488, 1 << 63: 1<<31 - 1} {
		if got := connectionsOf(files); got != want {
			t.Errorf("of %d files, %d are left to clients, want %d", files, got, want)
		}
	}
}
