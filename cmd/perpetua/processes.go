package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a node that runs as a process of its own, the child of this one.
type process struct {
	name string
	dir  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// startProcess runs `perpetua serve` of this very binary. What it says is written line by line, with its name.
func startProcess(name, dir string, env []string, out *lines) (*process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: name, dir: dir, cmd: exec.Command(binary, "serve"), done: make(chan struct{})}
	p.cmd.Env = env
	// In a group of its own it does not hear the terminal's Ctrl-C: its parent stops it when its time has come.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(p.cmd.SysProcAttr)
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		// The kernel takes the end of the thread that started a child for the end of the parent.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		out.copy(name, pipe)
		_ = p.cmd.Wait() // its exit code is in ProcessState
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// await waits until the node is ready, and returns where it is.
func (p *process) await(ctx context.Context) (runFile, error) {
	for {
		r, ok, err := readRunFile(filepath.Join(p.dir, "run.json"))
		if err != nil {
			return runFile{}, err
		}
		if ok && r.PID == p.cmd.Process.Pid {
			return r, nil
		}
		select {
		case <-p.done:
			return runFile{}, fmt.Errorf("%s ended before it was ready: %v", p.name, p.cmd.ProcessState)
		case <-ctx.Done():
			return runFile{}, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stopWithin is how long a node may take to drain.
const stopWithin = 30 * time.Second

// stop asks the process to drain, and ends it if it does not.
func (p *process) stop() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.done:
	case <-time.After(stopWithin):
		_ = p.cmd.Process.Kill() // it may have ended just now
		<-p.done
		return fmt.Errorf("%s did not stop within %v and was killed", p.name, stopWithin)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s: %v", p.name, p.cmd.ProcessState)
	}
	return nil
}

// lines writes what several processes say to one place, a line at a time.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

// copy writes each line that is read with a name before it, until the end.
func (l *lines) copy(name string, from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			l.mu.Lock()
			fmt.Fprintf(l.w, "%-11s | %s\n", name, strings.TrimSuffix(line, "\n"))
			l.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}
