package postgres

import "syscall"

// endWithParent has the kernel ask the child for a fast shutdown when this
// process ends, even by SIGKILL, so that no orphan stays.
func endWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = fastShutdown }
