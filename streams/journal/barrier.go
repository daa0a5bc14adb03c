package journal

import (
	"context"
)

// barrier holds back what an owner answers and leaves no record of: refusals.
//
// A record of an owner that was overtaken never becomes valid, so the log itself keeps its answer from being given. A
// refusal has no record. The owner may have been taken out of the group by another node that no longer reaches its port, or
// have been stopped for a while; somebody else then has acknowledged what would have been no refusal, and this owner's own
// reader may be the last to see it. So a refusal is answered once the brokers have said, after it was decided, where the
// log ends, and everything up to there is this term's own or was passed by its reader. Whoever took a term before the
// refusal was decided has put its taken record there.
//
// One question is under way at a time, for all that were decided before it was asked.
type barrier struct {
	held    fifo[heldReply] // in the order in which they were decided
	covered int             // of those, by the question that was asked last
	answers chan int64      // takes the answer without blocking
	end     int64           // the answer, while some that it covers are held; -1 for none yet
	ask     func()
}

// add holds a refusal.
func (b *barrier) add(h heldReply) {
	b.held.push(h)
	b.next()
}

// next asks for those that are not covered, unless there is a question whose refusals are still held.
func (b *barrier) next() {
	if b.covered == 0 && b.held.len() > 0 {
		b.covered, b.end = b.held.len(), -1
		b.ask()
	}
}

// pop returns the next refusal to answer: its tip is complete, and the log up to the end that was told is accounted for.
func (b *barrier) pop(complete, accounted int64) (h heldReply, ok bool) {
	if b.covered == 0 || b.end < 0 || b.end > accounted || b.held.peek().tip > complete {
		return heldReply{}, false
	}
	b.covered--
	h = b.held.pop()
	b.next()
	return h, true
}

// askEnd asks the brokers where the log ends, until they say it or the term ends.
func (t *term) askEnd(ctx context.Context) {
	t.ended.Go(func() {
		for attempt := 0; ; attempt++ {
			end, err := t.o.cfg.Client.Tip(ctx, t.o.journal, t.o.cfg.Partition)
			if err == nil {
				t.barrier.answers <- end
				return
			}
			if pause(ctx, attempt) != nil {
				return
			}
		}
	})
}

// told takes in where the log ends.
func (t *term) told(end int64) {
	t.barrier.end = end
	t.release()
}
