package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since the machine was started.
func Now() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic("boottime: " + err.Error()) // every supported kernel has this clock
	}
	return time.Duration(now.Nano())
}
