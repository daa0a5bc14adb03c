package journal

import (
	"context"
	"errors"
	"testing"
)

// chained returns entries that a feed may be given: n of them after a position, with values of a size.
func chained(after Position, n, size int) (list []Entry) {
	for range n {
		after = Position{Offset: after.Offset + 2, Sequence: after.Sequence + 1, Hash: Hash{byte(after.Sequence), 1}}
		list = append(list, Entry{Position: after, Value: make([]byte, size)})
	}
	return list
}

func TestAFeedKnowsItsPositions(t *testing.T) {
	base := Position{Offset: 9, Sequence: 7, Hash: Hash{9}}
	list := chained(base, 3, 10)
	f := &feed{base: base, next: 10}
	f.put(list, 17, nil)
	for i, at := range []Position{base, list[0].Position, list[1].Position, list[2].Position} {
		if got, held := f.after(at); got != i || !held || !f.meets(at, false) {
			t.Errorf("after %v: %d, %v", at, got, held)
		}
		for what, other := range map[string]Position{"hash": {at.Offset, at.Sequence, Hash{77}}, "offset": {at.Offset + 1, at.Sequence, at.Hash}} {
			if _, held := f.after(other); held || f.meets(other, true) {
				t.Errorf("it holds %v, which has another %s", other, what)
			}
			if _, _, held, err := f.take(context.Background(), other, 0); held || err != nil {
				t.Errorf("it goes on after %v: %v", other, err)
			}
		}
	}
	old, new := Position{Offset: 8, Sequence: 6}, Position{Offset: 30, Sequence: 11}
	if f.meets(old, true) || f.meets(new, false) || !f.meets(new, true) {
		t.Error("who may join is another")
	}
	entries, next, held, err := f.take(context.Background(), list[0].Position, 12)
	if len(entries) != 2 || entries[0].Position != list[1].Position || next != 17 || !held || err != nil {
		t.Errorf("%v %d %v %v", entries, next, held, err)
	}
	if entries, next, _, _ := f.take(context.Background(), list[2].Position, 15); len(entries) != 0 || next != 17 {
		t.Errorf("%v %d", entries, next)
	}
	ended := errors.New("ended")
	f.put(nil, 17, ended)
	if entries, _, _, err := f.take(context.Background(), list[1].Position, 17); len(entries) != 1 || err != nil {
		t.Errorf("%v %v", entries, err)
	}
	if _, _, _, err := f.take(context.Background(), list[2].Position, 17); !errors.Is(err, ended) {
		t.Errorf("%v", err)
	}
	if _, _, held, err := f.take(context.Background(), new, 17); held || err != nil || f.meets(new, true) || f.meets(list[2].Position, true) {
		t.Errorf("an ended feed is waited for: %v %v", held, err)
	}
}

func TestAFeedIsBounded(t *testing.T) {
	f := &feed{base: Before}
	first := chained(Before, 3, 100)
	f.put(first, 6, nil)
	held, _, _, _ := f.take(context.Background(), Before, 0)
	at := first[2].Position
	for range 3 * feedRecords / 64 {
		list := chained(at, 64, 10)
		at = list[63].Position
		f.put(list, at.Offset+1, nil)
	}
	if len(f.entries) != feedRecords || f.bytes != 10*feedRecords || f.after1(at) != feedRecords || cap(f.entries) > 3*feedRecords {
		t.Errorf("%d records of %d bytes, room for %d", len(f.entries), f.bytes, cap(f.entries))
	}
	if f.meets(f.base, false) != true || f.meets(Before, true) || held[2].Position != first[2].Position {
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

func (f *feed) after1(at Position) int {
	i, _ := f.after(at)
	return i
}
