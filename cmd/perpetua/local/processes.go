package local

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

// Process is a node that runs as a process of its own, the child of this one.
type Process struct {
	Name string
	dir  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// State says how the process has ended.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// StartProcess runs `perpetua serve` of this very binary. What it says is written line by line, with its name.
func StartProcess(name, dir string, env []string, out *Lines) (*Process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{Name: name, dir: dir, cmd: exec.Command(binary, "serve"), done: make(chan struct{})}
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

// Await waits until the node is ready, and returns where it is.
func (p *Process) Await(ctx context.Context) (RunFile, error) {
	for {
		r, ok, err := ReadRunFile(filepath.Join(p.dir, "run.json"))
		if err != nil {
			return RunFile{}, err
		}
		if ok && r.PID == p.cmd.Process.Pid {
			return r, nil
		}
		select {
		case <-p.done:
			return RunFile{}, fmt.Errorf("%s ended before it was ready: %v", p.Name, p.cmd.ProcessState)
		case <-ctx.Done():
			return RunFile{}, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stopWithin is how long a node may take to drain.
const stopWithin = 30 * time.Second

// Stop asks the process to drain, and ends it if it does not.
func (p *Process) Stop() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.Name, err)
	}
	select {
	case <-p.done:
	case <-time.After(stopWithin):
		_ = p.cmd.Process.Kill() // it may have ended just now
		<-p.done
		return fmt.Errorf("%s did not stop within %v and was killed", p.Name, stopWithin)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s: %v", p.Name, p.cmd.ProcessState)
	}
	return nil
}

// Lines writes what several processes say to one place, a line at a time.
type Lines struct {
	mu sync.Mutex
	w  io.Writer
}

// NewLines returns lines that are written to w.
func NewLines(w io.Writer) *Lines { return &Lines{w: w} }

// copy writes each line that is read with a name before it, until the end.
func (l *Lines) copy(name string, from io.Reader) {
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
