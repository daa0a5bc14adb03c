//go:build !linux

package main

import "time"

// processorTimeOf is not known here.
func processorTimeOf(int) (time.Duration, bool) { return 0, false }

// processorTimeBelow is known on Linux only.
func processorTimeBelow(int) time.Duration { return 0 }
