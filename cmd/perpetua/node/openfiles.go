package node

import (
	"math"
	"syscall"
)

// reserved is how many of the files that a process may open are kept for the log, the database, the bucket, and the brokers, if
// that leaves half of them to clients. Without a file, an embedded broker cannot write its log, and ends.
const reserved = 512

// mostConnections returns how many connections of clients may be open at the same time.
func mostConnections() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return connectionsOf(limit.Cur)
}

// connectionsOf returns how many of a number of files are left to clients.
func connectionsOf(files uint64) int {
	return int(min(files-min(files/2, reserved), math.MaxInt32))
}
