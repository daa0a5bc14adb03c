package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nodeUse is what a node uses.
type nodeUse struct {
	resident  int64 // bytes of its process, 0 where the system does not tell
	live      int64 // bytes on heap and stacks after a collection
	processor time.Duration
}

// String shows the memory.
func (u nodeUse) String() string { return fmt.Sprintf("%d and %d MB", u.resident>>20, u.live>>20) }

// use has the node collect its garbage and returns what it uses then. Its debugging listener must be open.
func (v *venue) use() nodeUse {
	v.t.Helper()
	resident := residentOf(v.cmd.Process.Pid) // before the collection
	for range 2 {                             // what is in a pool outlives one collection
		a, err := http.Get(v.Debug + "heap?gc=1")
		if err != nil {
			v.t.Fatal(err)
		}
		a.Body.Close()
	}
	s := v.scrape()
	return nodeUse{resident, int64(s.value("go_memstats_heap_inuse_bytes") + s.value("go_memstats_stack_inuse_bytes")),
		time.Duration(s.value("process_cpu_seconds_total") * float64(time.Second))}
}

// residentOf returns how much memory of a process is resident, 0 where the system does not tell.
func residentOf(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	kilobytes, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}

// allowFiles lets this process, and those that it starts, have so many files open.
func allowFiles(t *testing.T, files uint64) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur, limit.Max = max(limit.Cur, files), max(limit.Max, files)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatalf("%d files cannot be open at once: %v; ulimit -Hn tells how many may", files, err)
	}
}
