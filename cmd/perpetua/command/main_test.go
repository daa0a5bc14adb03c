package command

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
)

// TestStopSignals: SIGHUP stops the process, unless nohup has it ignored.
func TestStopSignals(t *testing.T) {
	hangup := func() bool { return slices.Contains(stopSignals(), os.Signal(syscall.SIGHUP)) }
	if !signal.Ignored(syscall.SIGHUP) && !hangup() { // the tests themselves may run under nohup
		t.Error("the end of a terminal does not stop the process")
	}
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	if hangup() {
		t.Error("under nohup, the end of a terminal stops the process")
	}
}
