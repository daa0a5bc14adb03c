package main

import "syscall"

// endWithParent makes the kernel kill a child when this process ends, even if it is killed. The signal is SIGKILL
// because a paused child does not react to SIGTERM.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
