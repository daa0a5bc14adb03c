package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// processorTimeOf returns what another process has used of the processors so far, in the kernel's hundredths of a
// second.
func processorTimeOf(pid int) (used time.Duration, ok bool) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	_, after, found := bytes.Cut(content, []byte(") ")) // behind the name, which may hold anything
	fields := bytes.Fields(after)
	if !found || len(fields) < 13 {
		return 0, false
	}
	for _, f := range fields[11:13] { // user and system
		ticks, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, false
		}
		used += time.Duration(ticks) * 10 * time.Millisecond
	}
	return used, true
}
