//go:build !linux

package bench

import "time"

// processorTimeOf is not known here.
func processorTimeOf(int) (time.Duration, bool) { return 0, false }
