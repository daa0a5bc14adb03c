package main

import "syscall"

// endWithParent has the kernel stop a child when this process ends, even by SIGKILL, so that none stays behind.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
