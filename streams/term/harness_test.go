package term

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/term/termtest"
)

// rig drives one machine by hand, over a log that holds what the test says.
type rig struct {
	t   *testing.T
	m   *Machine
	now Clock
	out Output
	log []record.Entry
	ids uint64
}

// newRig returns a machine over a log with a genesis.
func newRig(t *testing.T, change ...func(*Limits)) *rig {
	t.Helper()
	r := &rig{t: t, now: Clock{Wall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Mono: time.Hour}}
	cfg := Config{Rules: termtest.Rules{}, Shard: submit.Shard{Journal: "trading"}, Node: "n1", Limits: DefaultLimits(), NewID: r.id}
	for _, f := range change {
		f(&cfg.Limits)
	}
	r.m = New(cfg, r.now)
	r.append(&record.Record{Time: scalar.TimeOf(r.now.Wall), Outcome: decide.Accepted, Command: decide.Recorded{ID: r.id(0), Type: record.TypeGenesis, Actor: decide.Engine},
		Events: []decide.Event{&record.Genesis{Journal: "trading", JournalID: scalar.ID{9}, Partitions: 1}}})
	return r
}

// id returns a new id.
func (r *rig) id(scalar.Time) (id scalar.ID) {
	r.ids++
	binary.BigEndian.PutUint64(id[8:], r.ids)
	return id
}

// append appends a record as some owner would.
func (r *rig) append(v *record.Record) record.Entry {
	r.t.Helper()
	value, err := record.Encode(nil, v)
	if err != nil {
		r.t.Fatal(err)
	}
	e := record.Entry{Record: v, Journal: scalar.ID{9}, Value: value, Position: record.Position{Sequence: v.Sequence, Hash: hashOf(value)}}
	return r.put(e)
}

// put stores an entry at the end of the log.
func (r *rig) put(e record.Entry) record.Entry {
	e.Position.Offset = int64(len(r.log))
	r.log = append(r.log, e)
	return e
}

// foreign appends the term record of another node.
func (r *rig) foreign(number int64) record.Entry {
	last := r.log[len(r.log)-1]
	return r.append(&record.Record{Sequence: last.Position.Sequence + 1, Prev: last.Position.Hash, Time: last.Record.Time, Outcome: decide.Accepted,
		Command: decide.Recorded{ID: r.id(0), Type: record.TypeTermStarted, Actor: decide.Engine}, Events: []decide.Event{&record.TermStarted{Term: number, Node: "n2"}}})
}

// step passes an input.
func (r *rig) step(in Input) error {
	r.out.Reset()
	return r.m.Step(r.now, in, &r.out)
}

// must passes an input that succeeds.
func (r *rig) must(in Input) {
	r.t.Helper()
	if err := r.step(in); err != nil {
		r.t.Fatalf("%T: %v", in, err)
	}
}

// replay begins a term and replays the log.
func (r *rig) replay() {
	r.t.Helper()
	r.must(Begin{End: int64(len(r.log))})
	r.must(Replayed{Entries: r.log})
	r.must(ReplayEnded{})
}

// taken replays the log and takes a term.
func (r *rig) taken() *rig {
	r.t.Helper()
	r.replay()
	r.must(SetClock{})
	r.must(Take{})
	e := r.put(*r.out.Append[0].Entry)
	r.must(Read{Entries: []record.Entry{e}, Next: e.Position.Offset + 1})
	if r.m.Phase() != Taken {
		r.t.Fatalf("phase %d", r.m.Phase())
	}
	return r
}

// serving is taken for a machine that decides commands.
func (r *rig) serving() *rig {
	r.t.Helper()
	r.taken()
	r.must(Serve{})
	return r
}

// request makes a request of a user that is submitted now.
func (r *rig) request(user string, payload any) *Request {
	return &Request{Command: decide.Command{ID: r.id(0), Type: "ledger", Actor: decide.Actor{Sub: user, Broker: "b"}, Payload: payload}, Since: r.now.Mono}
}

// decideAll ticks until the machine has nothing more to do, and returns what it appended and answered.
func (r *rig) decideAll() (appended []Append, replies []Reply) {
	r.t.Helper()
	for more := true; more; more = r.out.More {
		r.must(Tick{})
		appended, replies = append(appended, r.out.Append...), append(replies, r.out.Replies...)
	}
	return appended, replies
}

// pass lets time pass.
func (r *rig) pass(d time.Duration) {
	r.now.Wall, r.now.Mono = r.now.Wall.Add(d), r.now.Mono+d
}

func deposit(n int64) *termtest.Move { return &termtest.Move{From: termtest.Bank, To: "a", Amount: n} }
