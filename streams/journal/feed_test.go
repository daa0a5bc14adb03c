package journal

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// chained returns entries that a feed may be given: n of them after a position, with values of a size.
func chained(after record.Position, n, size int) (list []record.Entry) {
	for range n {
		after = record.Position{Offset: after.Offset + 2, Sequence: after.Sequence + 1, Hash: record.Hash{byte(after.Sequence), 1}}
		list = append(list, record.Entry{Position: after, Value: make([]byte, size)})
	}
	return list
}

func TestAFeedKnowsItsPositions(t *testing.T) {
	base := record.Position{Offset: 9, Sequence: 7, Hash: record.Hash{9}}
	list := chained(base, 3, 10)
	f := &feed{base: base, next: 10}
	f.put(list, 17, nil)
	for i, at := range []record.Position{base, list[0].Position, list[1].Position, list[2].Position} {
		if got, held := f.after(at); got != i || !held || !f.serves(at, false) {
			t.Errorf("after %v: %d, %v", at, got, held)
		}
		moved := record.Position{Offset: at.Offset + 1, Sequence: at.Sequence, Hash: at.Hash}
		if got, held := f.after(moved); got != i || !held || !f.serves(moved, false) {
			t.Errorf("after %v, which was last seen elsewhere: %d, %v", moved, got, held)
		}
		other := record.Position{Offset: at.Offset, Sequence: at.Sequence, Hash: record.Hash{77}}
		if _, held := f.after(other); held || f.serves(other, true) {
			t.Errorf("it holds %v, which has another hash", other)
		}
		if _, _, held, err := f.take(context.Background(), nil, other, 0); held || err != nil {
			t.Errorf("it goes on after %v: %v", other, err)
		}
	}
	old, new := record.Position{Offset: 8, Sequence: 6}, record.Position{Offset: 30, Sequence: 11}
	if f.serves(old, true) || f.serves(new, false) || !f.serves(new, true) {
		t.Error("who may join is another")
	}
	entries, next, held, err := f.take(context.Background(), nil, list[0].Position, 12)
	if len(entries) != 2 || !entries[0].Position.Equal(list[1].Position) || next != 17 || !held || err != nil {
		t.Errorf("%v %d %v %v", entries, next, held, err)
	}
	if entries, next, _, _ := f.take(context.Background(), nil, list[2].Position, 15); len(entries) != 0 || next != 17 {
		t.Errorf("%v %d", entries, next)
	}
	ended := errors.New("ended")
	f.put(nil, 17, ended)
	if entries, _, _, err := f.take(context.Background(), nil, list[1].Position, 17); len(entries) != 1 || err != nil {
		t.Errorf("%v %v", entries, err)
	}
	if _, _, _, err := f.take(context.Background(), nil, list[2].Position, 17); !errors.Is(err, ended) {
		t.Errorf("%v", err)
	}
	if _, _, held, err := f.take(context.Background(), nil, new, 17); held || err != nil || f.serves(new, true) || f.serves(list[2].Position, true) {
		t.Errorf("an ended feed is waited for: %v %v", held, err)
	}
}

func TestAFeedIsBounded(t *testing.T) {
	f := &feed{base: record.Before}
	first := chained(record.Before, 3, 100)
	f.put(first, 6, nil)
	held, _, _, _ := f.take(context.Background(), nil, record.Before, 0)
	at := first[2].Position
	for range 3 * feedRecords / 64 {
		list := chained(at, 64, 10)
		at = list[63].Position
		f.put(list, at.Offset+1, nil)
	}
	if len(f.entries) != feedRecords || f.bytes != 10*feedRecords || f.after1(at) != feedRecords || cap(f.entries) > 3*feedRecords {
		t.Errorf("%d records of %d bytes, room for %d", len(f.entries), f.bytes, cap(f.entries))
	}
	if f.serves(f.base, false) != true || f.serves(record.Before, true) || !held[2].Position.Equal(first[2].Position) {
		t.Error("what was let go of is still there, or what was taken is not")
	}
	f.put(chained(at, 40, feedBytes/32), at.Offset+81, nil)
	if len(f.entries) != 32 || f.bytes != feedBytes {
		t.Errorf("%d records of %d bytes", len(f.entries), f.bytes)
	}
	f.put(chained(f.entries[31].Position, 1, feedBytes+1), f.next+2, nil)
	if len(f.entries) != 1 {
		t.Errorf("%d records, of which the last is larger than everything", len(f.entries))
	}
}

// TestAFeedLetsGoOfLargeRecords has large records follow on as many small ones as a feed holds, and counts those that are
// still in memory.
func TestAFeedLetsGoOfLargeRecords(t *testing.T) {
	const size = 256 << 10
	f := &feed{base: record.Before}
	small := chained(record.Before, feedRecords, 10)
	f.put(small, 2*feedRecords, nil)
	at := small[len(small)-1].Position
	var large []weak.Pointer[byte]
	for range 5 * feedBytes / size {
		list := chained(at, 1, size)
		f.put(list, 0, nil)
		at = list[0].Position
		large = append(large, weak.Make(&list[0].Value[0]))
	}
	runtime.GC()
	kept := 0
	for _, p := range large {
		if p.Value() != nil {
			kept++
		}
	}
	if held := feedBytes / size; len(f.entries) != held || kept < held || kept > 2*held+2 {
		t.Errorf("it holds %d large records, and %d are in memory", len(f.entries), kept)
	}
	runtime.KeepAlive(f)
}

func (f *feed) after1(at record.Position) int {
	i, _ := f.after(at)
	return i
}

// TestAFeedOnItsWayWaitsForItsTails is about a feed that is catching up: it lets go of nothing that a tail still needs,
// until another has starved for long enough.
func TestAFeedOnItsWayWaitsForItsTails(t *testing.T) {
	f := &feed{base: record.Before, catching: true, subscribers: make(map[*subscriber]struct{}), moved: make(chan struct{}, 1), starved: starvation{since: time.Now()}}
	slow, fast := f.subscribe(record.Before), f.subscribe(record.Before)
	list := chained(record.Before, 2*feedRecords, 10)
	f.put(list, 4*feedRecords, nil)
	if len(f.entries) != 2*feedRecords || !f.overfull() {
		t.Fatalf("it holds %d records", len(f.entries))
	}
	take := func(s *subscriber, at record.Position) (n int, held bool) {
		t.Helper()
		entries, _, held, err := f.take(t.Context(), s, at, 0)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries), held
	}
	take(slow, list[0].Position)
	if !f.overfull() || len(f.entries) != 2*feedRecords {
		t.Fatalf("it holds %d records, though a tail needs them all", len(f.entries))
	}
	take(fast, list[0].Position)
	if !f.overfull() || len(f.entries) != 2*feedRecords-1 || len(f.moved) != 1 {
		t.Fatalf("it holds %d records, of which one is not needed", len(f.entries))
	}
	take(fast, list[feedRecords].Position)
	if f.starving() || !f.overfull() || f.starved.starved != 0 {
		t.Fatal("all have something to do, and one is said to starve")
	}
	last := list[len(list)-1].Position
	fast.sequence = last.Sequence
	soon := time.Now().Add(time.Minute) // however long this test is kept waiting
	f.starved = starvation{since: soon.Add(-time.Hour), starved: 24 * time.Hour, checked: soon}
	if !f.overfull() || f.starved.starved > time.Hour {
		t.Fatal("what was long ago is counted")
	}
	f.starved = starvation{since: soon, starved: 24 * time.Hour, checked: soon}
	if !f.starving() || f.overfull() || len(f.entries) != feedRecords || f.starved.starved != 0 {
		t.Fatalf("it holds %d records, though a tail has starved", len(f.entries))
	}
	if _, held := take(slow, list[0].Position); held {
		t.Error("what the slow one needs is still there")
	}
	more := chained(last, 5, 10)
	f.put(more, f.next+10, nil)
	if f.overfull() || len(f.entries) != feedRecords || f.needed() {
		t.Error("it waits for a tail whose place is gone")
	}
	f.unsubscribe(slow)
	f.endCatchUp(true)
	if n, held := take(fast, last); n != 5 || !held {
		t.Errorf("%d records are left of a feed that is over, %v", n, held)
	}
	if n, held := take(fast, more[4].Position); n != 0 || held || f.serves(more[4].Position, true) || f.serves(record.Position{Sequence: 1 << 40}, true) {
		t.Error("it goes on though it is over")
	}
}
