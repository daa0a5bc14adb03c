package main

import "syscall"

// endWithParent has the kernel kill a child when this process ends, even by SIGKILL. A paused child would not heed SIGTERM.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
