//go:build !linux

package kafkatest

import "syscall"

func endWithParent(*syscall.SysProcAttr) {}
