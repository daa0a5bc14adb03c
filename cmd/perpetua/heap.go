package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// heapFloor is how much the heap may grow by before it is collected, if it doesn't hold more than that.
	heapFloor = 256 << 20
	heapLook  = 500 * time.Millisecond
)

// paceCollector has the garbage collector wait until the heap has grown by heapFloor or by its own size, whichever is
// more, until the context ends. Left to itself it waits for the second only, and so a node whose live data is a few
// megabytes collects dozens of times a second under load, for a good part of its processor time. It does nothing where
// GOGC says how the operator wants it.
func paceCollector(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(heapLook)
	defer tick.Stop()
	for set := uint64(100); ; {
		metrics.Read(live)
		if want := max(100, heapFloor*100/max(live[0].Value.Uint64(), 8<<20)); want > set+set/4 || want < set-set/4 {
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
