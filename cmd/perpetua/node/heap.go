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
	quietGrowth = 32 << 20 // where next to nothing is allocated
	leastGrowth = 64 << 20
	usualGrowth = 256 << 20 // where the memory's size is not known
	mostGrowth  = 768 << 20
	heapLook    = 500 * time.Millisecond
	heapLooks   = 10 // for which what is allocated may be kept: five seconds
)

// heapGrowth is how much the heap may grow by at most: a thirty-second part of the memory that the process may use, within
// bounds, since several nodes and a database may share a machine.
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

// heapPace says by how much the heap may grow: by what was allocated in the last seconds, so that it is collected every few
// seconds, however busy the node is. What would be gained by waiting longer is next to nothing, and the memory is the
// machine's: a node that uploads or idles is not as large as one that matches at full speed.
type heapPace struct {
	most      uint64            // bytes
	allocated [heapLooks]uint64 // bytes since the process began, at the last looks in turn
	looks     int
}

// growth returns it at a look, in bytes.
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

// paceCollector has the garbage collector wait until the heap has grown by what heapPace says or by its own size, whichever
// is more, until the context ends. Left to itself it waits for the second only, and so a node whose live data is a few
// megabytes collects dozens of times a second under load, for a good part of its processor time. It does nothing where
// GOGC says how the operator wants it.
func paceCollector(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		return nil
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
			return nil
		case <-tick.C:
		}
	}
}
