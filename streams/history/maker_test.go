package history_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/history"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
)

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

// make makes what is missing, and checks which snapshots there are then.
func (v *venue) make(cfg history.MakerConfig, want string) {
	v.t.Helper()
	if err := history.NewMaker(cfg).Make(v.t.Context()); err != nil {
		v.t.Fatal(err)
	}
	if _, list := v.list(); list != want {
		v.t.Fatalf("it has %s, not %s", list, want)
	}
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
	v.make(cfg, "65.1 60.1 55.1 50.1 40.1 20.1")
	source.at, source.first = nil, map[int64]func(){20: func() { v.say(5) }}
	cfg.Spend = 1 << 30
	v.make(cfg, "70.1 65.1 60.1 55.1 50.1 45.1 40.1 35.1 30.1 25.1 20.1 15.1 10.1 5.1")
	if !slices.Equal(source.at, []int64{40, 20, 25, 30, 65, -1, 5, 10}) {
		t.Errorf("it has read from %v", source.at)
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
	v.make(cfg, "45.2 40.2 35.2 30.2 25.2 20.2 15.2 10.2 5.2")
	if !slices.Equal(source.at, []int64{-1, 5, 10, 15, 20, 25, 30, 35, 40}) {
		t.Errorf("it has read from %v", source.at)
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
