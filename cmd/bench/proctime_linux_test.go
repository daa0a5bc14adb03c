package main

import (
	"os/exec"
	"testing"
	"time"
)

// TestProcessorTimes counts the time of a child that works while the function is called.
func TestProcessorTimes(t *testing.T) {
	busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = busy.Process.Kill()
		_ = busy.Wait()
	}()
	measured, times := processorTimes(10, func() (float64, error) {
		from, _ := processorTimeOf(busy.Process.Pid)
		for used := from; used < from+50*time.Millisecond; used, _ = processorTimeOf(busy.Process.Pid) {
			if err := t.Context().Err(); err != nil {
				return 0, err
			}
		}
		return 7, nil
	})
	for call := range 2 {
		if x, err := measured(); x != 7 || err != nil {
			t.Fatal(x, err)
		}
		if len(*times) != call+1 || (*times)[call] < 5_000 {
			t.Errorf("after call %d the times are %v µs, want at least 5000 each", call+1, *times)
		}
	}
}
