//go:build !linux

package main

import "syscall"

// endWithParent does nothing on this system: a child ends with its input, and a venue must be stopped by hand if this
// process is killed.
func endWithParent() *syscall.SysProcAttr { return nil }
