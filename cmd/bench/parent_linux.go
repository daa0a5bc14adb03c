package main

import "syscall"

// endWithParent makes the kernel stop a child when this process ends, even if it is killed.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
