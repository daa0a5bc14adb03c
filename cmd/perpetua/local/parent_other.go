//go:build !linux

package local

import "syscall"

// endWithParent does nothing here: children outlive a killed parent until somebody stops them.
func endWithParent(*syscall.SysProcAttr) {}
