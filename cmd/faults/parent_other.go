//go:build !linux

package main

import "syscall"

// endWithParent does nothing on this system: children outlive a killed parent.
func endWithParent(*syscall.SysProcAttr) {}
