package node

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// The bounds of how much the heap may grow by before it is collected, if it doesn't hold more than that, and how often
// it is looked at.
const (
	leastGrowth = 64 << 20
	usualGrowth = 256 << 20 // where the memory's size is not known
	mostGrowth  = 768 << 20
	heapLook    = 500 * time.Millisecond
)

// heapGrowth is a thirty-second part of the memory that the process may use, within bounds: several nodes and a
// database may share a machine.
func heapGrowth() uint64 {
	memory := min(memoryOf("/proc/meminfo"), memoryOf("/sys/fs/cgroup/memory.max"), uint64(debug.SetMemoryLimit(-1)))
	if memory >= math.MaxInt64 {
		return usualGrowth
	}
	return min(max(memory/32, leastGrowth), mostGrowth)
}

// memoryOf reads the first number of a file that tells how much memory there is, in bytes or, if it says so, in kB.
// What can't be read limits nothing.
func memoryOf(file string) uint64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return math.MaxUint64
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(strings.TrimPrefix(line, "MemTotal:"))
	if len(fields) == 0 {
		return math.MaxUint64
	}
	n, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil {
		return math.MaxUint64 // "max"
	}
	if len(fields) > 1 && fields[1] == "kB" {
		n <<= 10
	}
	return n
}

// paceCollector has the garbage collector wait until the heap has grown by heapGrowth or by its own size, whichever is
// more, until the context ends. Left to itself it waits for the second only, and so a node whose live data is a few
// megabytes collects dozens of times a second under load, for a good part of its processor time. It does nothing where
// GOGC says how the operator wants it.
func paceCollector(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	growth := heapGrowth()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(heapLook)
	defer tick.Stop()
	for set := uint64(100); ; {
		metrics.Read(live)
		if want := max(100, growth*100/max(live[0].Value.Uint64(), 8<<20)); want > set+set/4 || want < set-set/4 {
			set = want
			debug.SetGCPercent(int(set))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
