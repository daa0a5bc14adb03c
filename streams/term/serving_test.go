package term

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/term/termtest"
)

func hashOf(value []byte) record.Hash { return sha256.Sum256(value) }

// waits is a state with nothing but a time at which something becomes due.
type waits struct {
	decide.State
	at scalar.Time
}

func (w waits) NextDue() (scalar.Time, bool) { return w.at, true }

func (waits) Due(scalar.Time) decide.Urgency { return decide.Nothing }

func TestHowLongATermSleeps(t *testing.T) {
	r := newRig(t).serving()
	now := r.m.Time(r.now)
	far, err := scalar.ParseTime("9999-12-31T23:59:59.999999Z")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		at   scalar.Time
		want time.Duration
	}{
		{"due in the farthest future", far, idle},
		{"due in a year", now + 365*scalar.Day, idle},
		{"due soon", now + 5*scalar.Second, 5 * time.Second},
		{"due now, and held back by the rules", now, overdue},
		{"due long ago, and held back by the rules", 1, overdue},
	} {
		r.m.t.state = waits{at: c.at}
		if r.must(Tick{}); r.out.WakeAt != r.now.Mono+c.want {
			t.Errorf("%s: %v", c.what, r.out.WakeAt-r.now.Mono)
		}
	}
}

// TestAWindowIsReservedBeforeDecide fills each of a term's bounds up to the last record that has room.
func TestAWindowIsReservedBeforeDecide(t *testing.T) {
	for _, c := range []struct {
		what string
		fill func(f *flight)
		room bool
	}{
		{"nothing in flight", func(*flight) {}, true},
		{"room for one record", func(f *flight) { f.inFlight.items = make([]*inflightRecord, 4095) }, true},
		{"as many records as may be", func(f *flight) { f.inFlight.items = make([]*inflightRecord, 4096) }, false},
		{"room for one of the largest", func(f *flight) { f.bytes = 16<<20 - termtest.Limit }, true},
		{"a byte less", func(f *flight) { f.bytes = 16<<20 - termtest.Limit + 1 }, false},
		{"as many as the reader may be behind", func(f *flight) { f.unseen.items = make([]*inflightRecord, 4*4096) }, false},
		{"as many bytes as the reader may be behind", func(f *flight) { f.unseenBytes = 64 << 20 }, false},
	} {
		r := newRig(t)
		c.fill(&r.m.t.flight)
		if r.m.windowOpen() != c.room {
			t.Errorf("%s: room for another: %v", c.what, !c.room)
		}
	}
}

// TestARefusalWaitsForTheEndOfTheLog: a refusal leaves when the brokers have reported the end of the log after it was decided
// and the reader has passed that end, and never after a foreign term.
func TestARefusalWaitsForTheEndOfTheLog(t *testing.T) {
	r := newRig(t).serving()
	refuse := func() (asked uint64) {
		t.Helper()
		r.must(Submit{[]*Request{r.request("u", &termtest.Read{Account: "a"})}})
		r.must(Tick{})
		if len(r.out.Replies) > 0 || r.out.AskEnd == 0 {
			t.Fatalf("after the decision: %+v, and the question is %d", r.out.Replies, r.out.AskEnd)
		}
		return r.out.AskEnd
	}
	first := refuse()
	if r.must(LogEnd{Question: first - 1, Offset: 0}); len(r.out.Replies) > 0 {
		t.Error("an answer to another question counts")
	}
	if r.must(LogEnd{Question: first, Offset: int64(len(r.log))}); len(r.out.Replies) != 1 {
		t.Error("it is not answered")
	}
	second := refuse()
	e := r.foreign(2)
	if r.must(LogEnd{Question: second, Offset: int64(len(r.log))}); len(r.out.Replies) > 0 {
		t.Error("it is answered although the reader has not passed the end")
	}
	err := r.step(Read{Entries: []record.Entry{e}, Next: e.Position.Offset + 1})
	var foreign *ForeignTermError
	if !errors.As(err, &foreign) || foreign.Term != 2 || len(r.out.Replies) > 0 || r.m.Phase() != Failed {
		t.Errorf("a foreign term: %v, %+v", err, r.out.Replies)
	}
}

// TestResultsOfAnEarlierProducerSayNothing: the sequences of an earlier term's records may be those of this term's.
func TestResultsOfAnEarlierProducerSayNothing(t *testing.T) {
	r := newRig(t).serving()
	r.must(Submit{[]*Request{r.request("u", deposit(1))}})
	appended, _ := r.decideAll()
	old := Acked{Producer: r.m.producers, Acks: []Ack{{Sequence: appended[0].Entry.Position.Sequence, Offset: int64(len(r.log))}}}
	r.must(End{})
	r.serving()
	r.decideAll() // decided again, with the next sequence
	old.Acks[0].Sequence = r.m.Tip().Sequence
	old.Acks[0].Offset = int64(len(r.log))
	if r.must(old); len(r.out.Replies) > 0 {
		t.Errorf("%+v", r.out.Replies)
	}
}
