package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/history"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

var rules = journaltest.Words{Name: "trading"}

// codec writes words as JSON.
type codec int

func (c codec) Version() int { return int(c) }
func (codec) Size(s decide.State) int {
	size := 0
	for _, w := range s.(*journaltest.WordList).Words {
		size += len(w) + 3
	}
	return size
}
func (codec) Append(b []byte, s decide.State) []byte {
	text, _ := json.Marshal(s.(*journaltest.WordList).Words)
	return append(b, text...)
}
func (codec) Read(b []byte) (decide.State, error) {
	s := new(journaltest.WordList)
	return s, json.Unmarshal(b, &s.Words)
}

// source counts the readers that are opened, and lets a test hold them and see where they start.
type source struct {
	history.Source
	opened atomic.Int64
	from   atomic.Int64
	hold   chan struct{} // nil: no reader waits
}

func (s *source) After(r decide.Rules, partition int32, at record.Position) history.Records {
	s.opened.Add(1)
	s.from.Store(at.Sequence)
	return &held{s.Source.After(r, partition, at), s.hold}
}

type held struct {
	history.Records
	hold chan struct{}
}

func (h *held) PollFor(ctx context.Context, sequence int64) ([]record.Entry, error) {
	if h.hold != nil {
		select {
		case <-h.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return h.Records.PollFor(ctx, sequence)
}

// venue is a journal with records and a fold at its tip.
type venue struct {
	t      *testing.T
	client *journal.Client
	owner  *journal.Owner
	fold   *follow.Fold
	source *source
	saved  *snapshot.Store
}

// termStarted is the sequence of the record that opens the first term, which follows the genesis.
const termStarted = 1

func newVenue(t *testing.T) *venue {
	t.Helper()
	c := journaltest.NewClient(t, "trading")
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { bucket.Close() })
	v := &venue{t: t, client: c, source: &source{Source: history.Topic{Client: c}},
		saved: snapshot.NewStore(snapshot.Config{Bucket: bucket, Key: []byte("key"), Folder: snapshot.HistoryFolder})}
	var err error
	if v.owner, err = journal.NewOwner(journal.OwnerConfig{Client: c, Rules: rules, Node: "n1", Build: "build/7"}); err != nil {
		t.Fatal(err)
	}
	v.fold = follow.New(c, rules, 0)
	running(t, v.owner.Run)
	running(t, v.fold.Run)
	for range 90_000 {
		if _, ok := v.owner.Serving(); ok && v.fold.Position().Sequence == termStarted {
			return v
		}
		<-time.After(time.Millisecond)
	}
	t.Fatal("the owner does not come to serve, or the fold does not follow")
	return nil
}

func running(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// say appends n records, the words of which are their sequences, and waits until the fold has them.
func (v *venue) say(n int) (last record.Position) {
	v.t.Helper()
	for range n {
		c := journaltest.Say(fmt.Sprint(v.fold.Position().Sequence + 1))
		r, err := journaltest.Insist(func() (submit.Result, error) { return v.owner.Submit(v.t.Context(), c) })
		if err != nil {
			v.t.Fatal(err)
		}
		last = r.Entry.Position
		if err := v.fold.Wait(v.t.Context(), last.Sequence); err != nil {
			v.t.Fatal(err)
		}
	}
	return last
}

func (v *venue) journal(c codec) history.Journal {
	return history.Journal{Rules: rules, Codec: c, Tip: v.fold}
}

func (v *venue) config() history.Config {
	return history.Config{Client: v.client, Source: v.source, Stores: []*snapshot.Store{v.saved}}
}

// list returns the snapshots, also as their sequences with their codecs.
func (v *venue) list() (saved []snapshot.Saved, list string) {
	v.t.Helper()
	saved, err := v.saved.Saved(v.t.Context(), "trading", 0)
	if err != nil {
		v.t.Fatal(err)
	}
	var all []string
	for _, x := range saved {
		all = append(all, fmt.Sprint(x.Position.Sequence, ".", x.Codec))
	}
	return saved, strings.Join(all, " ")
}

// wordsTo are the words of the state after a record: the genesis and the term have none.
func wordsTo(sequence int64) (words []string) {
	for s := int64(2); s <= sequence; s++ {
		words = append(words, fmt.Sprint(s))
	}
	return words
}

func (v *venue) check(s *history.States, sequence int64) decide.State {
	v.t.Helper()
	state, at, err := s.StateAt(v.t.Context(), "trading", 0, sequence)
	if err != nil {
		v.t.Fatalf("at %d: %v", sequence, err)
	}
	if got := state.(*journaltest.WordList).Words; at.Sequence != sequence || !slices.Equal(got, wordsTo(sequence)) {
		v.t.Fatalf("at %d it is %v at %v", sequence, got, at)
	}
	return state
}

func TestStatesAreThoseOfAFoldUpToThere(t *testing.T) {
	v := newVenue(t)
	tip := v.say(20)
	s := history.New(v.config(), v.journal(1))
	first := v.check(s, 9)
	for _, sequence := range []int64{tip.Sequence, 9, 4, 0, 12, 10, tip.Sequence - 1} {
		v.check(s, sequence)
	}
	if got := first.(*journaltest.WordList).Words; !slices.Equal(got, wordsTo(9)) {
		t.Errorf("a state that was returned has become %v", got)
	}
	opened := v.source.opened.Load()
	if v.check(s, 9) != first || v.source.opened.Load() != opened {
		t.Error("a kept state is made again")
	}
	v.check(s, 14)
	if from := v.source.from.Load(); from != 12 {
		t.Errorf("14 is made from %d, and 12 is kept", from)
	}
	v.say(1) // the state at the tip was made without the next record
	if err := s.Deciding(t.Context(), "trading", 0, tip.Sequence+1, func(m past.Met) error {
		if m.Before.Sequence != tip.Sequence || m.Entry.Position.Sequence != tip.Sequence+1 || m.Entry.Record.Command.Type != "test.say" {
			t.Errorf("%+v", m)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestARecordMeetsTheStateBeforeIt(t *testing.T) {
	v := newVenue(t)
	v.say(5)
	s := history.New(v.config(), v.journal(1))
	broken := errors.New("broken")
	err := s.Deciding(t.Context(), "trading", 0, 4, func(m past.Met) error {
		if words := m.State.(*journaltest.WordList).Words; !slices.Equal(words, wordsTo(3)) || m.Before.Sequence != 3 || m.Entry.Position.Sequence != 4 ||
			m.Time == 0 || m.Time > m.Entry.Record.Time || m.Build != "build/7" {
			t.Errorf("%v %+v", words, m)
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	for sequence, want := range map[int64]error{0: past.ErrBefore, -1: past.ErrBefore} {
		if err := s.Deciding(t.Context(), "trading", 0, sequence, nil); !errors.Is(err, want) {
			t.Errorf("%d: %v", sequence, err)
		}
	}
	var after *past.AfterError
	if err := s.Deciding(t.Context(), "trading", 0, 7, nil); !errors.As(err, &after) || after.Tip.Sequence != 6 {
		t.Error(err)
	}
	if _, _, err := s.StateAt(t.Context(), "trading", 0, 7); !errors.As(err, &after) {
		t.Error(err)
	}
	if _, _, err := s.StateAt(t.Context(), "trading", 0, -1); !errors.Is(err, past.ErrBefore) {
		t.Error(err)
	}
	if _, _, err := s.StateAt(t.Context(), "other", 0, 1); err == nil {
		t.Error("a journal that nobody follows has a state")
	}
}

// TestRequestsShareTheWork has many ask for one state, and others for more states than are made at the same time.
func TestRequestsShareTheWork(t *testing.T) {
	v := newVenue(t)
	v.say(8)
	v.source.hold = make(chan struct{})
	cfg := v.config()
	cfg.Limits = history.Limits{AtOnce: 1, Wait: time.Millisecond}
	s := history.New(cfg, v.journal(1))
	var group sync.WaitGroup
	impatient, leave := context.WithCancel(t.Context())
	group.Go(func() {
		if _, _, err := s.StateAt(impatient, "trading", 0, 5); !errors.Is(err, context.Canceled) {
			t.Errorf("the one that left: %v", err)
		}
	})
	until(t, func() bool { return v.source.opened.Load() == 1 })
	for range 8 {
		group.Go(func() {
			if state, _, err := s.StateAt(t.Context(), "trading", 0, 5); err != nil || !slices.Equal(state.(*journaltest.WordList).Words, wordsTo(5)) {
				t.Error(state, err)
			}
		})
	}
	until(t, func() bool { return s.Waiting("trading", 0, 5) == 9 })
	var busy *past.BusyError
	if _, _, err := s.StateAt(t.Context(), "trading", 0, 6); !errors.As(err, &busy) || busy.RetryAfter != time.Millisecond {
		t.Errorf("a second state at the same time: %v", err)
	}
	leave()
	until(t, func() bool { return s.Waiting("trading", 0, 5) == 8 })
	close(v.source.hold)
	group.Wait()
	if n := v.source.opened.Load(); n != 1 {
		t.Errorf("the log was read %d times", n)
	}
	v.check(s, 6)
}

// TestWorkEndsWhenNobodyWaits has the only one leave: its turn is free for the next.
func TestWorkEndsWhenNobodyWaits(t *testing.T) {
	v := newVenue(t)
	v.say(8)
	v.source.hold = make(chan struct{})
	cfg := v.config()
	cfg.Limits = history.Limits{AtOnce: 1, Wait: time.Minute}
	s := history.New(cfg, v.journal(1))
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, _, err := s.StateAt(ctx, "trading", 0, 5); done <- err }()
	until(t, func() bool { return v.source.opened.Load() == 1 })
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(v.source.hold)
	v.check(s, 5)
}

// TestALongStateIsMadeForTheNextQuestion has the only one lose patience. The work goes on, and the next question gets its state.
func TestALongStateIsMadeForTheNextQuestion(t *testing.T) {
	v := newVenue(t)
	v.say(8)
	v.source.hold = make(chan struct{})
	cfg := v.config()
	cfg.Limits = history.Limits{Patience: time.Nanosecond}
	s := history.New(cfg, v.journal(1))
	var busy *past.BusyError
	if _, _, err := s.StateAt(t.Context(), "trading", 0, 5); !errors.As(err, &busy) || !busy.Underway || busy.RetryAfter <= 0 {
		t.Fatalf("a state that takes long: %v", err)
	}
	close(v.source.hold)
	until(t, func() bool {
		_, _, err := s.StateAt(t.Context(), "trading", 0, 5)
		return err == nil
	})
	if n := v.source.opened.Load(); n != 1 {
		t.Errorf("the log was read %d times", n)
	}
	v.check(s, 5)
}

func TestKeptStatesAreBounded(t *testing.T) {
	v := newVenue(t)
	v.say(20)
	cfg := v.config()
	cfg.Limits = history.Limits{Memory: 1}
	s := history.New(cfg, v.journal(1))
	v.check(s, 10)
	v.check(s, 15)
	opened := v.source.opened.Load()
	v.check(s, 15)
	if n := v.source.opened.Load(); n != opened {
		t.Error("the newest state is not kept")
	}
	v.check(s, 10)
	if n := v.source.opened.Load(); n != opened+1 {
		t.Error("a state beyond the limit is kept")
	}
}

func until(t *testing.T, is func() bool) {
	t.Helper()
	for range 90_000 {
		if is() {
			return
		}
		<-time.After(time.Millisecond)
	}
	t.Fatal("it did not come to it")
}

// breaking is a source that this build can't read from a sequence on.
type breaking struct {
	history.Source
	from int64
}

func (b breaking) After(r decide.Rules, partition int32, at record.Position) history.Records {
	return &brokenRecords{Records: b.Source.After(r, partition, at), from: b.from}
}

type brokenRecords struct {
	history.Records
	from   int64
	broken bool
}

func (b *brokenRecords) PollFor(ctx context.Context, sequence int64) ([]record.Entry, error) {
	if b.broken {
		return nil, &record.BrokenRecordError{Journal: "trading", Sequence: b.from, Reason: "an unknown type"}
	}
	entries, err := b.Records.PollFor(ctx, sequence)
	for i, e := range entries {
		if e.Position.Sequence >= b.from {
			b.broken = true
			if i == 0 {
				return b.PollFor(ctx, sequence)
			}
			return entries[:i], nil
		}
	}
	return entries, err
}

// TestTheBuildOfAForeignRecord: the error about a record that this build can't read names the build that opened its term.
func TestTheBuildOfAForeignRecord(t *testing.T) {
	v := newVenue(t)
	v.say(6)
	c := v.config()
	c.Source = breaking{v.source, 5}
	err := history.New(c, v.journal(1)).Deciding(t.Context(), "trading", 0, 7, func(past.Met) error {
		t.Error("a record that can't be read was decided")
		return nil
	})
	var foreign *past.ForeignError
	var broken *record.BrokenRecordError
	if !errors.As(err, &foreign) || foreign.Build != "build/7" || !errors.As(err, &broken) || broken.Sequence != 5 {
		t.Errorf("%v (%+v)", err, foreign)
	}
}
