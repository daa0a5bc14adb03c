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

// Process is a node in a child process.
type Process struct {
	Name string
	dir  string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// State returns the exit status of the ended process.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// StartProcess runs `perpetua serve` with the binary of this process. It writes the node's output line by line, with
// the node's name.
func StartProcess(name, dir string, env []string, out *Lines) (*Process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{Name: name, dir: dir, cmd: exec.Command(binary, "serve"), done: make(chan struct{})}
	p.cmd.Env = env
	// A separate process group keeps the terminal's Ctrl-C from the node: this process stops it in the right order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(p.cmd.SysProcAttr)
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		// The kernel sends the signal when the thread that started the child ends, not only when the process does.
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

// Await waits until the node is ready and returns its run.json.
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

// stopWithin bounds the time that a node has to drain.
const stopWithin = 30 * time.Second

// Stop asks the process to drain, and kills it if it does not end in time.
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

// Lines merges the output of several processes, line by line.
type Lines struct {
	mu sync.Mutex
	w  io.Writer
}

// NewLines returns lines written to w.
func NewLines(w io.Writer) *Lines { return &Lines{w: w} }

// copy writes each line from a reader, prefixed with a name, until the reader ends.
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
