package journal_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestAnInterruptedReplayGoesOn stops an owner in the middle of its replay. The next one starts from what that has applied.
func TestAnInterruptedReplayGoesOn(t *testing.T) {
	r := newFake(t)
	first := r.owner("n1").ready()
	for range 20 {
		first.do(command(&add{"a", 1}))
	}
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	all := r.all()
	half := all[len(all)/2].Position
	var beyond, from, again, refused atomic.Int64
	beyond.Store(half.Offset)
	r.fake.ControlKey(int16(kmsg.Fetch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		r.fake.KeepControl()
		fetch := q.(*kmsg.FetchRequest)
		fetch.MaxBytes = 1 // one batch in a fetch
		for _, topic := range fetch.Topics {
			for _, p := range topic.Partitions {
				if p.FetchOffset > beyond.Load() {
					refused.Add(1)
					return nil, errors.New("the broker is away"), true
				}
				if p.FetchOffset > 0 && p.FetchOffset < from.Load() { // the genesis is read by every owner
					again.Add(1)
				}
			}
		}
		return nil, nil, false
	})
	var kept *record.Seed
	cfg := r.ownerConfig("n1")
	cfg.Interrupted = func(s *record.Seed) { kept = s }
	second := r.run(cfg)
	second.until("half of the log is read", func() bool { return refused.Load() > 0 })
	if err := second.end(); err != nil {
		t.Fatal(err)
	}
	if kept == nil {
		t.Fatal("nothing is handed back")
	}
	if kept.Position.Sequence > half.Sequence {
		t.Fatalf("it hands back %v, and has read up to %v", kept.Position, half)
	}
	beyond.Store(1 << 40)
	from.Store(kept.Position.Offset)
	cfg.Seed = func(context.Context) (*record.Seed, error) { return kept, nil }
	third := r.run(cfg).ready()
	if n := again.Load(); n > 0 {
		t.Errorf("the next replay reads %d records again", n)
	}
	if got := third.do(command(&add{"a", 1})).Entry.Record.Events[0].(*added).Total; got != 21 {
		t.Errorf("the total is %d, not 21", got)
	}
}
