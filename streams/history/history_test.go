package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
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
)

var rules = journaltest.Words{Name: "trading"}

// codec writes words as JSON.
type codec int

func (c codec) Version() int { return int(c) }
func (codec) Size(s decide.State) int {
	size := 0
	for _, w := range s.(*journaltest.Heard).Words {
		size += len(w) + 3
	}
	return size
}
func (codec) Append(b []byte, s decide.State) []byte {
	text, _ := json.Marshal(s.(*journaltest.Heard).Words)
	return append(b, text...)
}
func (codec) Read(b []byte) (decide.State, error) {
	s := new(journaltest.Heard)
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
		tip := v.fold.Position()
		r, err := v.owner.Submit(v.t.Context(), journaltest.Say(fmt.Sprint(tip.Sequence+1)))
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
	if got := state.(*journaltest.Heard).Words; at.Sequence != sequence || !slices.Equal(got, wordsTo(sequence)) {
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
	if got := first.(*journaltest.Heard).Words; !slices.Equal(got, wordsTo(9)) {
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
		if words := m.State.(*journaltest.Heard).Words; !slices.Equal(words, wordsTo(3)) || m.Before.Sequence != 3 || m.Entry.Position.Sequence != 4 ||
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
			if state, _, err := s.StateAt(t.Context(), "trading", 0, 5); err != nil || !slices.Equal(state.(*journaltest.Heard).Words, wordsTo(5)) {
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

func TestTheMakerBoundsTheRecordsToApply(t *testing.T) {
	v := newVenue(t)
	v.say(24) // to 25
	maker := func(c codec, keep time.Duration) *history.Maker {
		return history.NewMaker(history.MakerConfig{Config: v.config(), Journal: v.journal(c), Store: v.saved, Node: "n1", Every: 5, Forever: 10, Spend: 1, Keep: keep})
	}
	makes := func(m *history.Maker, want string) {
		t.Helper()
		if err := m.Make(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, list := v.list(); list != want {
			t.Errorf("it has %s and not %s", list, want)
		}
	}
	makes(maker(1, time.Hour), "25.1 20.1 10.1") // what is kept for ever, and the newest
	s := history.New(v.config(), v.journal(1))
	for sequence, from := range map[int64]int64{23: 20, 12: 10, 9: -1} {
		one := history.New(v.config(), v.journal(1))
		v.check(one, sequence)
		if got := v.source.from.Load(); got != from {
			t.Errorf("%d is made from %d and not from %d", sequence, got, from)
		}
	}
	v.check(s, 20) // exactly a snapshot
	v.say(6)       // to 31
	makes(maker(1, time.Hour), "30.1 25.1 20.1 10.1")
	makes(maker(2, time.Hour), "30.2 25.2 20.2 10.2")  // the codec has changed
	makes(maker(1, time.Hour), "30.2 25.2 20.2 10.2")  // an older build leaves them
	makes(maker(2, -time.Hour), "30.2 25.2 20.2 10.2") // those of the last ten records stay
	v.say(10)                                          // to 41
	makes(maker(2, -time.Hour), "40.2 35.2 30.2 20.2 10.2")
	v.check(history.New(v.config(), v.journal(2)), 37)
}

// TestTheMakerKeepsMoreOfSmallSnapshots: the size of a snapshot at a multiple of Forever decides the distance of those before it. A
// snapshot that is kept at a smaller distance is made if it is missing, and again with another codec.
func TestTheMakerKeepsMoreOfSmallSnapshots(t *testing.T) {
	v := newVenue(t)
	v.say(44) // to 45
	sizes := make(map[int64]int64)
	makes := func(c codec, spend int64, want string) {
		t.Helper()
		m := history.NewMaker(history.MakerConfig{Config: v.config(), Journal: v.journal(c), Store: v.saved, Node: "n1", Every: 5, Forever: 20,
			Spend: spend, Keep: -time.Hour})
		if err := m.Make(t.Context()); err != nil {
			t.Fatal(err)
		}
		saved, list := v.list()
		for _, x := range saved {
			sizes[x.Position.Sequence] = x.Bytes
		}
		if list != want {
			t.Errorf("with %d bytes a record, it has %s and not %s", spend, list, want)
		}
	}
	makes(1, 1, "45.1 40.1 35.1 30.1 20.1")
	if sizes[20] >= sizes[40] || sizes[40] >= 2*sizes[20] {
		t.Fatal(sizes)
	}
	makes(1, sizes[20]/5+1, "45.1 40.1 35.1 30.1 20.1 15.1 10.1 5.1")
	makes(1, sizes[40]/5+1, "45.1 40.1 35.1 30.1 25.1 20.1 15.1 10.1 5.1")
	makes(2, sizes[40]/5+9, "45.2 40.2 35.2 30.2 25.2 20.2 15.2 10.2 5.2")
	makes(2, sizes[40]/10+1, "45.2 40.2 35.2 30.2 20.2 10.2")
	makes(2, sizes[20]/10-1, "45.2 40.2 35.2 30.2 20.2")
}

// starts is a source that remembers where its readers start. first, if it is not nil, is called before the reader after a sequence.
type starts struct {
	history.Source
	at    []int64
	first map[int64]func()
}

func (s *starts) After(r decide.Rules, partition int32, at record.Position) history.Records {
	s.at = append(s.at, at.Sequence)
	if do := s.first[at.Sequence]; do != nil {
		do()
	}
	return s.Source.After(r, partition, at)
}

// TestTheNewestSnapshotsComeFirst: a venue whose older builds kept one snapshot per stretch gets the others from the newest stretch to
// the oldest. A snapshot that becomes due in the meantime comes before those of the next stretch.
func TestTheNewestSnapshotsComeFirst(t *testing.T) {
	v := newVenue(t)
	v.say(64) // to 65
	source := &starts{Source: v.source}
	cfg := history.MakerConfig{Config: v.config(), Journal: v.journal(1), Store: v.saved, Node: "n1", Every: 5, Forever: 20, Spend: 1, Keep: -time.Hour}
	cfg.Source = source
	if err := history.NewMaker(cfg).Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, list := v.list(); list != "65.1 60.1 55.1 50.1 40.1 20.1" {
		t.Fatalf("it has %s", list)
	}
	source.at, source.first = nil, map[int64]func(){20: func() { v.say(5) }}
	cfg.Spend = 1 << 30
	if err := history.NewMaker(cfg).Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(source.at, []int64{40, 20, 25, 30, 65, -1, 5, 10}) {
		t.Errorf("it has read from %v", source.at)
	}
	if _, list := v.list(); list != "70.1 65.1 60.1 55.1 50.1 45.1 40.1 35.1 30.1 25.1 20.1 15.1 10.1 5.1" {
		t.Errorf("it has %s", list)
	}
}

// TestANewCodecTakesOnePass: nothing can begin from the snapshots of another codec, so those of all distances are made in one pass,
// also where older builds have left fewer.
func TestANewCodecTakesOnePass(t *testing.T) {
	v := newVenue(t)
	v.say(44) // to 45
	source := &starts{Source: v.source}
	cfg := history.MakerConfig{Config: v.config(), Journal: v.journal(1), Store: v.saved, Node: "n1", Every: 5, Forever: 20, Spend: 1, Keep: -time.Hour}
	cfg.Source = source
	if err := history.NewMaker(cfg).Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	source.at, cfg.Journal, cfg.Spend = nil, v.journal(2), 1<<30
	if err := history.NewMaker(cfg).Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(source.at, []int64{-1, 5, 10, 15, 20, 25, 30, 35, 40}) {
		t.Errorf("it has read from %v", source.at)
	}
	if _, list := v.list(); list != "45.2 40.2 35.2 30.2 25.2 20.2 15.2 10.2 5.2" {
		t.Errorf("it has %s", list)
	}
}

// TestALargeSnapshotOfAnOlderBuildDeletesNothing: an older build that is still making its snapshots makes one of another size. It goes,
// and the distance stays that of the newest codec.
func TestALargeSnapshotOfAnOlderBuildDeletesNothing(t *testing.T) {
	v := newVenue(t)
	v.say(44) // to 45
	m := history.NewMaker(history.MakerConfig{Config: v.config(), Journal: v.journal(2), Store: v.saved, Node: "n1", Every: 5, Forever: 20,
		Spend: 1000, Keep: -time.Hour})
	if err := m.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	saved, want := v.list()
	if want != "45.2 40.2 35.2 30.2 25.2 20.2 15.2 10.2 5.2" {
		t.Fatalf("it has %s", want)
	}
	large := make([]byte, 100_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(large)
	for _, x := range saved {
		if x.Position.Sequence == 20 {
			h := snapshot.Header{Journal: "trading", Position: x.Position, Codec: 1, Made: time.Now(), Node: "n2"}
			if _, err := v.saved.Put(t.Context(), h, nil, large); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, list := v.list(); !strings.Contains(list, "20.1") {
		t.Fatalf("it has %s", list)
	}
	if err := m.Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, list := v.list(); list != want {
		t.Errorf("it has %s", list)
	}
}

// damaged is a source whose archive lacks a record.
type damaged struct {
	history.Source
	at    int64
	tries int // of readers to read it
}

func (d *damaged) After(r decide.Rules, partition int32, at record.Position) history.Records {
	return &damagedRecords{d.Source.After(r, partition, at), d, at.Sequence}
}

type damagedRecords struct {
	history.Records
	*damaged
	from int64
}

func (d *damagedRecords) PollFor(ctx context.Context, sequence int64) ([]record.Entry, error) {
	if d.from < d.at && sequence >= d.at {
		d.tries++
		return nil, &record.TrimmedError{Base: record.Base{Sequence: 61}, Archive: journal.ErrHistory}
	}
	return d.Records.PollFor(ctx, sequence)
}

// TestTheMakerOfADamagedArchive: the snapshots that do not need the damaged record are made. The record is tried once.
func TestTheMakerOfADamagedArchive(t *testing.T) {
	v := newVenue(t)
	v.say(64) // to 65
	source := &damaged{Source: v.source, at: 23}
	cfg := history.MakerConfig{Config: v.config(), Journal: v.journal(1), Store: v.saved, Node: "n1", Every: 20, Forever: 20}
	if err := history.NewMaker(cfg).Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg.Every, cfg.Spend, cfg.Source = 5, 1<<30, source
	var lost *record.TrimmedError
	if err := history.NewMaker(cfg).Make(t.Context()); !errors.As(err, &lost) {
		t.Errorf("it says %v", err)
	}
	if _, list := v.list(); list != "65.1 60.1 55.1 50.1 45.1 40.1 20.1 15.1 10.1 5.1" {
		t.Errorf("it has %s", list)
	}
	if source.tries != 1 {
		t.Errorf("it has tried to read the damaged record %d times", source.tries)
	}
}

// trimmed is a source that holds the records after a sequence.
type trimmed struct {
	history.Source
	from int64
	lost int // readers that it had no records for
}

func (x *trimmed) After(r decide.Rules, partition int32, at record.Position) history.Records {
	if at.Sequence < x.from {
		x.lost++
		return noRecords(x.from + 1)
	}
	return x.Source.After(r, partition, at)
}

// noRecords are those before a base.
type noRecords int64

func (n noRecords) PollFor(context.Context, int64) ([]record.Entry, error) {
	return nil, &record.TrimmedError{Base: record.Base{Sequence: int64(n)}}
}
func (noRecords) Close() {}

// TestTheMakerOfATrimmedLog: a snapshot that can't be made without the trimmed records does not stop the later ones. Those before the
// base are not tried one by one.
func TestTheMakerOfATrimmedLog(t *testing.T) {
	v := newVenue(t)
	v.say(24) // to 25
	maker := history.MakerConfig{Config: v.config(), Journal: v.journal(1), Store: v.saved, Every: 20, Forever: 20}
	if err := history.NewMaker(maker).Make(t.Context()); err != nil {
		t.Fatal(err)
	}
	source := &trimmed{Source: v.source, from: 20}
	maker.Every, maker.Forever, maker.Source = 5, 5, source
	var lost *record.TrimmedError
	if err := history.NewMaker(maker).Make(t.Context()); !errors.As(err, &lost) {
		t.Errorf("it says %v", err)
	}
	saved, err := v.saved.Saved(t.Context(), "trading", 0)
	if err != nil || len(saved) != 2 || saved[0].Position.Sequence != 25 || saved[1].Position.Sequence != 20 {
		t.Errorf("it has %v, %v", saved, err)
	}
	if source.lost != 1 {
		t.Errorf("it has tried %d snapshots before the base", source.lost)
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
