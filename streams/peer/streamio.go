package peer

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// writeAll writes commands, cancellations and pings until the stream ends or cannot be written to.
func (st *stream) writeAll() {
	pings := time.NewTicker(pingInterval)
	defer pings.Stop()
	st.notify() // for commands that waited for the stream
	var last time.Time
	for {
		var err error
		select {
		case <-st.ctx.Done():
			return
		case <-pings.C:
			err = st.write(kindPing, func(*pack.Coder) {})
		case <-st.wake:
			st.gather(last)
			err = st.writeWaiting()
			last = time.Now()
		}
		if err != nil {
			return
		}
	}
}

// gather lets more clients submit before the next frame is written. last is when the last one was.
func (st *stream) gather(last time.Time) {
	st.shard.mu.Lock()
	busy, answerTime := st.unanswered > 0, st.answerTime
	st.shard.mu.Unlock()
	pause(busy, last, min(max(gatherTime, answerTime/8), maxGatherTime))
}

func (st *stream) write(k kind, visit func(*pack.Coder)) error {
	st.frame = appendFrame(st.frame[:0], st.proveOut, k, visit)
	_, err := st.to.Write(st.frame)
	return err
}

// writeWaiting writes what is waiting, as far as the credit allows.
func (st *stream) writeWaiting() error {
	for {
		commands, canceled := st.next()
		if len(canceled) > 0 {
			if err := st.write(kindCancel, visitNumbers(&canceled)); err != nil {
				return err
			}
		}
		if len(commands) == 0 {
			return nil
		}
		st.shard.client.metrics.sent(len(commands))
		if err := st.write(kindSubmit, list(&commands, (*message).visit)); err != nil {
			return err
		}
	}
}

// next takes the commands of the next frame from the queue, and the numbers of those to cancel. The commands count as sent
// from here on, even if the frame cannot be written.
func (st *stream) next() (commands []message, canceled []uint64) {
	s := st.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	canceled, st.canceled = st.canceled, nil
	size := 0
	for len(st.queue) > 0 && st.state == open && !st.leaving {
		b := st.queue[0]
		if b.calls[0].state == answered { // its client is gone
			st.queue = st.queue[1:]
			continue
		}
		if st.refuses(b) {
			st.queue = st.queue[1:]
			continue
		}
		full := size > 0 && size+b.bytes > frameSize
		if full || st.unanswered+len(b.calls) > st.commands || st.bytes > 0 && st.bytes+b.bytes > st.maxBytes {
			break
		}
		st.queue = st.queue[1:]
		size += b.bytes
		commands = st.send(b, commands)
	}
	return commands, canceled
}

// refuses answers a batch with a command that the owner does not know, and reports whether it did. The caller must hold the
// shard's lock.
func (st *stream) refuses(b *batch) bool {
	i := slices.IndexFunc(b.calls, func(c *call) bool { return st.unknown[c.kind] })
	if i < 0 {
		return false
	}
	st.shard.client.cfg.Logger.Error("the owner's build does not know a command", "alarm", alarmUnknown, "type", b.calls[i].kind, "url", st.url)
	for _, c := range b.calls {
		st.shard.finish(c, submit.Outcome{Err: notAcceptedError("the owner does not know the command " + b.calls[i].kind)}, nil)
	}
	return true
}

// send counts a batch as sent and appends its commands. The caller must hold the shard's lock.
func (st *stream) send(b *batch, commands []message) []message {
	s := st.shard
	now := s.client.cfg.Clock()
	deadline := st.clock.plus(answerTimeout + b.since - st.clockAt)
	for _, c := range b.calls {
		s.number++
		c.number, c.deadline = s.number, deadline
		c.state, c.stream, c.term, c.owner, c.url, c.sentAt = sent, st, st.term, st.owner, st.url, now
		s.sent[c.id] = c
		st.calls[c.number] = c
		st.unanswered++
		st.bytes += len(c.payload)
		commands = append(commands, c.message)
	}
	if !b.queued {
		b.queued = b.notify()
	}
	return commands
}

// answered delivers answers.
func (st *stream) answered(a answers) error {
	s := st.shard
	events, err := s.client.cfg.Events(s.id.Journal)
	if err != nil {
		return err
	}
	outcomes := make([]submit.Outcome, len(a.all))
	read := st.alreadyRead(a.all)
	for i := range a.all {
		outcomes[i] = s.outcome(&a.all[i], read[i], events)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.clock, st.clockAt = a.now, s.client.cfg.Clock()
	for i := range a.all {
		c := st.calls[a.all[i].number]
		if c == nil {
			continue
		}
		st.answerTime += (st.clockAt - c.sentAt - st.answerTime) / 32
		delete(st.calls, c.number)
		st.unanswered--
		st.bytes -= len(c.payload)
		var foreign error
		switch a.all[i].kind {
		case notOwner:
			foreign, st.leaving = errNotOwner, true
		case unknown:
			outcomes[i].Err = &submit.OutcomeUnknownError{CommandID: c.id}
		case failed:
			outcomes[i].Err = fmt.Errorf("the owner failed on %s: %s", c.kind, a.all[i].reason)
		}
		s.finish(c, outcomes[i], foreign)
	}
	if st.leaving {
		st.leave("the owner's term has ended")
	} else if len(st.queue) > 0 { // there is credit again
		st.notify()
	}
	return nil
}

// alreadyRead returns the entries of the answers that this node has already read from the log, so that no record is decoded
// twice.
func (st *stream) alreadyRead(all []answer) []*record.Entry {
	st.shard.mu.Lock()
	defer st.shard.mu.Unlock()
	entries := make([]*record.Entry, len(all))
	for i := range all {
		if c := st.calls[all[i].number]; c != nil && all[i].kind == applied {
			entries[i] = c.entry
		}
	}
	return entries
}

// outcome returns the outcome that an answer describes. read is the answer's record if this node has read it.
func (s *shard) outcome(a *answer, read *record.Entry, events *decide.Registry) (o submit.Outcome) {
	switch a.kind {
	case applied, repeated:
		o.Result = submit.Result{Position: a.position(s.id), Repeated: a.kind == repeated, Entry: read}
		if a.value == nil || read != nil && read.Position.Sequence == a.sequence {
			return o
		}
		r, err := record.Decode(events, a.value)
		if err != nil {
			return submit.Outcome{Err: fmt.Errorf("the record that answers the command: %w", err)}
		}
		o.Result.Entry = &record.Entry{Record: r, Journal: a.journal, Value: a.value,
			Position: record.Position{Offset: a.offset, Sequence: r.Sequence, Hash: sha256.Sum256(a.value)}}
	case refused:
		o.Err = &submit.RefusedError{Refusal: a.refusal, AsOf: a.position(s.id)}
	case notAccepted, notOwner:
		o.Err = &submit.NotAcceptedError{RetryAfter: max(a.retryAfter, time.Second), Reason: a.reason}
	}
	return o
}
