package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// shard is a client's state of one shard: the streams to its owners, usually one, and the commands on their way.
type shard struct {
	client *Client
	id     submit.Shard

	mu      sync.Mutex
	closed  bool
	streams map[string]*stream   // by URL
	without map[string]time.Time // when a node turned out to serve no streams
	number  uint64               // of the last command sent
	sent    map[scalar.ID]*call  // without an answer; those whose stream has ended are in doubt

	// As this node has read the log:
	journal scalar.ID   // the identity of the journal; zero until a record was read
	term    int64       // the last term that began
	taken   record.Hash // of its first record; zero if that was not read
}

// begin sets the place from which this node reads the log.
func (s *shard) begin(from *record.Seed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal, s.term = from.Journal, from.Term
}

// read processes a record. If it answers a command, the entry is kept until the owner's answer arrives, or answers a command in
// doubt at once. A record that begins a term ends the commands of earlier terms: they can no longer become valid.
func (s *shard) read(e record.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal = e.Journal
	if len(s.sent) > 0 {
		s.match(e)
	}
	begun, ok := e.Record.Events[0].(*record.TermStarted)
	if !ok || begun.Term <= s.term {
		return
	}
	s.term, s.taken = begun.Term, e.Position.Hash
	for _, c := range s.sent {
		if c.term < s.term {
			s.settle(c)
		}
	}
	for _, st := range s.streams {
		if st.state == open && st.term < s.term {
			st.stop()
		}
	}
}

// match stores a record that answers a command. The answer to a command whose work takes several records is the last of
// them.
func (s *shard) match(e record.Entry) {
	begun, finished := s.client.cfg.Work(e)
	c := s.sent[finished]
	if c == nil {
		if c = s.sent[e.Record.Command.ID]; c == nil {
			return
		}
		if begun == c.id {
			c.begun = true
			return
		}
	}
	c.entry = &e
	if c.stream == nil {
		s.settle(c)
	}
}

// settle answers a command from the log as this node has read it, if possible.
func (s *shard) settle(c *call) {
	switch {
	case c.entry != nil:
		s.finish(c, submit.Outcome{Result: submit.Result{Entry: c.entry,
			Position: record.LogPosition{Journal: s.id.Journal, Partition: s.id.Partition, Sequence: c.entry.Position.Sequence}}}, nil)
	case c.begun: // a later term completes its work
	case c.term < s.term: // the records of its term end before the record that began this one
		s.finish(c, submit.Outcome{Err: notAcceptedError("the owner's term ended before the command was recorded")}, errNotOwner)
	}
}

func notAcceptedError(reason string) error {
	return &submit.NotAcceptedError{RetryAfter: time.Second, Reason: reason}
}

// finish sets the outcome of a command. foreign is set if the owner should be looked for again.
func (s *shard) finish(c *call, o submit.Outcome, foreign error) {
	if c.state == answered {
		return
	}
	// The stream's credit is not restored before the owner's answer: the owner counts the command until then.
	if s.sent[c.id] == c {
		delete(s.sent, c.id)
	}
	c.state, c.outcome, c.foreign = answered, o, foreign
	if c.batch.left--; c.batch.left == 0 {
		close(c.batch.done)
	}
}

// enqueue queues a batch for the stream to a node, which it opens if there is none.
func (s *shard) enqueue(url string, b *batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errNotOwner
	}
	if at, ok := s.without[url]; ok {
		if time.Since(at) < withoutStreams {
			return errNoStreams
		}
		delete(s.without, url)
	}
	st := s.streams[url]
	if st == nil || st.ctx.Err() != nil {
		st = s.open(url)
	}
	if st.leaving {
		return errNotOwner
	}
	if len(st.queue) >= maxWaiting {
		return notAcceptedError("too many commands wait for the stream to the owner")
	}
	st.queue = append(st.queue, b)
	if st.state == open {
		b.queued = b.notify() // the order on the stream is that of its queue
	}
	st.notify()
	return nil
}

// open starts a stream to a node. The caller must hold the lock.
func (s *shard) open(url string) *stream {
	st := newStream(s, url)
	s.streams[url] = st
	s.client.running.Go(st.run)
	return st
}

// fail answers a batch that was not sent, because another node must be the owner. The caller must hold the lock.
func (s *shard) fail(b *batch, reason string) {
	for _, c := range b.calls {
		s.finish(c, submit.Outcome{Err: notAcceptedError(reason)}, errNotOwner)
	}
}

// binding returns this node's description of the shard's log.
func (s *shard) binding(ctx context.Context) (binding, error) {
	cfg := &s.client.cfg
	venue := cfg.Venue()
	if venue == "" {
		return binding{}, errors.New("this node does not know yet which venue it is")
	}
	log, err := cfg.Log(ctx, s.id.Journal)
	if err != nil {
		return binding{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal.IsZero() {
		return binding{}, errors.New("this node has read nothing of the journal yet")
	}
	return binding{venue: venue, log: log, journal: s.journal, shard: s.id, term: s.term, taken: s.taken}, nil
}

// opened makes a stream that was opened the one for commands.
func (s *shard) opened(st *stream, o opened) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.term < s.term {
		return fmt.Errorf("%w: its term %d has ended", errNotOwner, st.term)
	}
	st.state, st.clock, st.clockAt = open, o.now, s.client.cfg.Clock()
	s.learn(st.owner, o)
	return nil
}

// withdraw answers a batch that was not sent yet and reports whether it did.
func (s *shard) withdraw(b *batch, reason string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.calls[0].state != waiting {
		return false
	}
	for _, c := range b.calls {
		s.finish(c, submit.Outcome{Err: notAcceptedError(reason)}, nil)
	}
	return true
}

// giveUp answers all commands of a batch that have no answer yet: those that were sent may still take effect.
func (s *shard) giveUp(b *batch, reason string) {
	if s.withdraw(b, reason) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range b.calls {
		if c.state != sent {
			continue
		}
		if c.stream != nil {
			c.stream.canceled = append(c.stream.canceled, c.number)
			c.stream.notify()
		}
		s.settle(c)
		s.finish(c, submit.Outcome{Err: &submit.OutcomeUnknownError{CommandID: c.id}}, nil)
	}
}

// ended handles the end of a stream. Commands that were not sent have not been accepted; the others are in doubt.
func (s *shard) ended(st *stream, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.state = closed
	if s.streams[st.url] == st {
		delete(s.streams, st.url)
	}
	foreign := why
	if !errors.Is(why, errNoStreams) && !errors.Is(why, errNotOwner) {
		foreign = errNotOwner
	}
	if st.unserved {
		s.client.cfg.Logger.Warn("an owner serves no streams of commands: what this node sends it is not accepted", "journal", s.id.Journal, "url", st.url, "error", why)
		s.without[st.url] = time.Now()
	}
	for _, b := range st.queue {
		for _, c := range b.calls {
			s.finish(c, submit.Outcome{Err: notAcceptedError(why.Error())}, foreign)
		}
	}
	st.queue = nil
	for _, c := range st.calls {
		if c.stream = nil; c.state == sent {
			s.settle(c)
		}
		if c.state == sent {
			s.client.metrics.lost.Inc()
		}
	}
	st.calls = nil
	if s.doubtful(st.url) {
		time.AfterFunc(reopenPause, func() { s.reopen(st.url) })
	}
}

// doubtful reports whether commands that were sent to a node are in doubt.
func (s *shard) doubtful(url string) bool {
	for _, c := range s.sent {
		if c.stream == nil && c.url == url {
			return true
		}
	}
	return false
}

// reopen opens a stream to a node to learn which of the commands in doubt it received.
func (s *shard) reopen(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.streams[url] == nil && s.doubtful(url) {
		s.open(url)
	}
}

// learn handles the owner's message about the earlier stream of this process. Commands with higher numbers never reached it.
func (s *shard) learn(owner nonce, o opened) {
	if !o.earlier {
		return
	}
	for _, c := range s.sent {
		if c.stream == nil && c.owner == owner && c.number > o.last {
			s.finish(c, submit.Outcome{Err: notAcceptedError("the owner did not receive the command")}, errNotOwner)
		}
	}
}

// close ends all streams and answers all commands.
func (s *shard) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, st := range s.streams {
		st.stop()
	}
	for _, c := range s.sent {
		s.settle(c)
		s.finish(c, submit.Outcome{Err: &submit.OutcomeUnknownError{CommandID: c.id}}, nil)
	}
}
