package journal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// written founds a journal with n commands in it and returns its valid records.
func (r *rig) written(n int) []record.Entry {
	r.t.Helper()
	o := r.owner("writer").ready()
	for i := range n {
		o.do(command(&add{"a", i + 1}))
	}
	if err := o.end(); err != nil {
		r.t.Fatal(err)
	}
	return r.all()
}

// recreate deletes the topic and makes another of the same name with these values.
func (r *rig) recreate(values ...[]byte) {
	r.t.Helper()
	r.rewritten = true
	admin := kadm.NewClient(must(r.client.Kafka()))
	defer admin.Close()
	if _, err := admin.DeleteTopic(r.context(), r.topic()); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, "the topic can be made again", func() bool { return r.client.EnsureTopics(r.context(), "trading") == nil })
	eventually(r.t, "it is the new one", func() bool { n, err := r.client.Tip(r.context(), "trading", 0); return err == nil && n == 0 })
	r.produce(values...)
}

func values(entries []record.Entry) (list [][]byte) {
	for _, e := range entries {
		list = append(list, e.Value)
	}
	return list
}

// poll reads on from a position and returns the sequences of what comes first, or the error.
func (r *rig) poll(from record.Position) ([]int64, error) {
	reader := journal.NewReader(r.client, r.rules, 0, from)
	defer reader.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	entries, err := reader.Poll(ctx)
	var list []int64
	for _, e := range entries {
		list = append(list, e.Position.Sequence)
	}
	return list, err
}

func TestAReaderGoesOnAfterItsPosition(t *testing.T) {
	r := newRig(t)
	all := r.written(5)
	for i, e := range all[:len(all)-1] {
		got, err := r.poll(e.Position)
		if err != nil || got[0] != int64(i+1) {
			t.Errorf("after %v comes %v, %v", e.Position, got, err)
		}
	}
	reader := journal.NewReader(r.client, r.rules, 0, all[2].Position)
	defer reader.Close()
	entries, err := reader.Poll(r.context())
	if err != nil || entries[0].Journal != all[0].Journal || entries[0].Stamp().Journal != all[0].Journal {
		t.Errorf("a reader from the middle does not know the journal's id: %v %v", entries, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := reader.Poll(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestAReaderSkipsWhatIsNotValid(t *testing.T) {
	r := newRig(t)
	all := r.written(4)
	v := values(all)
	r.recreate(v[0], []byte("garbage"), v[0], v[1], v[2], v[1], v[2], nil, []byte("{"), v[4], v[3], v[4], v[5], v[4])
	again := r.all()
	if len(again) != len(all) {
		t.Fatalf("%d valid records", len(again))
	}
	var offsets []int64
	for i, e := range again {
		if string(e.Value) != string(v[i]) {
			t.Errorf("record %d is %s", i, e.Value)
		}
		offsets = append(offsets, e.Position.Offset)
	}
	equal(t, "offsets", offsets, []int64{0, 3, 4, 10, 11, 12})
	for _, e := range again[:5] {
		if got, err := r.poll(e.Position); err != nil || got[0] != e.Position.Sequence+1 {
			t.Errorf("after %v comes %v, %v", e.Position, got, err)
		}
	}
}

func TestAPositionThatTheLogDoesNotHoldIsDiverged(t *testing.T) {
	r := newRig(t)
	all := r.written(6)
	v := values(all)
	at := all[5].Position
	edited := []byte(strings.Replace(string(v[5]), `"n":4`, `"n":5`, 1))
	for _, c := range []struct {
		what   string
		values [][]byte
	}{
		{"empty", nil},
		{"truncated", v[:4]},
		{"truncated right before it", v[:5]},
		{"edited", [][]byte{v[0], v[1], v[2], v[3], v[4], edited, v[6], v[7]}},
		{"edited, and elsewhere", [][]byte{v[0], []byte("x"), v[1], v[2], v[3], v[4], edited, v[6], v[7]}},
		{"truncated, and filled up", append(v[:5:5], v[1], v[2], v[3], v[4])},
	} {
		r.recreate(c.values...)
		_, err := r.poll(at)
		var diverged *record.DivergedError
		if !errors.As(err, &diverged) || !diverged.Have.Equal(at) || !strings.Contains(err.Error(), "LOG_DIVERGED") {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	r.recreate(v...)
	if got, err := r.poll(at); err != nil || got[0] != 6 {
		t.Errorf("as it was: %v, %v", got, err)
	}
}

func TestALogWhoseBeginningWasDeletedIsRefused(t *testing.T) {
	r := newRig(t)
	all := r.written(6)
	admin := kadm.NewClient(must(r.client.Kafka()))
	defer admin.Close()
	var to kadm.Offsets
	to.Add(kadm.Offset{Topic: r.topic(), Partition: 0, At: 3})
	if _, err := admin.DeleteRecords(r.context(), to); err != nil {
		t.Fatal(err)
	}
	for _, from := range []record.Position{record.Before, all[1].Position, all[6].Position} {
		_, err := r.poll(from)
		var lost *record.BaseError
		if !errors.As(err, &lost) {
			t.Errorf("from %v: %v", from, err)
		}
	}
}

func TestAReaderAtWorkNoticesThatTheLogWasReplaced(t *testing.T) {
	for _, n := range []int{0, 3, 6, 20} { // values in the new topic: none, fewer, as many, more
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := newRig(t)
			all := r.written(4)
			reader := journal.NewReader(r.client, r.rules, 0, record.Before)
			defer reader.Close()
			for reader.Position().Sequence < 5 {
				if _, err := reader.Poll(r.context()); err != nil {
					t.Fatal(err)
				}
			}
			failed := make(chan error, 1)
			go func() {
				entries, err := reader.Poll(r.context())
				if err == nil {
					err = fmt.Errorf("read %s", entries[0].Value)
				}
				failed <- err
			}()
			var v [][]byte
			for i := range n {
				v = append(v, fmt.Appendf(nil, "another log %d", i))
			}
			r.recreate(v...)
			var diverged *record.DivergedError
			if err := <-failed; !errors.As(err, &diverged) || !diverged.Have.Equal(all[5].Position) {
				t.Errorf("%v", err)
			}
			if _, err := reader.Poll(r.context()); !errors.As(err, &diverged) {
				t.Errorf("and again: %v", err)
			}
		})
	}
}

func TestAReaderVerifiesItsPositionAfterABrokenConnection(t *testing.T) {
	r := newRig(t)
	r.written(4)
	g := newGate()
	reader := journal.NewReader(r.newClient(nil, g), r.rules, 0, record.Before)
	defer reader.Close()
	for reader.Position().Sequence < 5 {
		if _, err := reader.Poll(r.context()); err != nil {
			t.Fatal(err)
		}
	}
	g.cut()
	o := r.owner("n2").ready()
	o.do(command(&add{"a", 1}))
	var got []int64
	for reader.Position().Sequence < 7 {
		g.cut()
		entries, err := reader.Poll(r.context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			got = append(got, e.Position.Sequence)
		}
	}
	equal(t, "sequences", got, []int64{6, 7})
}

func TestAReaderRetriesUntilTheTopicIsThere(t *testing.T) {
	r := newRig(t)
	other := newRules()
	other.name = "identity"
	reader := journal.NewReader(r.client, other, 0, record.Before)
	defer reader.Close()
	got := make(chan error, 1)
	go func() {
		_, err := reader.Poll(r.context())
		got <- err
	}()
	if err := r.client.EnsureTopics(r.context(), "identity"); err != nil {
		t.Fatal(err)
	}
	cfg := r.ownerConfig("n1")
	cfg.Rules = other
	r.run(cfg).ready()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestReadAtSeeksFromAnAnchor(t *testing.T) {
	r := newRig(t)
	all := r.written(30)
	for _, from := range []record.Position{record.Before, all[0].Position, all[7].Position, all[31].Position} {
		for _, n := range []int64{0, 1, 8, 31} {
			e, err := r.client.ReadAt(r.context(), r.rules, 0, from, n)
			if err != nil || string(e.Value) != string(all[n].Value) || !e.Position.Equal(all[n].Position) || e.Record == nil || e.Journal != all[0].Journal {
				t.Errorf("record %d from %v: %+v, %v", n, from, e, err)
			}
		}
	}
	if _, err := r.client.ReadAt(r.context(), r.rules, 0, all[5].Position, 32); !errors.Is(err, journal.ErrNoRecord) {
		t.Errorf("beyond the end: %v", err)
	}
	var diverged *record.DivergedError
	wrong := all[5].Position
	wrong.Hash[0]++
	if _, err := r.client.ReadAt(r.context(), r.rules, 0, wrong, 9); !errors.As(err, &diverged) {
		t.Errorf("from an anchor that isn't in the log: %v", err)
	}
}

func TestAReaderThatAuditsChecksKeyHeadersAndTimestamp(t *testing.T) {
	r := newRig(t)
	all := r.written(1)
	r.recreate(values(all)...) // the same values, without key and headers
	reader := journal.NewReader(r.client, r.rules, 0, record.Before)
	reader.Audit()
	defer reader.Close()
	var broken *record.BrokenRecordError
	if _, err := reader.Poll(r.context()); !errors.As(err, &broken) || !strings.Contains(err.Error(), "key") {
		t.Errorf("%v", err)
	}
}

func TestReadersAcceptAnySize(t *testing.T) {
	r := newRig(t)
	r.rules.limit = 3 << 20
	cfg := r.ownerConfig("n1")
	o := r.run(cfg).ready()
	name := strings.Repeat("0123456789", 250_000)
	result := o.do(command(&add{name, 1}))
	o.do(command(&add{"a", 1}))
	r.rules.limit = testLimit
	all := r.all()
	if len(all) != 4 || string(all[2].Value) != string(result.Entry.Value) {
		t.Errorf("%d records", len(all))
	}
}

// TestAReaderGoesBackToItsPosition counts how often a reader asks where the log ends, which it does only before it
// fetches the record at its position again.
func TestAReaderGoesBackToItsPosition(t *testing.T) {
	r := newFake(t)
	o := r.owner("n1").ready()
	last := o.do(command(&add{"a", 1})).Entry.Value
	g := newGate()
	reader := journal.NewReader(r.newClient(nil, g), r.rules, 0, record.Before)
	defer reader.Close()
	read := func(sequence int64) {
		t.Helper()
		for reader.Position().Sequence < sequence {
			if _, err := reader.Poll(r.context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	read(2)
	var asked atomic.Int64
	r.fake.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
		r.fake.KeepControl()
		asked.Add(1)
		return nil, nil, false
	})
	times := func(what string, want int64) {
		t.Helper()
		// Two readers, this one and the owner's own, ask where the log begins and where it ends.
		if got := asked.Swap(0); got != 2*2*want {
			t.Errorf("%s: two readers asked %d times, which is not %d times back", what, got, want)
		}
	}
	o.do(command(&add{"a", 1}))
	read(3)
	times("a valid record", 0)
	r.produce(last, []byte("x"), []byte("y"), last)
	o.do(command(&add{"a", 1}))
	read(4)
	times("a run of four foreign values", 1)
	o.do(command(&add{"a", 1}))
	r.produce([]byte("z"))
	o.do(command(&add{"a", 1}))
	read(6)
	times("another run", 1)
	g.cut()
	o.do(command(&add{"a", 1}))
	read(7)
	if asked.Load() == 0 {
		t.Error("it did not go back after a broken connection")
	}
}
