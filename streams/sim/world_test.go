package sim

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/term"
	"github.com/perpetua-exchange/perpetua/streams/term/termtest"
)

// world is one episode of the simulation: a log, the nodes and the clients. It checks the invariants as records become valid
// and answers are given.
type world struct {
	random *rand.Rand
	base   time.Time
	now    time.Duration // true time

	log    []slot // by offset
	chain  *record.Chain
	cache  *record.EncodedCache
	valid  []int64              // the offset of each valid record, by sequence
	place  map[scalar.ID]int64  // the sequence of each command in the valid log: each is there once
	never  map[scalar.ID]string // commands that were answered as never decided, with the answer: they are not in the log
	ledger *termtest.Ledger     // after the last valid record
	last   scalar.Time          // of the last valid record

	snapshots []record.Seed
	witness   record.Position // a position that something outside of the log remembers
	cut       bool            // the log has lost records that the witness knows of
	late      []*produced     // records of closed producers that are still on their way

	// What happens more often in some worlds than in others; each is one in so many steps of a node.
	rivalry  int // a node takes a term while another one serves
	failures int // a term ends by an error of its reader
	lag      int // a reader gets something
	delay    int // the log receives something
	reads    int // of a hundred commands, so many only read

	isolated isolation
	nodes    []*node
	clients  clients
	ids      uint64
	calm     bool     // no more faults
	trace    []string // the latest actions
	failure  error
}

// slot is what the log holds at one offset.
type slot struct {
	value []byte
	entry record.Entry
	valid bool
}

// produced is a record on its way from a producer to the log.
type produced struct {
	entry    *record.Entry
	producer uint64
	from     *node
	boot     int // of the node
}

func newWorld(seed uint64, nodes int) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 1)), base: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC), place: make(map[scalar.ID]int64),
		never: make(map[scalar.ID]string), ledger: termtest.Rules{}.NewState().(*termtest.Ledger), cache: record.NewEncodedCache(1 << 10)}
	w.rivalry, w.failures, w.lag = []int{80, 15, 40}[seed%3], []int{500, 300, 60}[seed%3], []int{1, 5, 2}[seed%3]
	w.delay, w.reads = []int{1, 1, 5}[seed%3], []int{20, 75, 10}[seed%3]
	w.chain = record.NewChain(termtest.Rules{}, 0, record.Before)
	w.chain.UseCache(w.cache)
	value, err := record.Encode(nil, &record.Record{Time: scalar.TimeOf(w.base), Outcome: decide.Accepted,
		Command: decide.Recorded{ID: w.id(0), Type: record.TypeGenesis, Actor: decide.Engine},
		Events:  []decide.Event{&record.Genesis{Journal: "trading", JournalID: scalar.ID{1}, Partitions: 1}}})
	if err != nil {
		w.fail("encoding the genesis: %v", err)
	}
	w.append(value)
	w.witness = w.position(0)
	for i := range nodes {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	return w
}

// id returns a new id.
func (w *world) id(scalar.Time) (id scalar.ID) {
	w.ids++
	binary.BigEndian.PutUint64(id[8:], w.ids)
	return id
}

func (w *world) fail(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf(format, args...)
	}
}

func (w *world) chance(oneIn int) bool { return w.random.IntN(oneIn) == 0 }

func (w *world) note(format string, args ...any) {
	if len(w.trace) >= 4000 {
		w.trace = w.trace[:copy(w.trace, w.trace[2000:])]
	}
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// append stores a value at the end of the log and checks what becomes valid.
func (w *world) append(value []byte) (offset int64) {
	offset = int64(len(w.log))
	entry, ok, err := w.chain.Admit(offset, value)
	if err != nil {
		w.fail("a record of a node breaks the log: %v", err)
	}
	w.log = append(w.log, slot{value, entry, ok})
	if ok {
		w.check(entry)
	}
	return offset
}

// check checks a record that has become valid.
func (w *world) check(e record.Entry) {
	r := e.Record
	if int64(len(w.valid)) != r.Sequence {
		w.fail("record %d follows record %d", r.Sequence, len(w.valid)-1)
	}
	w.valid = append(w.valid, e.Position.Offset)
	if r.Time < w.last {
		w.fail("record %d has an earlier time than the one before", r.Sequence)
	}
	w.last = r.Time
	if other, twice := w.place[r.Command.ID]; twice {
		w.fail("records %d and %d have the same command", other, r.Sequence)
	}
	w.place[r.Command.ID] = r.Sequence
	if answer, known := w.never[r.Command.ID]; known {
		w.fail("record %d has a command that was answered with %s", r.Sequence, answer)
	}
	w.ledger.Evolve(e.Stamp(), r.Command, r.Outcome, r.Events)
	if sum := w.ledger.Sum(); sum != 0 {
		w.fail("after record %d the sum of all accounts is %d", r.Sequence, sum)
	}
	if w.chance(15) {
		w.snapshot(e)
	}
	if w.chance(6) && !w.cut {
		w.witness = e.Position
	}
}

// snapshot stores a snapshot at the last valid record.
func (w *world) snapshot(e record.Entry) {
	w.snapshots = append(w.snapshots, record.Seed{State: w.ledger.Clone(), Position: e.Position, Term: w.chain.Term(), Time: e.Record.Time,
		Journal: e.Journal})
}

// position returns the position of a valid record.
func (w *world) position(sequence int64) record.Position {
	return w.log[w.valid[sequence]].entry.Position
}

// holds reports whether the log holds a position.
func (w *world) holds(p record.Position) bool {
	return p.IsBefore() || p.Sequence < int64(len(w.valid)) && w.position(p.Sequence).Equal(p)
}

// loseEnd cuts the log at its end, so far that the witness knows of a lost record, and each term that has begun as well.
func (w *world) loseEnd() {
	known := w.witness.Sequence
	for _, n := range w.nodes {
		if n.known >= 0 {
			known = min(known, n.known)
		}
	}
	if known < 3 || w.cut {
		return
	}
	keep := known - w.random.Int64N(3)
	w.note("the log is cut before record %d", keep)
	w.cut, w.late = true, nil
	w.log, w.valid = w.log[:w.valid[keep]], w.valid[:keep]
	tip := w.position(keep - 1)
	w.chain = record.NewChain(termtest.Rules{}, 0, tip)
	w.chain.SetID(scalar.ID{1})
	for id, sequence := range w.place {
		if sequence >= keep {
			delete(w.place, id)
		}
	}
	w.ledger = w.fold(termtest.Rules{}.NewState().(*termtest.Ledger), 0)
	w.last = w.log[w.valid[keep-1]].entry.Record.Time
	if w.chance(2) {
		w.rewrite(known + 3)
	}
}

// rewrite appends records of another history, up to a sequence, as a node would that nothing has told of the loss.
func (w *world) rewrite(through int64) {
	for sequence := int64(len(w.valid)); sequence <= through; sequence++ {
		value, err := record.Encode(nil, &record.Record{Sequence: sequence, Prev: w.position(sequence - 1).Hash, Time: w.last, Outcome: decide.Accepted,
			Command: decide.Recorded{ID: w.id(0), Type: decide.TypeDueSetAside, Actor: decide.Engine},
			Events:  []decide.Event{&decide.DueSetAside{Entry: "elsewhere", Error: "none"}}})
		if err != nil {
			w.fail("encoding a record: %v", err)
		}
		w.append(value)
	}
	w.snapshot(w.log[len(w.log)-1].entry)
}

// deliverLate has a record of a closed producer arrive, one of the latest. If its node still runs, the result reaches it as
// well.
func (w *world) deliverLate() {
	if len(w.late) > 0 {
		w.arrive(max(0, len(w.late)-1-w.random.IntN(6)))
	}
}

// deliverWorst has a record of a closed producer arrive that its node could take for one of its present term, since that has
// the same sequence.
func (w *world) deliverWorst() {
	for i := max(0, len(w.late)-30); i < len(w.late); i++ {
		p := w.late[i]
		if sent := p.from.sent; p.from.boot == p.boot && len(sent) > 0 && sent[0].entry.Position.Sequence == p.entry.Position.Sequence {
			w.arrive(i)
			return
		}
	}
}

// arrive has a late record arrive.
func (w *world) arrive(i int) {
	p := w.late[i]
	w.late = append(w.late[:i], w.late[i+1:]...)
	offset := w.append(p.entry.Value)
	result := term.Acked{Producer: p.producer, Acks: []term.Ack{{Sequence: p.entry.Position.Sequence, Offset: offset}}}
	switch n := p.from; {
	case n.boot != p.boot:
	case n.paused <= w.now && w.chance(2):
		n.step(result)
	default:
		n.stale = append(n.stale, result)
	}
}

// fold applies the valid records from a sequence on to a state.
func (w *world) fold(s *termtest.Ledger, from int64) *termtest.Ledger {
	for _, offset := range w.valid[from:] {
		e := w.log[offset].entry
		s.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
	}
	return s
}

// verify reads the whole log again with a chain that knows nothing, and folds it from the genesis and from snapshots.
func (w *world) verify() {
	chain, valid := record.NewChain(termtest.Rules{}, 0, record.Before), 0
	for offset, s := range w.log {
		e, ok, err := chain.Admit(int64(offset), s.value)
		if err != nil || ok != s.valid || ok && !e.Position.Equal(s.entry.Position) {
			w.fail("read again, the value at offset %d is valid: %v, %v", offset, ok, err)
			return
		}
		if ok {
			valid++
		}
	}
	if valid != len(w.valid) {
		w.fail("read again, %d records are valid and not %d", valid, len(w.valid))
	}
	digest := w.ledger.Digest()
	if w.fold(termtest.Rules{}.NewState().(*termtest.Ledger), 0).Digest() != digest {
		w.fail("a replay of the log gives another digest")
	}
	if len(w.snapshots) > 0 {
		if s := w.snapshots[w.random.IntN(len(w.snapshots))]; w.holds(s.Position) {
			if w.fold(s.State.(*termtest.Ledger).Clone(), s.Position.Sequence+1).Digest() != digest {
				w.fail("a replay from the snapshot at %v gives another digest", s.Position)
			}
		}
	}
}
