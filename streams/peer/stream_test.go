package peer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestAWithdrawnCommandKeepsItsCredit: the credit of commands that clients give up is not used again before the owner has
// answered them, so the stream goes on.
func TestAWithdrawnCommandKeepsItsCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const given = 100
		p := newPair(t, newOwner(t))
		p.owner.delay = 10 * gatherTime // also of a withdrawal
		resume := p.owner.pause()
		leaving, leave := context.WithCancel(t.Context())
		var all []<-chan submit.Outcome
		for i := range maxCommands + given {
			ctx := t.Context()
			if i < given {
				ctx = leaving
			}
			all = append(all, p.later(ctx, command(fmt.Sprintf("w%d", i))))
			synctest.Wait()
		}
		time.Sleep(gatherTime)
		synctest.Wait()
		leave()
		time.Sleep(20 * gatherTime)
		synctest.Wait()
		resume()
		for i, out := range all {
			if o := <-out; i < given && !isUnknown(o.Err) || i >= given && o.Err != nil {
				t.Fatalf("command %d: %v", i, o.Err)
			}
		}
		if n := len(p.owner.words()); n != maxCommands {
			t.Errorf("%d words", n)
		}
	})
}

// TestLaterTerm: a stream belongs to one term. Commands in doubt are answered once the node has read that another term began,
// and the next ones go over a stream of that term.
func TestLaterTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		resume := p.owner.pause()
		lost := p.later(t.Context(), command("lost"))
		synctest.Wait()
		p.owner.take()
		if o := <-lost; !isNotAccepted(o.Err) {
			t.Errorf("%+v", o)
		}
		resume()
		if _, err := p.say(t.Context(), "next"); err != nil {
			t.Error(err)
		}
		equal(t, p.owner.words(), []string{"next"})
	})
}

// TestUnnoticedTerm: an owner decides nothing of another term than the stream's, even if the node has not read of it yet.
func TestUnnoticedTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		if _, err := p.say(t.Context(), "before"); err != nil {
			t.Fatal(err)
		}
		p.owner.lag()
		p.owner.take()
		if _, err := p.say(t.Context(), "after"); !isNotAccepted(err) {
			t.Errorf("%v", err)
		}
		equal(t, p.owner.words(), []string{"before"})
	})
}

// TestAnErrorWithinAFrame: what came before the error is decided.
func TestAnErrorWithinAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		s := newSession(t, o, serverConfig(o))
		say := func(number uint64, after bool, word string) message {
			return message{number: number, after: after, kind: "say", payload: []byte(`{"Word":"` + word + `"}`), deadline: s.server.now().plus(time.Second)}
		}
		err := s.submit([]message{say(1, false, "a"), say(2, true, "b"), say(3, false, "c"), say(3, true, "again"), say(4, false, "d")})
		if !errors.Is(err, errFrame) {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		equal(t, o.words(), []string{"a", "b"})
	})
}

// newSession returns a session without a connection.
func newSession(t *testing.T, o *owner, c ServerConfig) *session {
	return &session{server: NewServer(c), ctx: submit.InTerm(t.Context(), o.term.Number), hello: hello{shard: testShard}, commands: 10,
		open: make(map[uint64]*incoming), wake: make(chan struct{}, 1)}
}

// TestReplacedStream: a new stream of the same process ends the earlier one and withdraws its undecided commands, and the node
// learns which ones the owner had received.
func TestReplacedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		defer p.owner.pause()()
		received := p.later(t.Context(), command("received"))
		synctest.Wait()
		s := p.Client.shard(testShard)
		s.mu.Lock()
		first := s.streams[ownerURL]
		lost := &call{message: message{id: record.NewCommandID(time.Now()), number: 2}, batch: &batch{done: make(chan struct{}), left: 1}, state: sent,
			term: first.term, owner: first.owner, url: ownerURL}
		s.sent[lost.id] = lost // it was written, and did not arrive
		s.open(ownerURL)
		s.mu.Unlock()
		<-lost.batch.done
		if !isNotAccepted(lost.outcome.Err) {
			t.Errorf("%v", lost.outcome.Err)
		}
		if o := <-received; !isUnknown(o.Err) { // its answer went down the first stream
			t.Errorf("%+v", o)
		}
		if p.owner.pending() != 0 || len(p.owner.words()) != 0 {
			t.Error("the owner still has the command")
		}
	})
}

// TestLeaving: an owner that stops answers what it has received and takes nothing more.
func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		resume := p.owner.pause()
		first := p.later(t.Context(), command("first"))
		synctest.Wait()
		ended := make(chan struct{})
		go func() {
			p.server.Close()
			close(ended)
		}()
		synctest.Wait()
		if _, err := p.say(t.Context(), "second"); !isNotAccepted(err) {
			t.Errorf("%v", err)
		}
		resume()
		if o := <-first; o.Err != nil {
			t.Error(o.Err)
		}
		<-ended
		equal(t, p.owner.words(), []string{"first"})
	})
}

// TestCredit: a stream that sends more than it was granted is ended.
func TestCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &session{server: NewServer(serverConfig(newOwner(t))), commands: 2, open: make(map[uint64]*incoming)}
		receive := func(number uint64, size int) error {
			m := message{number: number, payload: make([]byte, size)}
			return s.receive(&m, &incoming{message: m})
		}
		if err := errors.Join(receive(1, maxBytes), receive(2, 0)); err != nil {
			t.Error(err)
		}
		if err := receive(3, 0); !errors.Is(err, errCredit) {
			t.Errorf("commands: %v", err)
		}
		s.commands = 3
		if err := receive(3, 1); !errors.Is(err, errCredit) {
			t.Errorf("bytes: %v", err)
		}
		if err := receive(2, 0); !errors.Is(err, errFrame) {
			t.Errorf("an old number: %v", err)
		}
	})
}

// TestGrants: a stream is granted less the more there are, but always something.
func TestGrants(t *testing.T) {
	s := NewServer(ServerConfig{})
	sum, last := 0, maxCommands
	for range 40 {
		ses := &session{hello: hello{shard: testShard}}
		n, err := s.grant(ses)
		s.count(ses, n)
		if err != nil || n > last || n < leastCommands {
			t.Fatalf("%d after %d: %v", n, last, err)
		}
		sum, last = sum+n, n
	}
	if last != leastCommands || sum > allCommands+40*leastCommands {
		t.Errorf("%d of %d are granted, %d at last", sum, allCommands, last)
	}
}
