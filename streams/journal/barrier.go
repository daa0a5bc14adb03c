package journal

import (
	"context"
)

// barrier delays refusals, the answers of an owner that leave no record.
//
// Other answers need no barrier: a record of an owner that was superseded never becomes valid, so its answer is never
// sent. A refusal has no record. The owner may have been paused, or the group may have given the partition to another
// node that cannot reach this node's port. The other node may then have acknowledged a command that makes the refusal
// wrong, and this owner's reader may be the last to see it. So the barrier answers a refusal only when two conditions
// hold: the brokers have reported the end of the log after the decision, and every record before that end is this
// term's own or was passed by its reader. A term taken before the decision has its taken record before that end.
//
// One request for the end is in flight at any time. It covers all refusals decided before it was sent.
type barrier struct {
	held    fifo[heldReply] // in the order of their decisions
	covered int             // how many of held the latest request for the end covers
	answers chan int64      // has a buffer of one, so that the answer never blocks
	end     int64           // the reported end while refusals that it covers are held; -1 before the answer
	ask     func()
}

// add delays a refusal.
func (b *barrier) add(h heldReply) {
	b.held.push(h)
	b.next()
}

// next requests the end for the refusals not yet covered, unless an earlier request still has refusals waiting.
func (b *barrier) next() {
	if b.covered == 0 && b.held.len() > 0 {
		b.covered, b.end = b.held.len(), -1
		b.ask()
	}
}

// pop returns the next refusal that may be answered: its tip is complete, and the log is accounted for up to the
// reported end.
func (b *barrier) pop(complete, accounted int64) (h heldReply, ok bool) {
	if b.covered == 0 || b.end < 0 || b.end > accounted || b.held.peek().tip > complete {
		return heldReply{}, false
	}
	b.covered--
	h = b.held.pop()
	b.next()
	return h, true
}

// askEnd requests the end of the log from the brokers. It retries until they answer or the term ends.
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

// told processes the reported end of the log.
func (t *term) told(end int64) {
	t.barrier.end = end
	t.release()
}
