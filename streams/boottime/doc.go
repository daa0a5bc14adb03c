// Package boottime is a monotonic clock that does not stop while the machine is suspended, as Go's monotonic clock does.
//
// What this process promised to others for a time, such as a lease or the deadline of a command, ends by their clocks also
// while a virtual machine is suspended. So it MUST be measured with this clock.
package boottime
