//go:build !linux

package postgres

import "syscall"

// endWithParent does nothing here: a kill of this process leaves the server as
// an orphan, which the next start stops.
func endWithParent(*syscall.SysProcAttr) {}
