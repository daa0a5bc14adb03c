// Package collector paces the garbage collector by the rate at which a process allocates.
package collector

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// The bounds for the growth of the heap between two collections, which apply while the live heap is smaller, and the
// interval at which the heap is checked.
const (
	quietGrowth = 32 << 20 // if hardly anything is allocated
	leastGrowth = 64 << 20
	usualGrowth = 256 << 20 // if the size of the memory is unknown
	mostGrowth  = 768 << 20
	heapLook    = 500 * time.Millisecond
	heapLooks   = 10 // number of checks in the window of recent allocation: five seconds
)

// heapGrowth returns the largest growth of the heap in bytes: 1/32 of the memory that the process may use, within
// bounds, since several nodes and a database may share a machine.
func heapGrowth() uint64 {
	memory := min(memoryOf("/proc/meminfo"), cgroupLimit(), uint64(debug.SetMemoryLimit(-1)))
	if memory >= math.MaxInt64 {
		return usualGrowth
	}
	return min(max(memory/32, leastGrowth), mostGrowth)
}

// cgroupLimit returns the memory limit of the process's control group, which a container or a systemd unit sets. Without a limit, the
// result is the largest number.
func cgroupLimit() uint64 {
	limit, err := memlimit.FromCgroup()
	if err != nil {
		return math.MaxUint64
	}
	return limit
}

// memoryOf reads the amount of memory in kB from the first line of /proc/meminfo. If it cannot be read, the result is the largest
// number.
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
		return math.MaxUint64
	}
	return n << 10
}

// heapPace computes the growth of the heap between two collections: the number of bytes allocated in the last five
// seconds. So the heap is collected every few seconds at any load. A longer interval would gain almost nothing, and
// memory is shared: a node that idles should not be as large as one that matches at full speed.
type heapPace struct {
	most      uint64            // bytes
	allocated [heapLooks]uint64 // total bytes allocated by the process, at the last checks; a ring buffer
	looks     int
}

// growth adds a check with the total bytes allocated, and returns the growth in bytes.
func (p *heapPace) growth(allocated uint64) uint64 {
	if p.looks == 0 {
		for i := range p.allocated {
			p.allocated[i] = allocated
		}
	}
	recently := allocated - p.allocated[p.looks%heapLooks]
	p.allocated[p.looks%heapLooks] = allocated
	p.looks++
	return min(max(recently, quietGrowth), p.most)
}

// Pace sets the garbage collector's pace until the context ends: the heap may grow by the bytes from heapPace or by the size of
// the live heap, if that is larger. By default Go uses only the latter, so a process with a few megabytes of live data, like a
// node under load or a verification, collects dozens of times a second, at a high cost in processor time. Pace does nothing if
// the operator has set GOGC.
func Pace(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	pace := heapPace{most: heapGrowth()}
	heap := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	tick := time.NewTicker(heapLook)
	defer tick.Stop()
	for set := uint64(100); ; {
		metrics.Read(heap)
		growth := pace.growth(heap[1].Value.Uint64())
		if want := max(100, growth*100/max(heap[0].Value.Uint64(), 8<<20)); want > set+set/4 || want < set-set/4 {
			set = want
			debug.SetGCPercent(int(set))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
