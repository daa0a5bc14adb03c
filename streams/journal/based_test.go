package journal_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// history is a log with records that readers skip, made without an owner.
type history struct {
	valid []record.Entry
	kafka []*kgo.Record
	id    scalar.ID
}

// newHistory makes n valid records: a genesis, and additions in terms of 500 records.
func newHistory(topic string, n int, random *rand.Rand) *history {
	h := &history{id: scalar.ID{7, 7}}
	for sequence := range int64(n) {
		at := scalar.Time(1_700_000_000_000_000 + sequence)
		r := &record.Record{Sequence: sequence, Time: at, Outcome: decide.Accepted,
			Command: decide.Recorded{ID: record.NewCommandID(at.Std()), Type: "counter.change", Actor: decide.Actor{Sub: "u"}},
			Events:  []decide.Event{&added{Name: "a", N: 1, Total: h.total() + 1}}}
		switch {
		case sequence == 0:
			r.Command.Type, r.Command.Actor = record.TypeGenesis, decide.Engine
			r.Events = []decide.Event{&record.Genesis{Journal: "trading", JournalID: h.id, Partitions: 1}}
		case sequence%500 == 1:
			r.Command.Type, r.Command.Actor = record.TypeTermStarted, decide.Engine
			r.Events = []decide.Event{&record.TermStarted{Term: sequence/500 + 1, Node: "n", URL: "http://n", Build: "test"}}
		}
		if sequence > 0 {
			r.Prev = h.valid[sequence-1].Position.Hash
		}
		h.add(topic, r, true)
		for random.IntN(8) == 0 { // what lost a race, and what was stored twice
			lost := *r
			lost.Time++
			h.add(topic, &lost, false)
			old := *h.kafka[random.IntN(len(h.kafka))]
			h.kafka = append(h.kafka, &old)
		}
	}
	return h
}

func (h *history) add(topic string, r *record.Record, valid bool) {
	value, err := record.Encode(nil, r)
	if err != nil {
		panic(err)
	}
	if valid {
		h.valid = append(h.valid, record.Entry{Record: r, Journal: h.id, Value: value,
			Position: record.Position{Offset: int64(len(h.kafka)), Sequence: r.Sequence, Hash: sha256.Sum256(value)}})
	}
	h.kafka = append(h.kafka, journal.KafkaRecord(topic, "trading", 0, h.id, r, value))
}

// total returns the sum of the additions so far.
func (h *history) total() (n int) {
	for i := len(h.valid) - 1; i >= 0; i-- {
		if a, ok := h.valid[i].Record.Events[0].(*added); ok {
			return a.Total
		}
	}
	return 0
}

// base returns the base at a sequence.
func (h *history) base(sequence int64) record.Base {
	return record.Base{Journal: "trading", Partitions: 1, JournalID: h.id, Sequence: sequence, Prev: h.valid[sequence-1].Position.Hash,
		Term: h.term(sequence - 1)}
}

// term returns the term that a record belongs to.
func (h *history) term(sequence int64) int64 {
	for ; sequence > 0; sequence-- {
		if taken, ok := h.valid[sequence].Record.Events[0].(*record.TermStarted); ok {
			return taken.Term
		}
	}
	return 0
}

// seed returns the state after a record.
func (h *history) seed(sequence int64) *record.Seed {
	s := newCounters()
	for _, e := range h.valid[:sequence+1] {
		s.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
	}
	at := h.valid[sequence]
	return &record.Seed{State: s, Position: at.Position, Term: h.term(sequence), Time: at.Record.Time, Journal: h.id}
}

// positions returns every 64th position, and the last.
func (h *history) positions() (all []record.Position) {
	for i := 0; i < len(h.valid); i += 64 {
		all = append(all, h.valid[i].Position)
	}
	return append(all, h.valid[len(h.valid)-1].Position)
}

// kept is a source of one base that tests change.
type kept struct{ atomic.Pointer[record.Base] }

func (k *kept) Base(context.Context, string, int32) (*record.Base, error) { return k.Load(), nil }
func (k *kept) String() string                                            { return "the test" }

// copied is a source of one copy, or of none.
type copied struct {
	name string
	base *record.Base
}

func (c copied) Base(context.Context, string, int32) (*record.Base, error) { return c.base, nil }
func (c copied) String() string                                            { return c.name }

type mute struct{}

func (mute) Base(context.Context, string, int32) (*record.Base, error) {
	return nil, errors.New("no answer")
}
func (mute) String() string { return "a mute source" }

// knows is a source of positions.
type knows []record.Position

func (k knows) Positions(context.Context, string, int32) ([]record.Position, error) { return k, nil }

// based is a log on brokers, with the client of a process that knows its base.
type based struct {
	*rig
	*history
	kept    *kept
	trimmer base.Trimmer
}

// newBased writes a history to a topic of a rig.
func newBased(r *rig, n int, random *rand.Rand) *based {
	r.t.Helper()
	b := &based{rig: r, history: newHistory(r.topic(), n, random), kept: new(kept)}
	kc, err := r.client.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(4<<10))
	if err != nil {
		r.t.Fatal(err)
	}
	defer kc.Close()
	if err := kc.ProduceSync(r.context(), b.kafka...).FirstErr(); err != nil {
		r.t.Fatal(err)
	}
	b.client = b.with(b.kept)
	b.trimmer = b.client.Trimmer()
	return b
}

// with returns a client with sources of bases.
func (b *based) with(sources ...base.Source) *journal.Client {
	b.t.Helper()
	b.metrics = journal.NewMetrics()
	var logger *slog.Logger
	if os.Getenv("TEST_LOG") != "" {
		logger = slog.New(slog.NewTextHandler(b.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	c, err := journal.NewClient(journal.Config{Brokers: b.brokers, Prefix: b.prefix, Bases: sources, Metrics: b.metrics, Logger: logger})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return c
}

// trim keeps a base and trims the log to it. It returns the offset at which the log then begins.
func (b *based) trim(sequence int64) int64 {
	b.t.Helper()
	now := b.base(sequence)
	b.kept.Store(&now)
	start, err := b.client.Trim(b.context(), b.trimmer, now, b.valid[sequence].Position.Offset)
	if err != nil {
		b.t.Fatal(err)
	}
	return start
}

// from reads the hashes of all records after a position.
func (b *based) from(c *journal.Client, at record.Position) (got []record.Hash, err error) {
	r := journal.NewReader(c, b.rules, 0, at)
	r.Audit()
	defer r.Close()
	err = r.ToTip(b.context(), func(entries []record.Entry) error {
		for _, e := range entries {
			got = append(got, e.Position.Hash)
		}
		return nil
	})
	return got, err
}

func (b *based) hashes(after int64) (want []record.Hash) {
	for _, e := range b.valid[after+1:] {
		want = append(want, e.Position.Hash)
	}
	return want
}

// answers compares every way to read with the untrimmed log, for a log trimmed at a sequence that begins at an offset.
func (b *based) answers(r *rapid.T, sequence, start int64) {
	t, last := b.t, int64(len(b.valid)-1)
	if err := b.client.CheckTopics(b.context(), "trading"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []int64{sequence - 1, rapid.Int64Range(sequence-1, last).Draw(r, "position"), last} {
		at := b.valid[p].Position
		at.Offset += rapid.SampledFrom([]int64{0, -at.Offset - 1, 5, -5}).Draw(r, "hint")
		if got, err := b.from(b.client, at); err != nil || !slices.Equal(got, b.hashes(p)) {
			t.Fatalf("after %d of a log from %d: %d records, %v; want %d; start %d, position %v of %v, embedded %v, end %v", p, sequence, len(got), err, len(b.hashes(p)), start, at, b.valid[p].Position, b.fake == nil, b.valid[last].Position)
		}
		entry, err := b.client.ReadAt(b.context(), b.rules, 0, record.Before, max(p, sequence))
		if err != nil || entry.Position.Hash != b.valid[max(p, sequence)].Position.Hash || entry.Journal != b.id {
			t.Fatalf("record %d: %v, %v", p, entry.Position, err)
		}
	}
	below := rapid.Int64Range(0, sequence-1).Draw(r, "below")
	got, err := b.from(b.client, b.valid[below].Position)
	var trimmed *record.TrimmedError
	switch held := b.valid[below].Position.Offset >= start; {
	case held || below == sequence-1:
		if err != nil || !slices.Equal(got, b.hashes(below)) {
			t.Fatalf("after %d, which the topic holds: %d records, %v", below, len(got), err)
		}
	case !errors.As(err, &trimmed) || trimmed.Base != b.base(sequence) || !slices.Equal(got, b.hashes(below)[:len(got)]): // copies may be left
		t.Fatalf("after %d, before the base %d: %d records, %v", below, sequence, len(got), err)
	}
	if start > 0 {
		if got, err := b.from(b.client, record.Before); !errors.As(err, &trimmed) || len(got) > 0 {
			t.Fatalf("from genesis: %d records, %v", len(got), err)
		}
		if begins, lacks, err := b.client.Beginning(b.context(), "trading", 0); err != nil || lacks == nil || !begins.Equal(b.base(sequence).Before()) {
			t.Fatalf("it begins after %v, %v", begins, err)
		}
	}
	b.folds(r, sequence)
}

// folds compares a follower and an owner that start from a state.
func (b *based) folds(r *rapid.T, sequence int64) {
	t, ctx, last := b.t, b.context(), int64(len(b.valid)-1)
	from := rapid.Int64Range(sequence-1, last).Draw(r, "seed")
	fold := follow.New(b.client, b.rules, 0, follow.FromSeed(*b.seed(from)))
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- fold.Run(running) }()
	if err := fold.Wait(ctx, last); err != nil {
		t.Fatal(err)
	}
	stop()
	<-ended
	fold.View(func(s decide.State, at record.Position) {
		if got := s.(*counters).totals["a"]; got != b.total() || !at.Equal(b.valid[last].Position) {
			t.Fatalf("folded to %d at %v, want %d", got, at, b.total())
		}
	})
	cfg := b.ownerConfig("n1")
	cfg.Known = []journal.Known{knows(b.positions())}
	cfg.Seed = func(context.Context) (*record.Seed, error) { return b.seed(from), nil }
	o := b.run(cfg).ready()
	if got, _ := o.total("a"); got != fmt.Sprint(b.total()) {
		t.Fatalf("the owner has %s, want %d", got, b.total())
	}
	if n, _ := o.Serving(); n != b.term(last)+1 {
		t.Fatalf("term %d after %d", n, b.term(last))
	}
	for range 2 { // the taken record, and one more
		e := o.do(command(&add{"a", 1})).Entry
		b.valid = append(b.valid, *e)
	}
	if err := o.end(); err != nil {
		t.Fatal(err)
	}
	b.reread()
}

// reread takes the records that an owner has appended into the history.
func (b *based) reread() {
	n := len(b.valid) - 2
	b.valid = b.valid[:n]
	r := journal.NewReader(b.client, b.rules, 0, b.valid[n-1].Position)
	defer r.Close()
	err := r.ToTip(b.context(), func(entries []record.Entry) error {
		b.valid = append(b.valid, entries...)
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// trimmedChecks is how many random logs are trimmed on each kind of brokers.
const trimmedChecks = 2

// TestATrimmedLogAnswersAsBefore trims logs twice at random bases, on brokers that delete up to any offset and on an embedded
// broker, which deletes whole segments.
func TestATrimmedLogAnswersAsBefore(t *testing.T) {
	const n = 400
	embedded := func(r *rig) *broker.Broker {
		b, err := broker.Start(r.context(), broker.Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), SegmentBytes: 48 << 10})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		return b
	}
	checks := 0
	rapid.Check(t, func(r *rapid.T) {
		if checks++; checks > 2*trimmedChecks {
			return
		}
		var b *based
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "noise"), 1))
		if checks <= trimmedChecks {
			b = newBased(newRig(t), n, random)
		} else {
			rig := &rig{t: t}
			local := embedded(rig)
			rig.brokers = local.Addrs()
			b = newBased(rig.start(), n, random)
			b.trimmer = local
		}
		first := rapid.Int64Range(1, n-1).Draw(r, "base")
		b.answers(r, first, b.trim(first))
		second := rapid.Int64Range(first, n-1).Draw(r, "second base")
		b.answers(r, second, b.trim(second))
	})
}

// TestACopyAfterTheBase starts a reader at the position before the base, with a hint at a later copy of its deleted record.
func TestACopyAfterTheBase(t *testing.T) {
	const at = 10
	b := newBased(newRig(t), 30, rand.New(rand.NewPCG(1, 1)))
	last := b.kafka[len(b.kafka)-1]
	copied := *b.kafka[b.valid[at-1].Position.Offset]
	b.produce(copied.Value, last.Value)
	b.trim(at)
	before := b.valid[at-1].Position
	before.Offset = int64(len(b.kafka))
	if got, err := b.from(b.client, before); err != nil || !slices.Equal(got, b.hashes(at-1)) {
		t.Errorf("%d records, %v; want %d", len(got), err, len(b.hashes(at-1)))
	}
}

// TestATrimmedLogIsRefused names what is wrong, and appends nothing, least of all a genesis.
func TestATrimmedLogIsRefused(t *testing.T) {
	const n, at = 300, 200
	b := newBased(newRig(t), n, rand.New(rand.NewPCG(1, 1)))
	b.trim(at)
	other, forged, old := b.base(at), b.base(at), b.base(at-50)
	other.JournalID, forged.Prev = scalar.ID{9}, record.Hash{9}
	end, err := b.client.Tip(b.context(), "trading", 0)
	if err != nil {
		t.Fatal(err)
	}
	source := func(name string, c record.Base) base.Source { return copied{name, &c} }
	for what, c := range map[string]struct {
		sources []base.Source
		want    string
	}{
		"no copy is left":             {nil, "its base is lost: nothing here keeps one"},
		"every copy is lost":          {[]base.Source{copied{name: "the data folder"}, copied{name: "Postgres"}}, "its base is lost: there is no copy in the data folder or Postgres"},
		"the base of another journal": {[]base.Source{source("the data folder", other)}, "the base in the data folder is of the journal"},
		"a wrong hash":                {[]base.Source{source("Postgres", forged)}, "the base in Postgres is wrong"},
		"two hashes":                  {[]base.Source{source("Postgres", forged), source("the data folder", b.base(at))}, "contradict each other"},
		"records after it are lost":   {[]base.Source{source("Postgres", old)}, "records are lost"},
	} {
		client := b.with(c.sources...)
		refused := func(who string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %s: %v", what, who, err)
			}
		}
		refused("the check of the topics", client.CheckTopics(b.context(), "trading"))
		_, err := b.from(client, b.valid[n-1].Position)
		refused("a reader", err)
		if !record.Final(err) {
			t.Errorf("%s: a reader goes on after %v", what, err)
		}
		cfg := b.ownerConfig("n1")
		cfg.Client = client
		cfg.Seed = func(context.Context) (*record.Seed, error) { return b.seed(n - 1), nil }
		o := b.run(cfg)
		<-o.done
		refused("an owner", o.err)
		if base, diverged := b.alarms("log_base"), b.alarms("log_diverged"); base+diverged == 0 || b.alarms("log_broken") > 0 {
			t.Errorf("%s: %v alarms of the base, %v of other history", what, base, diverged)
		}
	}
	if now, err := b.client.Tip(b.context(), "trading", 0); err != nil || now != end {
		t.Errorf("the log ends at %d, %v, and ended at %d", now, err, end)
	}
}

// TestAnEmptyLogWithABaseGetsNoGenesis is for a topic that was lost as a whole.
func TestAnEmptyLogWithABaseGetsNoGenesis(t *testing.T) {
	r := newRig(t)
	lost := newHistory(r.topic(), 10, rand.New(rand.NewPCG(1, 1))).base(5)
	b := &based{rig: r}
	client := b.with(copied{"Postgres", &lost})
	if err := client.CheckTopics(r.context(), "trading"); err == nil || !strings.Contains(err.Error(), "records are lost") {
		t.Errorf("the check of the topics: %v", err)
	}
	cfg := r.ownerConfig("n1")
	cfg.Client = client
	o := r.run(cfg)
	<-o.done
	var diverged *record.DivergedError
	if !errors.As(o.err, &diverged) || !diverged.Have.Equal(lost.Before()) {
		t.Errorf("the owner ended with %v", o.err)
	}
	if end, err := client.Tip(r.context(), "trading", 0); err != nil || end != 0 {
		t.Errorf("the log ends at %d, %v", end, err)
	}
}

// TestASilentSourceOfBasesIsWaitedFor keeps a reader waiting, and not one that needs no base.
func TestASilentSourceOfBasesIsWaitedFor(t *testing.T) {
	b := newBased(newRig(t), 100, rand.New(rand.NewPCG(1, 1)))
	client := b.with(mute{})
	if got, err := b.from(client, record.Before); err != nil || len(got) != 100 {
		t.Errorf("the log from its genesis on: %d records, %v", len(got), err)
	}
	b.trim(50)
	client = b.with(mute{})
	ctx, cancel := context.WithTimeout(b.context(), 300*time.Millisecond)
	defer cancel()
	r := journal.NewReader(client, b.rules, 0, b.valid[99].Position)
	defer r.Close()
	if _, err := r.Poll(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a reader: %v", err)
	}
	if err := client.CheckTopics(b.context(), "trading"); err == nil || record.Final(err) || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("the check of the topics: %v", err)
	}
}

// TestAnOwnerOfATrimmedLogNeedsASnapshot tries again until there is one, and appends nothing before.
func TestAnOwnerOfATrimmedLogNeedsASnapshot(t *testing.T) {
	b := newBased(newRig(t), 100, rand.New(rand.NewPCG(1, 1)))
	b.trim(50)
	var seed atomic.Pointer[record.Seed]
	cfg := b.ownerConfig("n1")
	cfg.Seed = func(context.Context) (*record.Seed, error) { return seed.Load(), nil }
	o := b.run(cfg)
	o.until("it has tried twice", func() bool { return testutil.ToFloat64(b.metrics.TermEnds.WithLabelValues("trading", "error")) >= 2 })
	seed.Store(b.seed(49))
	if got, _ := o.ready().total("a"); got != fmt.Sprint(b.total()) {
		t.Errorf("the owner has %s, want %d", got, b.total())
	}
}

// TestTrimKeepsWhatIsNeeded refuses to delete what is not safe, or not vouched for by a base.
func TestTrimKeepsWhatIsNeeded(t *testing.T) {
	const n, at = 300, 200
	b := newBased(newRig(t), n, rand.New(rand.NewPCG(1, 1)))
	now, later, other := b.base(at), b.base(at+1), b.base(at)
	other.Prev[0]++
	offset := b.valid[at].Position.Offset
	try := func(keep *record.Base, trim record.Base, safe int64) error {
		b.kept.Store(keep)
		_, err := b.with(b.kept).Trim(b.context(), b.trimmer, trim, safe)
		return err
	}
	for what, err := range map[string]error{
		"past what is safe":       try(&now, now, offset-1),
		"a base that is not kept": try(nil, now, offset),
		"an older base":           try(&later, now, offset),
		"another hash":            try(&other, other, offset),
		"no base":                 try(&now, record.Base{}, offset),
	} {
		if err == nil {
			t.Errorf("%s: the log was trimmed", what)
		}
	}
	direct := func(topic string, trim base.Trim) error {
		_, err := b.trimmer.Trim(b.context(), topic, trim, trim.Offset)
		return err
	}
	topic, wrong := b.client.Topic("trading"), now
	wrong.JournalID = scalar.ID{9}
	for what, err := range map[string]error{
		"an offset below the base's":   direct(topic, base.Trim{Base: now, Offset: offset - 1}),
		"an offset above the base's":   direct(topic, base.Trim{Base: now, Offset: b.valid[at+1].Position.Offset}),
		"another hash":                 direct(topic, base.Trim{Base: other, Offset: offset}),
		"another journal's id":         direct(topic, base.Trim{Base: wrong, Offset: offset}),
		"the topic of another journal": direct(b.client.Topic("identity"), base.Trim{Base: now, Offset: offset}),
	} {
		if err == nil {
			t.Errorf("%s: the log was trimmed", what)
		}
	}
	if start := b.starts(); start != 0 {
		t.Fatalf("the log begins at %d", start)
	}
	if err := try(&now, now, offset); err != nil || b.starts() > offset {
		t.Errorf("the log begins at %d, %v", b.starts(), err)
	}
}

func (b *based) starts() int64 {
	b.t.Helper()
	admin := kadm.NewClient(must(b.client.Kafka()))
	defer admin.Close()
	starts, err := admin.ListStartOffsets(b.context(), b.topic())
	if err != nil {
		b.t.Fatal(err)
	}
	o, _ := starts.Lookup(b.topic(), 0)
	return o.Offset
}
