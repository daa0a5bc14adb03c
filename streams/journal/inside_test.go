package journal

import (
	"sync"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
)

// waits is a state with nothing but a time at which something becomes due.
type waits struct {
	decide.State
	at scalar.Time
}

func (w waits) NextDue() (scalar.Time, bool) { return w.at, true }

func (waits) Due(scalar.Time) decide.Urgency { return decide.Nothing }

// bare is a term of an owner that reaches no broker.
func bare(t *testing.T) *term {
	t.Helper()
	c, err := NewClient(Config{Brokers: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	o, err := NewOwner(OwnerConfig{Client: c, Rules: recordtest.Rules{}, Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	return newTerm(o, new(sync.WaitGroup))
}

func TestHowLongATermSleeps(t *testing.T) {
	term := bare(t)
	now := scalar.TimeOf(time.Now())
	far, err := scalar.ParseTime("9999-12-31T23:59:59.999999Z")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what          string
		at            scalar.Time
		atLeast, most time.Duration
	}{
		{"due in the farthest future", far, idle, idle},
		{"due in a year", now + 365*scalar.Day, idle, idle},
		{"due soon", now + 5*scalar.Second, time.Second, 5 * time.Second},
		{"due now, and held back by the rules", now, overdue, overdue},
		{"due long ago, and held back by the rules", 1, overdue, overdue},
	} {
		term.state = waits{at: c.at}
		if got, err := term.untilNext(); err != nil || got < c.atLeast || got > c.most {
			t.Errorf("%s: %v, %v", c.what, got, err)
		}
	}
}

// TestATermThatNeverServedKeepsWhatWasKept is about a term that a foreign one ends between its own taken record and
// its first decision.
func TestATermThatNeverServedKeepsWhatWasKept(t *testing.T) {
	term := bare(t)
	r := &request{reply: make(chan answer, 1)}
	gone := &request{reply: make(chan answer, 1)}
	gone.fate.Store(abandoned)
	term.o.kept = []kept{{request: gone}, {request: r, record: scalar.ID{1}}}
	term.number = 7
	term.o.close(term)
	if left := term.o.kept; len(left) != 1 || left[0].request != r || left[0].record != (scalar.ID{1}) {
		t.Errorf("kept %+v", left)
	}
	term = newTerm(term.o, term.reads)
	term.number, term.fates = 8, map[scalar.ID]*record.Entry{{1}: {Record: &record.Record{}}}
	term.resume()
	term.o.close(term)
	if len(term.o.kept) != 0 || len(r.reply) != 1 {
		t.Errorf("after it was answered, kept %+v", term.o.kept)
	}
}

// TestASweepWhoseBeginningIsKnownGoesOn is about a command whose record was acknowledged, so that no fold has to meet
// it again: one that begins with a newer seed does not. To decide it anew would do it twice.
func TestASweepWhoseBeginningIsKnownGoesOn(t *testing.T) {
	term := bare(t)
	id := scalar.ID{3}
	under := &request{command: decide.Command{ID: id}, reply: make(chan answer, 1)}
	ended := &request{command: decide.Command{ID: scalar.ID{4}}, reply: make(chan answer, 1)}
	term.resumed = true
	term.flight.last = record.Position{Offset: 20, Sequence: 20}
	term.pending[id] = pending{request: under, sequence: 20}
	last := &slot{entry: record.Entry{Record: &record.Record{Command: decide.Recorded{ID: scalar.ID{5}}}, Position: record.Position{Sequence: 21}}}
	term.held.push(heldReply{tip: 21, request: ended, slot: last, began: 19})
	term.o.close(term)
	term = newTerm(term.o, term.reads)
	term.fates = term.o.fates()
	term.resume()
	if len(term.pending) != 2 || term.again.len() != 0 {
		t.Errorf("%d go on and %d are decided anew", len(term.pending), term.again.len())
	}
}

// TestAWindowIsReservedBeforeDecide fills each of a term's bounds up to the last record that has room.
func TestAWindowIsReservedBeforeDecide(t *testing.T) {
	limit := recordtest.Rules{}.Limit()
	for _, c := range []struct {
		what string
		fill func(f *flight)
		room bool
	}{
		{"nothing in flight", func(*flight) {}, true},
		{"room for one record", func(f *flight) { f.inFlight.items = make([]*slot, 4095) }, true},
		{"as many records as may be", func(f *flight) { f.inFlight.items = make([]*slot, 4096) }, false},
		{"room for one of the largest", func(f *flight) { f.bytes = 16<<20 - limit }, true},
		{"a byte less", func(f *flight) { f.bytes = 16<<20 - limit + 1 }, false},
		{"as many as the reader may be behind", func(f *flight) { f.unseen.items = make([]*slot, maxUnseen) }, false},
		{"as many bytes as the reader may be behind", func(f *flight) { f.unseenBytes = maxUnseenBytes }, false},
	} {
		term := bare(t)
		c.fill(&term.flight)
		if term.roomy() != c.room {
			t.Errorf("%s: room for another: %v", c.what, !c.room)
		}
	}
}
