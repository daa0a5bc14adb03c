package local

import "syscall"

// endWithParent makes the kernel send SIGTERM to a child when this process ends, even if it is killed.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }
