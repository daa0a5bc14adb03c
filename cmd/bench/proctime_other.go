//go:build !linux

package main

import "time"

// processorTimeOf is available on Linux only.
func processorTimeOf(int) (time.Duration, bool) { return 0, false }

// processorTimeBelow is available on Linux only.
func processorTimeBelow(int) time.Duration { return 0 }
