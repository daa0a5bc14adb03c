package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child of this process. On Linux the kernel kills it with its parent.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // closed when it has ended
}

// start starts a command in a new process group.
func start(command *exec.Cmd) (*process, error) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	endWithParent(command.SysProcAttr)
	p := &process{command: command, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel sends the signal when the thread that started the child ends, not only when the process does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // ProcessState tells how it ended
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	return p, nil
}

// running reports whether the process exists, paused or not.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends the process with SIGKILL, which works on a paused process, and waits for its end.
func (p *process) kill() {
	_ = p.command.Process.Kill() // it may have ended just now
	<-p.ended
}

// signal sends a signal to a living process.
func (p *process) signal(s syscall.Signal) error {
	if err := p.command.Process.Signal(s); err != nil {
		return fmt.Errorf("%v to %s: %w", s, p.command.Path, err)
	}
	return nil
}

// stopWithin bounds a graceful end.
const stopWithin = 30 * time.Second

// stop asks the process to end, and kills it if it does not.
func (p *process) stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopWithin):
		p.kill()
		return fmt.Errorf("%s did not end within %v", p.command.Path, stopWithin)
	}
}
