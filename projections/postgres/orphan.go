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

// stopOrphan stops a server that an earlier process left running on the data directory. That is simpler than adopting
// the server: the server is then always a child of this process, with the current settings.
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
		if !hasProc() && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return nil // Postgres looks for remaining processes and refuses to start if there are any
		}
		if err := c.stopChildren(ctx); err != nil {
			return err
		}
		// The process is gone, or another process has its number. In the second case Postgres would refuse to start
		// because of this file.
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

// stopChildren ends the children of a postmaster that was killed. They end when they notice its death, which may take
// long while they work. Until that they write to the files of the next server.
func (c *cluster) stopChildren(ctx context.Context) error {
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for start := time.Now(); ; {
		children := c.children(ctx)
		if len(children) == 0 {
			return nil
		}
		signal := immediateShutdown
		if waited := time.Since(start); waited > 2*stopLimit {
			return fmt.Errorf("processes %v, of a Postgres on %s that was killed, do not end", children, c.data)
		} else if waited > stopLimit {
			signal = syscall.SIGKILL
		}
		for _, pid := range children {
			if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("stop process %d: %w", pid, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stop processes %v: %w", children, ctx.Err())
		case <-pause.C:
		}
	}
}

// children returns the Postgres processes in the data directory. It returns none if /proc does not exist.
func (c *cluster) children(ctx context.Context) (pids []int) {
	folders, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	for _, folder := range folders {
		if pid, err := strconv.Atoi(filepath.Base(folder)); err == nil && c.isServer(ctx, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isServer reports whether the process is a Postgres in the data directory.
func (c *cluster) isServer(ctx context.Context, pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	if !hasProc() {
		// Without /proc, check only the name. The pid file is in the data directory.
		out, err := exec.CommandContext(ctx, "ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
		return err == nil && strings.Contains(string(out), "postgres")
	}
	// A postmaster's working directory is its data directory. A process that has ended and was not waited for has none.
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

func hasProc() bool {
	_, err := os.Stat("/proc/self/cwd")
	return err == nil
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
