package node

import (
	"fmt"
	"math"
	"syscall"
)

// reserved is how many of the files that a process may open are kept for the log, the database, the bucket, and the brokers, if
// that leaves half of them to clients. Without a file, an embedded broker cannot write its log, and ends.
const reserved = 512

// leastFiles is the smallest number of files with which a node starts. With all parts of a venue, it has about 60 open besides the
// connections of clients.
const leastFiles = 128

// CheckOpenFiles returns an error if the process may open too few files.
func CheckOpenFiles() error { return checkFiles(openFiles()) }

func checkFiles(files uint64) error {
	if files < leastFiles {
		return fmt.Errorf("the limit of open files of this process is %d, and a node needs at least %d: raise it (ulimit -n)", files, leastFiles)
	}
	return nil
}

// openFiles returns how many files the process may have open, or the highest number if the limit cannot be read.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxUint64
	}
	return limit.Cur
}

// mostConnections returns how many connections of clients may be open at the same time.
func mostConnections() int { return connectionsOf(openFiles()) }

// connectionsOf returns how many of a number of files are left to clients.
func connectionsOf(files uint64) int {
	return int(min(files-min(files/2, reserved), math.MaxInt32))
}
