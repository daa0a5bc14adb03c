package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestAnswers: each outcome of the owner arrives as the owner returned it, and the record as it is in the log.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		c := command("hello")
		got, err := p.Submit(t.Context(), testJournal, c)
		if err != nil {
			t.Fatal(err)
		}
		e := p.owner.log[1]
		r := got.Entry.Record
		if got.Position.String() != "words/0@1" || got.Repeated || !got.Entry.Position.Equal(e.Position) || got.Entry.Journal != e.Journal ||
			string(got.Entry.Value) != string(e.Value) || r.Command.ID != c.ID || r.Command.Kept.Key != "key-hello" || r.Command.Actor != c.Actor {
			t.Errorf("%+v", got)
		}
		if got, err := p.say(t.Context(), "repeat"); err != nil || !got.Repeated {
			t.Errorf("%+v, %v", got, err)
		}
		_, err = p.say(t.Context(), "refuse")
		var refused *submit.RefusedError
		if !errors.As(err, &refused) || refused.Refusal.Code != "NO" || refused.Refusal.Kind != decide.Conflict || refused.AsOf.String() != "words/0@2" {
			t.Errorf("%v", err)
		}
		_, err = p.say(t.Context(), "full")
		var busy *submit.NotAcceptedError
		if !errors.As(err, &busy) || busy.Reason != "full" || busy.RetryAfter != 2*time.Second {
			t.Errorf("%v", err)
		}
		if _, err = p.say(t.Context(), "unknown"); !isUnknown(err) {
			t.Errorf("%v", err)
		}
		if _, err = p.say(t.Context(), "fail"); err == nil || !strings.Contains(err.Error(), "broken") {
			t.Errorf("%v", err)
		}
	})
}

// TestOrder: commands are decided in the order in which they were submitted, however many there are, and never more than the
// owner granted are on their way.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		resume := p.owner.pause()
		const n = maxCommands + 100
		var want []string
		var all sync.WaitGroup
		for i := range n {
			word := fmt.Sprintf("w%d", i)
			want = append(want, word)
			all.Go(func() {
				if _, err := p.say(t.Context(), word); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // it is in the queue of the stream
		}
		time.Sleep(gatherTime)
		synctest.Wait() // what may be written is written
		if p.owner.most != maxCommands {
			t.Errorf("%d commands were on their way, and %d are granted", p.owner.most, maxCommands)
		}
		resume()
		all.Wait()
		equal(t, p.owner.queued, want)
		if len(p.owner.words()) != n {
			t.Errorf("%d words", len(p.owner.words()))
		}
	})
}

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

// TestWorkOfSeveralRecords: a command in doubt whose work takes several records is answered with the last of them, also if
// another term appends it.
func TestWorkOfSeveralRecords(t *testing.T) {
	id, last := scalar.ID{1}, scalar.ID{2}
	client := NewClient(ClientConfig{Work: func(e record.Entry) (begun, finished scalar.ID) {
		switch e.Record.Command.ID {
		case id:
			begun = id
		case last:
			finished = id
		}
		return begun, finished
	}})
	defer client.Close()
	b := &batch{done: make(chan struct{}), left: 1}
	c := &call{message: message{id: id}, state: sent, term: 1, batch: b}
	b.calls = []*call{c}
	s := client.shard(testShard)
	s.sent[id] = c
	entry := func(sequence int64, command scalar.ID, event decide.Event) record.Entry {
		return record.Entry{Record: &record.Record{Sequence: sequence, Command: decide.Recorded{ID: command}, Events: []decide.Event{event}},
			Position: record.Position{Sequence: sequence}}
	}
	client.Read(testJournal, 0, entry(1, scalar.ID{9}, &record.TermStarted{Term: 1}))
	client.Read(testJournal, 0, entry(2, id, &journaltest.Said{Word: "begun"}))
	client.Read(testJournal, 0, entry(3, scalar.ID{8}, &record.TermStarted{Term: 2}))
	if c.state != sent {
		t.Fatalf("answered with %+v before its work is done", c.outcome)
	}
	client.Read(testJournal, 0, entry(4, last, &journaltest.Said{Word: "finished"}))
	if c.state != answered || c.outcome.Err != nil || c.outcome.Result.Position.Sequence != 4 {
		t.Errorf("answered with %+v", c.outcome)
	}
}

// TestQueued: a caller learns that its command has its place in the order before the command is decided.
func TestQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		resume := p.owner.pause()
		var want []string
		for i := range 5 {
			queued := make(chan struct{})
			word := fmt.Sprintf("w%d", i)
			want = append(want, word)
			p.later(submit.OnQueued(t.Context(), func() { close(queued) }), command(word))
			<-queued
		}
		time.Sleep(gatherTime)
		synctest.Wait()
		if p.owner.pending() != 5 {
			t.Errorf("%d are queued", p.owner.pending())
		}
		equal(t, p.owner.queued, want)
		resume()
		synctest.Wait()
	})
}

// TestBatch: the commands of a batch stay together, and a batch that is too large for one frame is not split.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		var cs []decide.Command
		var want []string
		for i := range 50 {
			word := strings.Repeat("x", 4<<10) + fmt.Sprint(i)
			want = append(want, word)
			cs = append(cs, command(word))
		}
		for i, o := range p.SubmitAll(t.Context(), testJournal, cs) {
			if o.Err != nil || o.Result.Entry.Record.Command.ID != cs[i].ID {
				t.Errorf("%d: %v", i, o.Err)
			}
		}
		equal(t, p.owner.words(), want)
	})
}

// TestForeignLog: there is no stream, and nothing is decided, if the two nodes differ in the log, the journal, the venue or the
// secret, as a copy of the venue does whose log names the original's owner.
func TestForeignLog(t *testing.T) {
	for name, change := range map[string]func(*ServerConfig, *ClientConfig){
		"log": func(_ *ServerConfig, c *ClientConfig) {
			c.Log = func(context.Context, string) (string, error) { return "copy", nil }
		},
		"venue":  func(_ *ServerConfig, c *ClientConfig) { c.Venue = func() string { return "copy" } },
		"secret": func(_ *ServerConfig, c *ClientConfig) { c.Key = []byte("another") },
		"journal": func(s *ServerConfig, _ *ClientConfig) {
			standing := s.Term
			s.Term = func(ctx context.Context, id submit.Shard) (Term, bool, error) {
				term, ok, err := standing(ctx, id)
				term.Journal[0]++
				return term, ok, err
			}
		},
		"taken record": func(s *ServerConfig, _ *ClientConfig) {
			standing := s.Term
			s.Term = func(ctx context.Context, id submit.Shard) (Term, bool, error) {
				term, ok, err := standing(ctx, id)
				term.Taken[0]++
				return term, ok, err
			}
		},
		"an earlier term": func(s *ServerConfig, _ *ClientConfig) {
			standing := s.Term
			s.Term = func(ctx context.Context, id submit.Shard) (Term, bool, error) {
				term, ok, err := standing(ctx, id)
				term.Number--
				return term, ok, err
			}
		},
		"no term": func(s *ServerConfig, _ *ClientConfig) {
			s.Term = func(context.Context, submit.Shard) (Term, bool, error) { return Term{}, false, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, newOwner(t), change)
				if _, err := p.say(t.Context(), "hello"); !isNotAccepted(err) {
					t.Errorf("%v", err)
				}
				equal(t, p.owner.words(), nil)
			})
		})
	}
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

// TestDeadline: the owner decides nothing after the deadline, which is on its own clock: a frame may lie in its buffers for long.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &session{server: NewServer(serverConfig(newOwner(t))), hello: hello{shard: testShard}}
		c := &incoming{message: message{kind: "say", payload: []byte(`{"Word":"w"}`), deadline: s.server.now().plus(time.Second)}}
		if reason := s.check(c, s.server.now()); reason != "" {
			t.Error(reason)
		}
		time.Sleep(time.Second + time.Millisecond)
		if reason := s.check(c, s.server.now()); reason == "" {
			t.Error("a late command is decided")
		}
	})
}

// TestDeadlineInTheQueue: the deadline also holds for a command that waits for its decision.
func TestDeadlineInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		s := newSession(t, o, serverConfig(o))
		say := func(number uint64, word string) {
			m := message{number: number, kind: "say", payload: []byte(`{"Word":"` + word + `"}`), deadline: s.server.now().plus(time.Second)}
			if err := s.submit([]message{m}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		resume := o.pause()
		say(1, "late")
		time.Sleep(time.Second / 2)
		say(2, "in time")
		time.Sleep(time.Second/2 + time.Millisecond)
		resume()
		synctest.Wait()
		equal(t, o.words(), []string{"in time"})
		kinds := make(map[uint64]answerKind)
		for _, a := range s.answers {
			kinds[a.number] = a.kind
		}
		if want := map[uint64]answerKind{1: notAccepted, 2: applied}; !maps.Equal(kinds, want) {
			t.Errorf("the answers are of the kinds %v, not %v", kinds, want)
		}
	})
}

// TestAPauseDoesNotMoveADeadline: the deadline stays where it is if the machine is suspended between the arrival of a frame and
// the queueing of its commands.
func TestAPauseDoesNotMoveADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		clock, suspended := o.clock, time.Duration(0)
		o.clock = func() time.Duration { return clock() + suspended }
		config := serverConfig(o)
		config.Payload = func(journal, kind string) (decide.Payload, bool) {
			suspended = 2 * time.Second
			return payloads(journal, kind)
		}
		s := newSession(t, o, config)
		if err := s.submit([]message{{number: 1, kind: "say", payload: []byte(`{"Word":"late"}`), deadline: s.server.now().plus(time.Second)}}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		equal(t, o.words(), nil)
		if len(s.answers) != 1 || s.answers[0].kind != notAccepted {
			t.Errorf("%+v", s.answers)
		}
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

// TestForms: a command that the owner's build does not know, or not entirely, is not accepted.
func TestForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		c := command("hello")
		c.Payload = &struct{ Word, Tone string }{"hello", "loud"}
		if _, err := p.Submit(t.Context(), testJournal, c); !isNotAccepted(err) {
			t.Errorf("an unknown member: %v", err)
		}
		c.Type = "shout"
		if _, err := p.Submit(t.Context(), testJournal, c); !isNotAccepted(err) {
			t.Errorf("an unknown type: %v", err)
		}
		equal(t, p.owner.words(), nil)
	})
}

// TestRevocation: the owner learns with which credential a command was accepted, and as of when, and may refuse it.
func TestRevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		revoked := submit.Credential{Sequence: 5, Principal: "revoked"}
		p := newPair(t, newOwner(t), func(s *ServerConfig, _ *ClientConfig) {
			s.Judge = func(c submit.Credential) error {
				if c == revoked {
					return errors.New("revoked")
				}
				return nil
			}
		})
		if _, err := p.say(submit.WithCredential(t.Context(), func() submit.Credential { return revoked }), "no"); !isNotAccepted(err) {
			t.Errorf("%v", err)
		}
		later := func() submit.Credential { return submit.Credential{Sequence: 6, Principal: "revoked"} }
		if _, err := p.say(submit.WithCredential(t.Context(), later), "yes"); err != nil {
			t.Errorf("%v", err)
		}
		equal(t, p.owner.words(), []string{"yes"})
	})
}

// TestGone: a command whose client is gone is withdrawn, unless it was decided.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		resume := p.owner.pause()
		ctx, cancel := context.WithCancel(t.Context())
		out := p.later(ctx, command("gone"))
		synctest.Wait()
		cancel()
		if o := <-out; !isUnknown(o.Err) {
			t.Errorf("%+v", o)
		}
		time.Sleep(gatherTime)
		synctest.Wait()
		if p.owner.pending() != 0 {
			t.Error("the owner still has the command")
		}
		resume()
		equal(t, p.owner.words(), nil)
	})
}

// TestTimeout: a command that is not answered in time may still take effect.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		defer p.owner.pause()()
		began := time.Now()
		if _, err := p.say(t.Context(), "late"); !isUnknown(err) {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took != answerTimeout {
			t.Errorf("after %v", took)
		}
	})
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

// TestRevisions: a node of build 0.1.0, which lists no forms, and one of this build have streams to each other.
func TestRevisions(t *testing.T) {
	for name, c := range map[string]struct{ node, owner bool }{"an older owner": {node: true}, "an older node": {owner: true}, "both": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOwner(t)
				n := &network{connections: make(chan net.Conn), closed: make(chan struct{})}
				p := &pair{owner: o, server: NewServer(serverConfig(o)), network: n}
				web := &http.Server{Protocols: protocols(true), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !c.node {
						r.Header.Del(revisionHeader)
					}
					if !c.owner {
						r.Header.Del(revisionHeader)
						w = withoutRevision{w}
					}
					p.server.ServeHTTP(w, r)
				})}
				p.connect(t, o, web, clientConfig(n))
				if _, err := p.say(t.Context(), "hello"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// withoutRevision answers as a build that knows no revisions.
type withoutRevision struct{ http.ResponseWriter }

func (w withoutRevision) WriteHeader(status int) {
	w.Header().Del(revisionHeader)
	w.ResponseWriter.WriteHeader(status)
}

func (w withoutRevision) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestARevisionIsNotLowered: somebody between the nodes cannot have them use an older revision than both know.
func TestARevisionIsNotLowered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner(t)
		n := &network{connections: make(chan net.Conn), closed: make(chan struct{})}
		p := &pair{owner: o, server: NewServer(serverConfig(o)), network: n}
		web := &http.Server{Protocols: protocols(true), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.server.ServeHTTP(withoutRevision{w}, r)
		})}
		p.connect(t, o, web, clientConfig(n))
		if _, err := p.say(t.Context(), "hello"); !isNotAccepted(err) {
			t.Errorf("%v", err)
		}
		equal(t, o.words(), nil)
	})
}

// TestUnknownCommands: a node does not send what the owner has said that it does not know. It sends the rest.
func TestUnknownCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := FormsOf(decide.NewPayloads(func() decide.Payload { return new(say) }))
		p := newPair(t, newOwner(t), func(s *ServerConfig, c *ClientConfig) {
			s.Forms = func(string) []Form { return said }
			c.Forms = func(string) []Form { return append([]Form{{Type: "shout", Hash: 1}}, said...) }
		})
		if _, err := p.say(t.Context(), "first"); err != nil {
			t.Error(err)
		}
		sent := testutil.ToFloat64(p.Client.metrics.commands)
		c := command("hello")
		c.Type = "shout"
		if _, err := p.Submit(t.Context(), testJournal, c); !isNotAccepted(err) {
			t.Errorf("an unknown type: %v", err)
		}
		if now := testutil.ToFloat64(p.Client.metrics.commands); now != sent {
			t.Errorf("%v commands were sent", now-sent)
		}
		if _, err := p.say(t.Context(), "second"); err != nil {
			t.Error(err)
		}
		equal(t, p.owner.words(), []string{"first", "second"})
	})
}

// Outer and outer are embedded in the payloads of TestFormHashes, which declaredForm is another one of.
type (
	Outer struct {
		A string `json:"a"`
	}
	outer struct {
		A string `json:"a"`
	}
	declaredForm struct {
		A string `json:"a"`
		B *struct{ N int }
	}
)

func (*declaredForm) FormHash() uint64 { return 1 }

// TestFormHashes: the hash of a form depends on everything that makes two builds encode a payload differently, and on nothing else.
func TestFormHashes(t *testing.T) {
	type word string
	type inner struct{ N int }
	want := hashOf(&struct {
		A string `json:"a"`
		B *inner
	}{})
	for name, c := range map[string]struct {
		payload any
		same    bool
	}{
		"the same": {&struct {
			A string `json:"a"`
			B *inner
		}{}, true},
		"another named kind": {&struct {
			A word `json:"a"`
			B *inner
		}{}, true},
		"another name": {&struct {
			A string `json:"b"`
			B *inner
		}{}, false},
		"another kind": {&struct {
			A int `json:"a"`
			B *inner
		}{}, false},
		"one member more": {&struct {
			A string `json:"a"`
			B *inner
			C bool
		}{}, false},
		"another member of a member": {&struct {
			A string `json:"a"`
			B *struct{ M int }
		}{}, false},
		"a type with its own form": {&struct {
			A scalar.ID `json:"a"`
			B *inner
		}{}, false},
		"the same name of another field": {&struct {
			X string `json:"a"`
			Y *inner `json:"B"`
		}{}, true},
		"a member that is left out": {&struct {
			A string `json:"a"`
			C string `json:"-"`
			B *inner
		}{}, true},
		"a member that may be left out": {&struct {
			A string `json:"a,omitzero"`
			B *inner
		}{}, false},
		"an embedded struct": {&struct {
			Outer
			B *inner
		}{}, true},
		"an embedded struct that is not exported": {&struct {
			outer
			B *inner
		}{}, true},
		"an embedded struct with a name": {&struct {
			Outer `json:"outer"`
			B     *inner
		}{}, false},
		"a field that is not exported": {&struct {
			A string `json:"a"`
			b string
			B *inner
		}{}, true},
		"a declared form": {&declaredForm{}, false},
	} {
		if got := hashOf(c.payload); (got == want) != c.same {
			t.Errorf("%s: the hash is %x beside %x", name, got, want)
		}
	}
}

// TestContact: a node without contact to the brokers admits no command, neither for another node's owner nor for its own.
func TestContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		contact := true
		p.Contact = func() bool { return contact }
		for _, here := range []submit.BatchSubmitter{elsewhere{}, here{}} {
			p.Here, contact = here, true
			if _, err := p.say(t.Context(), "yes"); err != nil {
				t.Error(err)
			}
			contact = false
			if _, err := p.say(t.Context(), "no"); !isNotAccepted(err) {
				t.Errorf("%v", err)
			}
			if out := p.SubmitAll(t.Context(), testJournal, []decide.Command{command("no")}); !isNotAccepted(out[0].Err) {
				t.Errorf("%v", out[0].Err)
			}
		}
		equal(t, p.owner.words(), []string{"yes"})
	})
}

// TestGauges: the metrics say how many commands are on their way, how many more may follow, and how old the last sign of life is.
func TestGauges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		read := func(name string) float64 {
			r := prometheus.NewPedanticRegistry()
			r.MustRegister(p.Client.Collectors()...)
			families, err := r.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				if f.GetName() == name {
					return f.GetMetric()[0].GetGauge().GetValue()
				}
			}
			return -1
		}
		resume := p.owner.pause()
		out := p.later(t.Context(), command("hello"))
		time.Sleep(pingInterval / 2)
		for name, want := range map[string]float64{"perpetua_peer_unanswered": 1, "perpetua_peer_credit": maxCommands - 1, "perpetua_peer_in_doubt": 0,
			"perpetua_peer_ping_age_seconds": (pingInterval / 2).Seconds()} {
			if got := read(name); got != want {
				t.Errorf("%s is %v instead of %v", name, got, want)
			}
		}
		s := p.Client.shard(testShard)
		s.mu.Lock()
		s.streams[ownerURL].stop()
		s.mu.Unlock()
		synctest.Wait()
		if got := read("perpetua_peer_in_doubt"); got != 1 {
			t.Errorf("%v commands are in doubt", got)
		}
		resume()
		<-out
		if got := read("perpetua_peer_in_doubt"); got != 0 {
			t.Errorf("%v commands are in doubt", got)
		}
	})
}

// TestARepeatedHelloTakesNoCredit: what a stream is granted counts once the node has proved that it has the key.
func TestARepeatedHelloTakesNoCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, newOwner(t))
		if _, err := p.say(t.Context(), "hello"); err != nil {
			t.Fatal(err)
		}
		hi := hello{wire: wire, node: "n", incarnation: newNonce(), nonce: newNonce(), shard: testShard}
		c := p.Client.newTransport()
		defer c.CloseIdleConnections()
		body, to := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ownerURL+Path, body)
		if err != nil {
			t.Fatal(err)
		}
		go to.Write(appendFrame(nil, newProver(secret, toOwner), kindHello, hi.visit))
		response, err := c.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", response, err)
		}
		synctest.Wait()
		p.server.mu.Lock()
		granted := p.server.granted[testShard]
		p.server.mu.Unlock()
		if granted != maxCommands {
			t.Errorf("%d commands are granted to one stream and a hello", granted)
		}
		to.Close()
		response.Body.Close()
	})
}
