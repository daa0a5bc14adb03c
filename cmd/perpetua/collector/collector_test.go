package collector

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
		"none\n": math.MaxUint64,
		"":       math.MaxUint64,
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

// TestHeapPace: the heap may grow by what five seconds allocate, within bounds, and shrinks again once less is allocated.
func TestHeapPace(t *testing.T) {
	const mib = 1 << 20
	p, total := heapPace{most: 768 * mib}, uint64(500*mib) // allocated while the node started
	look := func(each uint64, looks int) (growth uint64) {
		for range looks {
			total += each
			growth = p.growth(total)
		}
		return growth
	}
	for _, test := range []struct{ each, want uint64 }{{0, 32 * mib}, {1 * mib, 32 * mib}, {20 * mib, 200 * mib}, {500 * mib, 768 * mib}, {5 * mib, 50 * mib}, {0, 32 * mib}} {
		if got := look(test.each, heapLooks); got != test.want {
			t.Errorf("with %d MiB a look the heap grows by %d MiB, want %d", test.each/mib, got/mib, test.want/mib)
		}
	}
	if got := look(200*mib, 2); got < 400*mib {
		t.Errorf("a second after a burst began the heap grows by %d MiB", got/mib)
	}
}
