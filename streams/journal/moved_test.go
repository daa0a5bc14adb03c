package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// recreateTogether is recreate with all values in one batch.
func (r *rig) recreateTogether(values ...[]byte) {
	r.t.Helper()
	r.recreate()
	kc := must(r.client.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(4<<20)))
	defer kc.Close()
	var records []*kgo.Record
	for _, v := range values {
		records = append(records, &kgo.Record{Topic: r.topic(), Value: v})
	}
	if err := kc.ProduceSync(r.context(), records...).FirstErr(); err != nil {
		r.t.Fatal(err)
	}
}

// TestALogThatWasCopiedKeepsEveryPosition copies a log to topics where its records lie at other offsets. Who was anywhere
// in the log goes on there: readers, tails, those who seek, and owners with what they know.
func TestALogThatWasCopiedKeepsEveryPosition(t *testing.T) {
	r := newRig(t)
	v := values(r.written(9))
	junk := [][]byte{[]byte("x"), []byte("{}"), nil}
	r.recreate(slices.Concat(junk, v[:3], junk, v[1:3], v[3:7], v[4:7], junk, v[7:])...)
	all := r.all() // as the positions were when they were saved
	if len(all) != 11 || all[10].Position.Offset < 20 {
		t.Fatalf("%d records, the last %v", len(all), all[len(all)-1].Position)
	}
	for _, c := range []struct {
		what string
		lay  func()
	}{
		{"without what was skipped", func() { r.recreate(v...) }},
		{"in one batch", func() { r.recreateTogether(v...) }},
		{"behind more that is skipped", func() { r.recreate(slices.Concat(junk, junk, junk, v, junk)...) }},
		{"with all of it twice", func() { r.recreate(slices.Concat(v, v)...) }},
		{"with each record twice", func() {
			var twice [][]byte
			for _, x := range v {
				twice = append(twice, x, x)
			}
			r.recreate(twice...)
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			c.lay()
			copied := r.all()
			var old []record.Position
			for i, e := range all {
				old = append(old, e.Position)
				if !copied[i].Position.Equal(e.Position) {
					t.Fatalf("record %d is %v instead of %v", i, copied[i].Position, e.Position)
				}
			}
			if err := r.client.Holds(r.context(), r.rules, 0, old...); err != nil {
				t.Error(err)
			}
			for i, p := range old[:len(old)-1] {
				if got, err := r.poll(p); err != nil || got[0] != int64(i+1) {
					t.Errorf("a reader after %v reads %v: %v", p, got, err)
				}
				tail := journal.NewTail(r.client, r.rules, 0, p)
				if entries, err := tail.Poll(r.context()); err != nil || entries[0].Position.Offset != copied[i+1].Position.Offset {
					t.Errorf("a tail after %v reads %v: %v", p, entries, err)
				}
				tail.Close()
				if e, err := r.client.ReadAt(r.context(), r.rules, 0, p, 10); err != nil || string(e.Value) != string(v[10]) {
					t.Errorf("a seek from %v finds %s: %v", p, e.Value, err)
				}
			}
			r.goesOn(all, old)
		})
	}
}

// TestAHintAtALaterCopyIsCorrected starts readers at positions whose hinted offset holds a second copy of their record.
func TestAHintAtALaterCopyIsCorrected(t *testing.T) {
	r := newRig(t)
	v := values(r.written(9))
	for what, after := range map[string][][]byte{"last": nil, "followed by junk": {[]byte("x"), v[0]}} {
		for _, i := range []int{0, 5, len(v) - 1} {
			r.recreate(slices.Concat(v, v[i:i+1], after)...)
			all := r.all()
			at := all[i].Position
			at.Offset = int64(len(v))
			reader := journal.NewReader(r.client, r.rules, 0, at)
			var got []record.Entry
			err := reader.ToTip(r.context(), func(some []record.Entry) error {
				got = append(got, some...)
				return nil
			})
			reader.Close()
			same := func(a, b record.Entry) bool {
				return a.Position.Equal(b.Position) && a.Position.Offset == b.Position.Offset
			}
			if err != nil || !slices.EqualFunc(got, all[i+1:], same) {
				t.Errorf("a copy that is %s: after %v: %d records, %v; want %d", what, at, len(got), err, len(all[i+1:]))
			}
		}
	}
}

// goesOn has an owner take the log that knows positions as they lay elsewhere, once by themselves and once as what a seed
// stands on.
func (r *rig) goesOn(all []record.Entry, known []record.Position) {
	r.t.Helper()
	for i, seeded := range []bool{false, true} {
		cfg := r.ownerConfig(fmt.Sprint("n", i))
		cfg.Known = []journal.Known{&positions{known: known}}
		if seeded {
			cfg.Seed = func(context.Context) (*record.Seed, error) {
				s := &record.Seed{State: r.rules.NewState(), Anchors: known[:3]}
				for _, e := range all[:6] {
					s.State.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
					s.Position, s.Time, s.Journal = e.Position, e.Record.Time, e.Journal
				}
				s.Term = 1
				return s, nil
			}
		}
		o := r.run(cfg).ready()
		if total, _ := o.total("a"); total != fmt.Sprint(45+i) {
			r.t.Errorf("seeded %v: %s", seeded, total)
		}
		o.do(command(&add{"a", 1}))
		if err := o.end(); err != nil {
			r.t.Error(err)
		}
	}
}

// TestATailDoesNotTakeAHintForTheTip is about who waits until a log has been looked at up to its end: an old hint may lie
// beyond it.
func TestATailDoesNotTakeAHintForTheTip(t *testing.T) {
	r := newRig(t)
	all := r.written(6)
	at := all[3].Position
	at.Offset += 1000
	tail := journal.NewTail(r.client, r.rules, 0, at)
	defer tail.Close()
	var seen int64
	for next := int64(0); next < int64(len(all)); {
		entries, n, err := tail.Next(r.context())
		if err != nil {
			t.Fatal(err)
		}
		if next, seen = n, seen+int64(len(entries)); next > int64(len(all)) {
			t.Fatalf("it has observed the log up to offset %d, which ends at %d", next, len(all))
		}
	}
	if seen != 4 {
		t.Errorf("it had looked at everything after %d records", seen)
	}
}

// TestKnownPositionsAreHeldAgainstTheLog is what every tool asks before it believes a log.
func TestKnownPositionsAreHeldAgainstTheLog(t *testing.T) {
	r := newRig(t)
	all := r.written(6)
	v := values(all)
	last := all[len(all)-1].Position
	first := &positions{known: []record.Position{record.Before, all[2].Position}}
	second := &positions{known: []record.Position{all[2].Position, last}}
	if err := r.client.HoldsKnown(r.context(), r.rules, 0, first, second); err != nil {
		t.Error(err)
	}
	away := &positions{err: errors.New("away")}
	if err := r.client.HoldsKnown(r.context(), r.rules, 0, first, away, second); !errors.Is(err, away.err) || record.Final(err) {
		t.Errorf("with one that does not answer: %v", err)
	}
	for what, values := range map[string][][]byte{"empty": nil, "cut": v[:7], "cut and moved": append([][]byte{[]byte("x")}, v[:7]...),
		"cut and filled": append(v[:7:7], v[3], v[4], v[5])} {
		r.recreate(values...)
		for _, known := range [][]journal.Known{{first, second}, {second, away}} {
			var diverged *record.DivergedError
			if err := r.client.HoldsKnown(r.context(), r.rules, 0, known...); !errors.As(err, &diverged) || diverged.Have.Sequence < 2 {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := r.client.HoldsKnown(r.context(), r.rules, 0); err != nil {
			t.Errorf("%s, and nothing is known: %v", what, err)
		}
	}
}

// TestReadingToATipEndsWhereTheLogIsCutMeanwhile holds answers of a broker back while the log loses its end.
func TestReadingToATipEndsWhereTheLogIsCutMeanwhile(t *testing.T) {
	r := newRig(t)
	v := values(r.written(6))
	r.recreate(v...)
	reader := journal.NewReader(r.client, r.rules, 0, record.Before)
	defer reader.Close()
	var read int64
	cut := false
	err := reader.ToTip(r.context(), func(entries []record.Entry) error { read += int64(len(entries)); return nil })
	if err != nil || read != 8 {
		t.Fatalf("read %d: %v", read, err)
	}
	err = r.client.ToTip(r.context(), "trading", 0, func(ctx context.Context, end int64) error {
		if !cut {
			cut = true
			r.recreate(v[:5]...)
		}
		if end > 5 {
			<-ctx.Done() // as who waits for records that are gone
			return ctx.Err()
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	again := journal.NewReader(r.client, decide.Rules(r.rules), 0, record.Before)
	defer again.Close()
	read = 0
	if err := again.ToTip(r.context(), func(entries []record.Entry) error { read += int64(len(entries)); return nil }); err != nil || read != 5 {
		t.Errorf("read %d: %v", read, err)
	}
}

// TestTakeEndsATermThatIsSuspended: what a suspended owner appends after the journal was taken is invalid, and not acknowledged.
func TestTakeEndsATermThatIsSuspended(t *testing.T) {
	r := newFake(t)
	suspended, g := r.gatedOwner("suspended", time.Minute)
	suspended.ready().do(command(&add{"x", 1}))
	g.stall()
	g.blind(true)
	outcome := make(chan error, 1)
	go func() {
		_, err := suspended.Submit(r.context(), command(&add{"x", 2}))
		outcome <- err
	}()
	eventually(t, "a request is held back", func() bool { return g.stalled() > 0 })
	mover := must(journal.NewOwner(r.ownerConfig("mover")))
	tip := must(mover.Take(r.context()))
	if all := r.all(); !all[len(all)-1].Position.Equal(tip) {
		t.Errorf("the journal ends at %v, and was taken at %v", all[len(all)-1].Position, tip)
	}
	g.blind(false)
	g.release()
	select {
	case <-suspended.done:
	case <-r.context().Done():
		t.Fatal("the suspended owner goes on")
	}
	var foreign *term.ForeignTermError
	if !errors.As(suspended.err, &foreign) || foreign.Node != "mover" {
		t.Errorf("the suspended owner ended with %v", suspended.err)
	}
	select {
	case err := <-outcome:
		if err == nil {
			t.Error("it acknowledged a command after the journal was taken")
		}
	default: // it waits for the next term of this process
	}
	if all := r.all(); !all[len(all)-1].Position.Equal(tip) {
		t.Errorf("the journal ends at %v, after it was taken at %v", all[len(all)-1].Position, tip)
	}
}
