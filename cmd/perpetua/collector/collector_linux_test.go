package collector

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLimitOfAControlGroup: the heap of a process in a small group grows little, also if the group has no file system of its own,
// as that of a systemd unit.
func TestLimitOfAControlGroup(t *testing.T) {
	const inside = "PERPETUA_TEST_IN_CONTROL_GROUP"
	if os.Getenv(inside) != "" {
		fmt.Println("growth", heapGrowth())
		return
	}
	group, limit := groupOfTests(t)
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skip("control groups can't be created here: ", err)
	}
	defer os.Remove(group)
	if err := os.WriteFile(filepath.Join(group, limit), []byte("536870912"), 0o600); err != nil {
		t.Skip("the memory of control groups can't be limited here: ", err)
	}
	cmd := exec.Command("sh", "-c", `echo $$ > "$1" && exec "$2" -test.run "^$3\$" -test.v`, "sh",
		filepath.Join(group, "cgroup.procs"), os.Args[0], t.Name())
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if want := fmt.Sprintln("growth", leastGrowth); !strings.Contains(string(out), want) {
		t.Errorf("with 512 MiB, want %sgot %s", want, out)
	}
}

// groupOfTests returns a path for a new control group within the one of this process, and the name of its limit.
func groupOfTests(t *testing.T) (path, limit string) {
	t.Helper()
	content, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip(err)
	}
	name := fmt.Sprint("perpetua-test-", os.Getpid())
	for line := range strings.Lines(string(content)) {
		switch fields := strings.SplitN(strings.TrimSpace(line), ":", 3); {
		case len(fields) < 3:
		case fields[1] == "memory":
			return filepath.Join("/sys/fs/cgroup/memory", fields[2], name), "memory.limit_in_bytes"
		case fields[0] == "0":
			path, limit = filepath.Join("/sys/fs/cgroup", fields[2], name), "memory.max"
		}
	}
	if path == "" {
		t.Skip("no control group limits memory here")
	}
	return path, limit
}
