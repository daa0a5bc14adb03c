package local

import "syscall"

// endWithParent has the kernel ask a child to stop when this process ends, even by SIGKILL.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }
