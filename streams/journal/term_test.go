package journal_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// types lists the command types of the valid records from a sequence on.
func types(entries []record.Entry, from int64) (list []string) {
	for _, e := range entries[from:] {
		list = append(list, e.Record.Command.Type)
	}
	return list
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %v instead of %v", what, got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: %v instead of %v", what, got, want)
			return
		}
	}
}

func TestTwoNodesMayRaceForTheGenesis(t *testing.T) {
	r := newRig(t)
	var owners []*running
	var gates []*gate
	for _, node := range []string{"a", "b"} {
		g := newGate()
		g.stall()
		cfg := r.ownerConfig(node)
		cfg.Client = r.newClient(nil, g)
		owners, gates = append(owners, r.run(cfg)), append(gates, g)
		t.Cleanup(g.release)
	}
	for _, g := range gates { // each has found the partition empty
		eventually(t, "its genesis is on its way", func() bool { return g.stalled() > 0 })
	}
	for _, g := range gates {
		g.release()
	}
	winner := func() bool {
		for _, x := range owners {
			if _, ok := x.Serving(); ok {
				if _, err := x.Submit(context.Background(), command(&add{"a", 1})); err == nil {
					return true
				}
			}
		}
		return false
	}
	eventually(t, "one of them serves", winner)
	var all []record.Entry
	eventually(t, "the other genesis is in the log and not valid", func() bool {
		end, err := r.client.Tip(r.context(), "trading", 0)
		if err != nil {
			t.Fatal(err)
		}
		all = r.all()
		return int64(len(all)) < end
	})
	if all[0].Record.Command.Type != record.TypeGenesis {
		t.Errorf("the first record is %s", all[0].Value)
	}
	for _, e := range all[1:] {
		if e.Record.Command.Type == record.TypeGenesis || e.Journal != all[0].Journal {
			t.Errorf("a second genesis is valid: %s", e.Value)
		}
	}
}

func TestANewTermEndsTheOldOne(t *testing.T) {
	r := newRig(t)
	a := r.owner("a").ready()
	a.do(command(&add{"a", 1}))
	b := r.owner("b").ready()
	<-a.done
	var foreign *term.ForeignTermError
	if !errors.As(a.err, &foreign) || foreign.Node != "b" || foreign.Term != 2 {
		t.Errorf("the old owner ended with %v", a.err)
	}
	if _, err := a.Submit(context.Background(), command(&add{"a", 1})); !notAccepted(err) {
		t.Errorf("the old owner says %v", err)
	}
	if got, _ := b.total("a"); got != "1" {
		t.Errorf("the new owner has %s", got)
	}
}

func TestAnOldOwnersRecordThatLandsAfterANewTakenIsSkipped(t *testing.T) {
	r := newRig(t)
	r.written(1)
	a, g := r.gatedOwner("a", 3*time.Second)
	a.ready()
	g.stall()
	late := a.start(command(&add{"a", 100}))
	eventually(t, "the record is on its way", func() bool { return g.stalled() > 0 })
	b := r.owner("b").ready()
	b.do(command(&add{"a", 2}))
	g.release()
	o := <-late
	if !unknown(o.err) {
		t.Errorf("its client is told %v", o.err)
	}
	<-a.done
	if got, _ := b.total("a"); got != "3" {
		t.Errorf("total %s", got)
	}
	equal(t, "records", types(r.all(), 1), []string{record.TypeTermStarted, "counter.change", record.TypeTermStarted, record.TypeTermStarted, "counter.change"})
}

func TestAnOldOwnersRecordThatLandsBeforeANewTakenIsInItsFold(t *testing.T) {
	r := newRig(t)
	a, g := r.gatedOwner("a", time.Minute)
	a.ready()
	g.withhold()
	late := a.start(command(&add{"a", 100}))
	eventually(t, "the record has landed", func() bool { return len(r.all()) == 3 })
	b := r.owner("b").ready()
	if got, _ := b.total("a"); got != "100" {
		t.Errorf("total %s", got)
	}
	<-a.done
	g.release()
	a.comesBack(t, late)
}

// comesBack lets the old owner come back, and has it answer from its fold what it kept.
func (x *running) comesBack(t *testing.T, kept <-chan outcome) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	o := <-kept
	if o.err != nil || o.result.Position.Sequence != 2 {
		t.Errorf("the kept command is answered with %+v %v", o.result.Position, o.err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestARecordThatComesBeforeATakenMakesItTryAgain(t *testing.T) {
	r := newRig(t)
	a, ga := r.gatedOwner("a", time.Minute)
	a.ready()
	ga.stall()
	late := a.start(command(&add{"a", 100}))
	eventually(t, "the record is on its way", func() bool { return ga.stalled() > 0 })
	gb := newGate()
	gb.stall()
	cfg := r.ownerConfig("b")
	cfg.Client = r.newClient(nil, gb)
	b := r.run(cfg)
	t.Cleanup(gb.release)
	eventually(t, "the taken record is on its way", func() bool { return gb.stalled() > 0 })
	ga.release()
	if o := <-late; o.err != nil {
		t.Errorf("the old owner's command: %v", o.err)
	}
	gb.release()
	b.ready()
	if got, _ := b.total("a"); got != "100" {
		t.Errorf("total %s", got)
	}
	equal(t, "records", types(r.all(), 1), []string{record.TypeTermStarted, "counter.change", record.TypeTermStarted})
}

func TestAnOwnerThatStopsDrainsWhatIsInFlight(t *testing.T) {
	r := newRig(t)
	o, g := r.gatedOwner("n1", time.Minute)
	o.ready()
	g.withhold()
	held := o.start(command(&add{"a", 1}))
	eventually(t, "it is in the log", func() bool { return len(r.all()) == 3 })
	o.stop()
	eventually(t, "intake has stopped", func() bool {
		_, err := o.Submit(context.Background(), command(&add{"a", 1}))
		return notAccepted(err)
	})
	pending(t, "the held command", held)
	g.release()
	if a := <-held; a.err != nil {
		t.Error(a.err)
	}
	if err := o.end(); err != nil {
		t.Error(err)
	}
}

// TestAnOwnerThatStopsGivesTheRefusalsThatItHolds stops an owner while the brokers do not say where the log ends, so that a
// refusal is held for their word.
func TestAnOwnerThatStopsGivesTheRefusalsThatItHolds(t *testing.T) {
	r := newFake(t)
	o := r.owner("n1").ready()
	o.do(command(&add{"a", 3}))
	silent := r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: r.topic(), Err: kerr.NotLeaderForPartition, Count: -1})
	refused := o.start(command(&read{"a"}))
	r.holds(1)
	o.stop()
	eventually(t, "intake has stopped", func() bool {
		_, err := o.Submit(context.Background(), command(&add{"a", 1}))
		return notAccepted(err)
	})
	pending(t, "a refusal before the brokers have said where the log ends", refused)
	silent.Remove()
	var e *submit.RefusedError
	if got := <-refused; !errors.As(got.err, &e) || e.Refusal.Message != "3" {
		t.Errorf("the refusal is %v", got.err)
	}
	if err := o.end(); err != nil {
		t.Error(err)
	}
}

func TestAConnectionThatBreaksChangesNothing(t *testing.T) {
	r := newRig(t)
	o, g := r.gatedOwner("n1", time.Minute)
	o.ready()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				o.do(command(&add{"a", 1}))
			}
		})
	}
	for n := range 5 {
		o.until("some more is done", func() bool {
			end, err := r.client.Tip(r.context(), "trading", 0)
			return err == nil && end > int64(50*n)
		})
		g.cut()
	}
	wg.Wait()
	if got, _ := o.total("a"); got != "400" {
		t.Errorf("total %s", got)
	}
}

// positions is a journal.Known of fixed positions, which doesn't answer while it has an error.
type positions struct {
	mu    sync.Mutex
	err   error
	known []record.Position
	asked int
}

func (p *positions) Positions(context.Context, string, int32) ([]record.Position, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return p.known, p.err
}

// answer has it answer from now on, or say that it can't.
func (p *positions) answer(err error) { p.mu.Lock(); defer p.mu.Unlock(); p.err = err }

func (p *positions) times() int { p.mu.Lock(); defer p.mu.Unlock(); return p.asked }

func TestAGenesisWaitsForWhateverMayKnowOfAJournal(t *testing.T) {
	r := newRig(t)
	p := &positions{err: errors.New("Postgres is away")}
	cfg := r.ownerConfig("n1")
	cfg.Known = []journal.Known{p}
	o := r.run(cfg)
	o.until("it has asked several times", func() bool { return p.times() > 3 })
	if end, err := r.client.Tip(r.context(), "trading", 0); err != nil || end != 0 {
		t.Fatalf("the log ends at %d: %v", end, err)
	}
	p.mu.Lock()
	p.err = nil
	p.mu.Unlock()
	o.ready()
}

func TestAnEmptyPartitionThatIsKnownToHaveHeldAJournalIsDiverged(t *testing.T) {
	r := newRig(t)
	cfg := r.ownerConfig("n1")
	cfg.Known = []journal.Known{&positions{known: []record.Position{record.Before, {Offset: 7, Sequence: 7, Hash: record.Hash{1}}}}}
	o := r.run(cfg)
	<-o.done
	var diverged *record.DivergedError
	if !errors.As(o.err, &diverged) || diverged.Have.Sequence != 7 {
		t.Errorf("ended with %v", o.err)
	}
	if end, err := r.client.Tip(r.context(), "trading", 0); err != nil || end != 0 {
		t.Errorf("the log ends at %d: %v", end, err)
	}
}

func TestAnOwnerTakesNothingWhenTheLogDoesNotHoldAKnownPosition(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	o.do(command(&add{"a", 1}))
	at := o.do(command(&add{"a", 1})).Entry.Position
	if err := o.end(); err != nil {
		t.Fatal(err)
	}
	before := r.all()
	for what, p := range map[string]record.Position{
		"another hash":   {Offset: at.Offset, Sequence: at.Sequence, Hash: record.Hash{1}},
		"beyond the end": {Offset: at.Offset + 9, Sequence: at.Sequence + 9, Hash: at.Hash},
	} {
		cfg := r.ownerConfig("n2")
		cfg.Known = []journal.Known{&positions{known: []record.Position{at, p}}}
		o := r.run(cfg)
		<-o.done
		var diverged *record.DivergedError
		if !errors.As(o.err, &diverged) || !diverged.Have.Equal(p) {
			t.Errorf("%s: ended with %v", what, o.err)
		}
	}
	if after := r.all(); len(after) != len(before) {
		t.Errorf("%d records were appended", len(after)-len(before))
	}
	moved := record.Position{Offset: at.Offset + 1, Sequence: at.Sequence, Hash: at.Hash} // as in a log that it was copied from
	cfg := r.ownerConfig("n3")
	cfg.Known = []journal.Known{&positions{known: []record.Position{at, moved}}, &positions{err: errors.New("away")}}
	r.run(cfg).ready()
}

func TestAPartitionWithRecordsAndNoGenesisIsNotTouched(t *testing.T) {
	r := newRig(t)
	r.produce([]byte("something else"))
	o := r.owner("n1")
	<-o.done
	var broken *record.BrokenRecordError
	if !errors.As(o.err, &broken) {
		t.Errorf("ended with %v", o.err)
	}
	if end, err := r.client.Tip(r.context(), "trading", 0); err != nil || end != 1 {
		t.Errorf("the log ends at %d: %v", end, err)
	}
}

func TestARecreatedTopicEndsTheOwner(t *testing.T) {
	r := newFake(t)
	o := r.owner("n1").ready()
	for range 5 {
		o.do(command(&add{"a", 1}))
	}
	if err := r.fake.DeleteTopic(r.topic()); err != nil {
		t.Fatal(err)
	}
	if err := r.fake.CreateTopic(r.topic(), 1, nil); err != nil {
		t.Fatal(err)
	}
	<-o.done
	var diverged *record.DivergedError
	if !errors.As(o.err, &diverged) {
		t.Errorf("ended with %v", o.err)
	}
	if info := r.fake.PartitionInfo(r.topic(), 0); info.HighWatermark != 0 {
		t.Errorf("the new topic holds %d records", info.HighWatermark)
	}
}

func TestANewTermStartsFromASeed(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	at := o.do(command(&add{"a", 5}))
	o.do(command(&add{"a", 1}))
	if err := o.end(); err != nil {
		t.Fatal(err)
	}
	seeded := newCounters()
	seeded.totals["a"] = 5
	cfg := r.ownerConfig("n2")
	cfg.Known = []journal.Known{&positions{known: []record.Position{r.all()[1].Position}}} // older than the seed
	cfg.Seed = func(context.Context) (*record.Seed, error) {
		return &record.Seed{State: seeded, Position: at.Entry.Position, Term: 1, Time: at.Entry.Record.Time}, nil
	}
	n2 := r.run(cfg).ready()
	if got, _ := n2.total("a"); got != "6" {
		t.Errorf("total %s", got)
	}
	if seeded.applied != 2 {
		t.Errorf("%d records applied to the seed", seeded.applied)
	}
	if term, _ := n2.Serving(); term != 2 {
		t.Errorf("term %d", term)
	}
	if again := n2.do(command(&add{"a", 1})); again.Entry.Journal != at.Entry.Journal {
		t.Errorf("journal id %v", again.Entry.Journal)
	}
}

// TestAReplayGivesTheSameBytes folds a journal and encodes every record again.
func TestAReplayGivesTheSameBytes(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	o.do(keyed("a", &add{"<&> \u2028 \"quoted\" \\ \x01 é 😀", 1}))
	o.do(command(&later{"b", 1, scalar.TimeOf(time.Now()) - scalar.Second, ""}))
	o.do(command(&sweep{"c", 3}))
	for _, e := range r.all() {
		again, err := record.Encode(nil, e.Record)
		if err != nil || !bytes.Equal(again, e.Value) {
			t.Errorf("record %d again is %s, %v", e.Record.Sequence, again, err)
		}
	}
}

func TestAChangeOfThePartitionsLeaderChangesNothing(t *testing.T) {
	r := newFake(t, kfake.NumBrokers(3))
	o := r.owner("n1").ready()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				o.do(command(&add{"a", 1}))
			}
		})
	}
	for n := range 6 {
		o.until("some more is done", func() bool { return r.fake.PartitionInfo(r.topic(), 0).HighWatermark > int64(100*n) })
		leader := r.fake.LeaderFor(r.topic(), 0)
		if err := r.fake.MoveTopicPartition(r.topic(), 0, (leader+1)%3); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if got, at := o.total("a"); got != "800" || at != 801 {
		t.Errorf("total %s at %d", got, at)
	}
	if term, _ := o.Serving(); term != 1 {
		t.Errorf("term %d", term)
	}
}

func TestAnOwnerThatMeetsAForeignTermBeforeItsOwnLeaves(t *testing.T) {
	r := newRig(t)
	if err := r.owner("founder").ready().end(); err != nil {
		t.Fatal(err)
	}
	var owners []*running
	var gates []*gate
	for _, node := range []string{"a", "b"} {
		g := newGate()
		g.stall()
		cfg := r.ownerConfig(node)
		cfg.Client = r.newClient(nil, g)
		owners, gates = append(owners, r.run(cfg)), append(gates, g)
		t.Cleanup(g.release)
		eventually(t, "its taken record is on its way", func() bool { return g.stalled() > 0 })
	}
	gates[0].release()
	owners[0].ready()
	<-owners[1].done // without having appended anything
	var foreign *term.ForeignTermError
	if !errors.As(owners[1].err, &foreign) || foreign.Node != "a" {
		t.Errorf("ended with %v", owners[1].err)
	}
	if term, ok := owners[0].Serving(); term != 2 || !ok {
		t.Errorf("the first one serves %d, %v", term, ok)
	}
}
