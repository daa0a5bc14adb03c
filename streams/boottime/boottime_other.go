//go:build !linux

package boottime

import "time"

var start = time.Now()

// Now returns the time since the process was started. It may leave out the time during which the machine was suspended.
func Now() time.Duration { return time.Since(start) }
