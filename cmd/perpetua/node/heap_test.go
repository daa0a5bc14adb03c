package node

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// TestMemoryOf reads what a kernel says of the memory.
func TestMemoryOf(t *testing.T) {
	for text, want := range map[string]uint64{
		"MemTotal:       24684096 kB\nMemFree: 1 kB\n": 24684096 << 10,
		"536870912\n": 536870912,
		"max\n":       math.MaxUint64,
		"":            math.MaxUint64,
	} {
		file := filepath.Join(t.TempDir(), "memory")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := memoryOf(file); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
	if got := memoryOf(filepath.Join(t.TempDir(), "none")); got != math.MaxUint64 {
		t.Errorf("no file limits the memory to %d", got)
	}
	if got := heapGrowth(); got < leastGrowth || got > mostGrowth {
		t.Errorf("the heap grows by %d", got)
	}
}
