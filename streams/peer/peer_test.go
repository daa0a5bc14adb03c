package peer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
			string(got.Entry.Value) != string(e.Value) || r.Command.ID != c.ID || r.Command.Metadata.Key != "key-hello" || r.Command.Actor != c.Actor {
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
	client.Read(testJournal, 0, entry(2, id, &journaltest.WordAdded{Word: "begun"}))
	client.Read(testJournal, 0, entry(3, scalar.ID{8}, &record.TermStarted{Term: 2}))
	if c.state != sent {
		t.Fatalf("answered with %+v before its work is done", c.outcome)
	}
	client.Read(testJournal, 0, entry(4, last, &journaltest.WordAdded{Word: "finished"}))
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
