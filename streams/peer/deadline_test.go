package peer

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

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
