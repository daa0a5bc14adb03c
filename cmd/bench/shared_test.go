package main

import (
	"reflect"
	"runtime"
	"sync"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/admin"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestNobodyChangesWhatTheyShare has everybody who follows the journal in a process go through the same entries at the
// same time, and then compares those with what their bytes say. (Under the race detector it tells who wrote, too.)
func TestNobodyChangesWhatTheyShare(t *testing.T) {
	entries, err := flow(4000)
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{engine: &engine{state: trading.NewState()}}
	hub := live.New(live.Config{Follower: f, Journal: "trading", Tokens: nobody{}})
	running := make(chan error, 1)
	go func() { running <- hub.Run(t.Context()) }()
	t.Cleanup(func() { <-running })
	for listening := 0; listening == 0; runtime.Gosched() {
		f.mu.RLock()
		listening = len(f.listen)
		f.mu.RUnlock()
	}
	tail := admin.NewTail("trading", 0)
	all := entries[1:]
	batches := func(each func([]record.Entry)) {
		for left := all; len(left) > 0; left = left[min(len(left), 100):] {
			each(left[:min(len(left), 100)])
		}
	}
	followers := []func(){
		func() {
			state := trading.NewState()
			for _, e := range all {
				state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
			}
		},
		func() {
			for _, e := range all {
				f.mu.Lock()
				f.engine.state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
				for _, call := range append(f.listen, tail.Observe) {
					call(e, f.engine.state)
				}
				f.mu.Unlock()
			}
		},
		func() {
			for _, p := range readmodels.Trading() {
				batches(func(list []record.Entry) { p.Project(list, new(projections.Batch)) })
			}
		},
	}
	var group sync.WaitGroup
	for _, follow := range followers {
		group.Go(follow)
	}
	group.Wait()
	decoder := record.NewDecoder(trading.Rules().Registry())
	for _, e := range all {
		want, err := decoder.Decode(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(e.Record, want) {
			t.Fatalf("record %d is now\n%+v\nand was\n%+v", e.Position.Sequence, e.Record, want)
		}
	}
}
