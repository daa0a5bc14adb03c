//go:build !linux

package local

import "syscall"

// endWithParent does nothing on other systems: children outlive a killed parent.
func endWithParent(*syscall.SysProcAttr) {}
