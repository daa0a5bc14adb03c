package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopOrphan stops a server that an earlier process left running on the data
// directory. Stopping and starting anew is simpler than adopting: the server is
// then always our child, with our settings.
func (c *cluster) stopOrphan(ctx context.Context) error {
	lockFile := filepath.Join(c.data, "postmaster.pid")
	text, err := os.ReadFile(lockFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 || !c.isServer(ctx, pid) {
		// The process is gone, or its number belongs to another by now. In
		// the second case Postgres would refuse to start because of this file.
		return removeFile(lockFile)
	}
	c.logger.Warn("stopping the embedded Postgres that an earlier run left behind", "pid", pid)
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for _, signal := range []syscall.Signal{fastShutdown, immediateShutdown} {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop process %d: %w", pid, err)
		}
		for limit := time.Now().Add(stopLimit); time.Now().Before(limit); {
			if !c.isServer(ctx, pid) {
				return removeFile(lockFile)
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("stop process %d: %w", pid, ctx.Err())
			case <-pause.C:
			}
		}
	}
	return fmt.Errorf("process %d, a Postgres on %s, does not end", pid, c.data)
}

// isServer says whether the process is a Postgres whose data directory is ours.
func (c *cluster) isServer(ctx context.Context, pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	if _, err := os.Stat("/proc/self/cwd"); err != nil {
		// Without /proc: the name alone. The pid file is in our directory.
		out, err := exec.CommandContext(ctx, "ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
		return err == nil && strings.Contains(string(out), "postgres")
	}
	// A postmaster's working directory is its data directory. A process that
	// has ended and is not collected yet has none.
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return false
	}
	data, err := filepath.EvalSymlinks(c.data)
	if err != nil || dir != data {
		return false
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err == nil && strings.HasPrefix(string(name), "postgres")
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
