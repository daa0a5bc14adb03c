package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// processorTimeOf returns the processor time that another process has used, in the kernel's resolution of 10 ms.
func processorTimeOf(pid int) (used time.Duration, ok bool) {
	fields := statusOf(pid)
	if fields == nil {
		return 0, false
	}
	return ticks(fields[userTime]) + ticks(fields[systemTime]), true
}

// processorTimeBelow returns the processor time of all descendants of a process.
func processorTimeBelow(pid int) (used time.Duration) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	children := make(map[int][]int)
	for _, path := range paths {
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path))) // cannot fail: the pattern matches only numbers
		if fields := statusOf(child); fields != nil {
			parent, _ := strconv.Atoi(string(fields[parentProcess]))
			children[parent] = append(children[parent], child)
		}
	}
	below := children[pid]
	for len(below) > 0 {
		child := below[0]
		below = append(below[1:], children[child]...)
		if fields := statusOf(child); fields != nil {
			for _, f := range fields[userTime : endedSystemTime+1] { // the process and its children that have ended
				used += ticks(f)
			}
		}
	}
	return used
}

// Indexes of the fields of /proc/PID/stat after the process name.
const (
	parentProcess   = 1
	userTime        = 11
	systemTime      = 12
	endedSystemTime = 14
)

// statusOf returns the fields of /proc/PID/stat after the process name, which may contain any character. It returns nil
// if the process does not exist.
func statusOf(pid int) [][]byte {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, after, found := bytes.Cut(content, []byte(") "))
	fields := bytes.Fields(after)
	if !found || len(fields) <= endedSystemTime {
		return nil
	}
	return fields
}

func ticks(field []byte) time.Duration {
	n, err := strconv.ParseInt(string(field), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * 10 * time.Millisecond
}
