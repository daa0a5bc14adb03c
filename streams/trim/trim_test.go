package trim_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/trim"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

// check reads the log in every way and wants all of it.
func (l *log) check() {
	l.t.Helper()
	for _, after := range []int64{-1, 63, 100, 200} {
		at := record.Before
		if after >= 0 {
			at = l.position(after)
		}
		if got, err := l.values(at); err != nil || !slices.Equal(got, l.want(after)) {
			l.t.Errorf("after %d: %d records, %v; want %d", after, len(got), err, len(l.want(after)))
		}
	}
	if err := l.client.Holds(l.t.Context(), rules, 0, l.position(3), l.position(100), l.position(299)); err != nil {
		l.t.Errorf("known positions: %v", err)
	}
	lied := l.position(70)
	lied.Hash[0]++
	var diverged *record.DivergedError
	if err := l.client.Holds(l.t.Context(), rules, 0, lied); !errors.As(err, &diverged) {
		l.t.Errorf("a position that never was: %v", err)
	}
	if e, err := l.client.ReadAt(l.t.Context(), rules, 0, record.Before, 17); err != nil || string(e.Value) != l.want(16)[0] {
		l.t.Errorf("record 17: %v, %v", e.Position, err)
	}
	fold := follow.New(l.client, rules, 0)
	ctx, stop := context.WithCancel(l.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- fold.Run(ctx) }()
	if err := fold.Wait(ctx, records-1); err != nil {
		l.t.Errorf("folded from genesis: %v", err)
	}
	stop()
	<-ended
	h := wholelog.Archives{Once: true, Config: func(context.Context, string, int32) (archive.Config, error) { return l.archive(), nil }}
	whole := wholelog.Log(l.client, h, rules.Name, "the topic", func(err error) { l.t.Error(err) })
	if b, err := whole.Base(l.t.Context()); b != nil || err != nil {
		l.t.Errorf("a whole log begins at %v, %v", b, err)
	}
	got := l.read(whole)
	for i, r := range got {
		if i >= len(l.all) || string(r.Value) != string(l.all[i].Value) || string(r.Key) != string(l.all[i].Key) {
			l.t.Fatalf("record %d of the whole log is another one", i)
		}
		if i > 0 && r.Offset <= got[i-1].Offset {
			l.t.Fatalf("record %d of the whole log has offset %d, after %d", i, r.Offset, got[i-1].Offset)
		}
	}
	if len(got) != len(l.all) {
		l.t.Errorf("the whole log has %d records, not %d", len(got), len(l.all))
	}
}

// TestTrim trims a log in steps, as it grows old, and reads it as before.
func TestTrim(t *testing.T) {
	for name, embedded := range map[string]bool{"Kafka": false, "embedded": true} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, func(sequence int64) bool { return sequence%10 == 7 }, embedded)
			at := int64(0)
			for _, c := range []struct{ older, to int64 }{{63, 0}, {64, 64}, {191, 128}, {1000, 256}} {
				dry := l.config(c.older)
				dry.Policy.DryRun = true
				d, err := trim.Run(t.Context(), dry)
				must(t, err)
				r, err := trim.Run(t.Context(), l.config(c.older))
				must(t, err)
				if r.From != at || r.To != c.to || r.Trimmed() != (c.to > at) || d.To != r.To || d.Start != -1 || len(r.Why) == 0 {
					t.Fatalf("older than record %d: %+v, and dry %+v; want from %d to %d", c.older, r, d, at, c.to)
				}
				if r.Trimmed() && !embedded && r.Start != int64(l.valid[c.to]) {
					t.Errorf("the topic begins at offset %d, not at %d", r.Start, l.valid[c.to])
				}
				at = c.to
				l.check()
			}
			if first := l.topic()[0].Offset; first < 150 {
				t.Errorf("the topic begins at offset %d", first)
			}
		})
	}
}

// TestLimits wants the lowest limit to count, and to be named.
func TestLimits(t *testing.T) {
	l := newLog(t, never, false)
	limit := func(first int64, reason string) trim.Source {
		return func(context.Context) (*trim.Limit, error) { return &trim.Limit{First: first, Reason: reason}, nil }
	}
	for name, c := range map[string]struct {
		change func(*trim.Config)
		to     int64
		why    string
	}{
		"the archive": {func(*trim.Config) {}, 256, "no full range"},
		"age":         {func(c *trim.Config) { c.Policy.After = 100 * time.Second }, 192, "not older than"},
		"a time":      {func(c *trim.Config) { c.Policy.Before = timeOf(130) }, 128, "not older than"},
		"its equal":   {func(c *trim.Config) { c.Policy.Before = timeOf(127) }, 64, "not older than"},
		"at most":     {func(c *trim.Config) { c.Most = 2 }, 128, ""},
		"a place": {func(c *trim.Config) {
			c.Known = []journal.Known{known{l.position(290), l.position(3)}, known{l.position(190)}}
		}, 128, "record 190"},
		"several places": {func(c *trim.Config) {
			c.Known = []journal.Known{known{l.position(100)}, known{l.position(70)}, known{}, known{l.position(70)}}
		}, 64, "record 70"},
		"a number": {func(c *trim.Config) { c.Policy.Keep = 200 }, 64, "the last 200"},
		"the rows": {func(c *trim.Config) { c.Limits = []trim.Source{limit(129, "rows"), limit(128, "tree")} }, 128, "rows"},
		"nothing":  {func(c *trim.Config) { c.Limits = []trim.Source{limit(0, "no snapshot")} }, 0, "no snapshot"},
		"cosigned": {func(c *trim.Config) {
			c.Limits = []trim.Source{trim.Quorum(func(context.Context, string, int32, int) (int64, error) { return 70, nil }, rules.Name, 2)}
		}, 64, "2 cosignatures"},
	} {
		cfg := l.config(records)
		cfg.Policy.DryRun = true
		c.change(&cfg)
		r, err := trim.Run(t.Context(), cfg)
		if err != nil || r.To != c.to || c.why != "" && !slices.ContainsFunc(r.Why, func(l trim.Limit) bool { return strings.Contains(l.Reason, c.why) }) {
			t.Errorf("%s: %+v, %v; want %d", name, r, err, c.to)
		}
		positions := 0
		for _, l := range r.Why {
			if strings.Contains(l.Reason, "position") {
				positions++
			}
		}
		if positions > 1 {
			t.Errorf("%s: %d reasons are positions: %+v", name, positions, r.Why)
		}
	}
	cfg := l.config(records)
	cfg.Limits = []trim.Source{trim.Quorum(nil, rules.Name, 1)}
	if _, err := trim.Run(t.Context(), cfg); !errors.Is(err, trim.ErrNoCosignatures) {
		t.Errorf("a quorum without cosignatures: %v", err)
	}
	diverged := l.position(9)
	diverged.Hash[0]++
	cfg = l.config(records)
	cfg.Known = []journal.Known{known{diverged}}
	var lost *record.DivergedError
	if _, err := trim.Run(t.Context(), cfg); !errors.As(err, &lost) {
		t.Errorf("a log that lost a known position: %v", err)
	}
	if len(l.topic()) != records {
		t.Error("something was trimmed")
	}
}

type known []record.Position

func (k known) Positions(context.Context, string, int32) ([]record.Position, error) { return k, nil }

// TestBetweenRanges stops before a record that the archive has in the next range: its trim would delete what is not sealed.
func TestBetweenRanges(t *testing.T) {
	l := newLog(t, func(sequence int64) bool { return sequence == 128 || sequence == 256 }, false)
	r, err := trim.Run(t.Context(), l.config(records))
	must(t, err)
	if r.To != 192 || !strings.Contains(r.Why[len(r.Why)-1].Reason, "readers skip") {
		t.Errorf("%+v", r)
	}
	l.check()
}

// TestDamagedArchives wants each damage named with its place, and nothing trimmed.
func TestDamagedArchives(t *testing.T) {
	l := newLog(t, never, false)
	refused := func(what string, want archive.Damage) {
		t.Helper()
		_, err := trim.Run(t.Context(), l.config(records))
		var wrong *archive.Error
		if !errors.As(err, &wrong) || wrong.Damage != want || wrong.Key == "" {
			t.Errorf("%s: %v", what, err)
		}
		if b, err := l.bases.Base(t.Context(), rules.Name, 0); b != nil || err != nil {
			t.Errorf("%s: the base %v is kept, %v", what, b, err)
		}
		if n := len(l.topic()); n != records {
			t.Errorf("%s: %d records are left", what, n)
		}
	}
	for _, key := range l.blobs() {
		if strings.Contains(key, "tail") {
			continue
		}
		content, err := l.store.Read(t.Context(), key, math.MaxInt64)
		must(t, err)
		spoil := func(changed []byte) {
			t.Helper()
			must(t, l.store.Write(t.Context(), key, changed, time.Minute))
		}
		flipped := slices.Clone(content)
		flipped[len(flipped)/2] ^= 4
		spoil(flipped)
		refused(key+" changed", archive.Damaged)
		spoil(content[:len(content)-9])
		refused(key+" cut", archive.Cut)
		must(t, l.store.Delete(t.Context(), key))
		if !strings.HasSuffix(key, "manifest-0000000003") { // without the last one, the archive only ends earlier
			refused(key+" missing", archive.Missing)
		}
		spoil(content)
	}
	ours := l.box
	other, err := seal.New([]byte(strings.Repeat("k", seal.KeySize)))
	must(t, err)
	l.box = other
	refused("another venue's key", archive.Damaged)
	l.box = ours
	// An archive of the same journal with another record.
	kept, all := l.all, slices.Clone(l.all)
	twin := newLog(t, func(sequence int64) bool { return sequence == 100 }, false)
	l.store = twin.store
	refused("an archive of another topic", archive.Forked)
	l.all, _ = kept, all
}

// TestLostObjects trims no further once the bucket has lost what was trimmed before.
func TestLostObjects(t *testing.T) {
	l := newLog(t, never, false)
	_, err := trim.Run(t.Context(), l.config(130))
	must(t, err)
	blobs := l.blobs()
	old := blobs[slices.IndexFunc(blobs, func(key string) bool { return strings.Contains(key, "/range-") })]
	content, err := l.store.Read(t.Context(), old, math.MaxInt64)
	must(t, err)
	left := len(l.topic())
	for want, change := range map[archive.Damage]func(){
		archive.Missing: func() { must(t, l.store.Delete(t.Context(), old)) },
		archive.Cut:     func() { must(t, l.store.Write(t.Context(), old, content[:9], time.Minute)) },
		archive.Damaged: func() { must(t, l.store.Write(t.Context(), old, append(slices.Clone(content), 1), time.Minute)) },
	} {
		change()
		_, err = trim.Run(t.Context(), l.config(records))
		var wrong *archive.Error
		if !errors.As(err, &wrong) || wrong.Key != old || wrong.Damage != want || wrong.Sequence != 0 || len(l.topic()) != left {
			t.Errorf("%s: %v; %d records are left, not %d", want, err, len(l.topic()), left)
		}
	}
	must(t, l.store.Write(t.Context(), old, content, time.Minute))
	if r, err := trim.Run(t.Context(), l.config(records)); err != nil || r.To != 256 {
		t.Errorf("whole again: %+v, %v", r, err)
	}
}

// TestHeads trims only by the archive whose heads are kept.
func TestHeads(t *testing.T) {
	l := newLog(t, never, false)
	a, err := archive.Open(t.Context(), l.archive())
	must(t, err)
	sound, other, later := *a.Head(), *a.Head(), *a.Head()
	other.Manifest[0]++
	later.Range, later.Base.Sequence = later.Range+1, later.Base.Sequence+perRange
	run := func(h archive.Head) error {
		kept := archive.HeadFolder{Dir: t.TempDir()}
		must(t, kept.Keep(t.Context(), h))
		cfg := l.config(130)
		cfg.Heads = []archive.Heads{archive.HeadFolder{Dir: t.TempDir()}, kept}
		_, err := trim.Run(t.Context(), cfg)
		if err != nil && !strings.Contains(err.Error(), kept.String()) {
			t.Errorf("%v does not name the place", err)
		}
		return err
	}
	for want, h := range map[archive.Damage]archive.Head{archive.Forked: other, archive.Missing: later} {
		var wrong *archive.Error
		if err := run(h); !errors.As(err, &wrong) || wrong.Damage != want || len(l.topic()) != records {
			t.Errorf("%s: %v; %d records are left", want, err, len(l.topic()))
		}
	}
	if err := run(a.Sealed()[1].Head()); err != nil {
		t.Errorf("an older head of the same archive: %v", err)
	}
	if err := run(sound); err != nil || len(l.topic()) == records {
		t.Errorf("the head of the archive: %v", err)
	}
}

// sealingHeads are heads of an archive in which a node seals a range before the head is read for the first time.
type sealingHeads struct {
	archive.HeadFolder
	seal func()
}

func (s sealingHeads) Head(ctx context.Context, journal string, partition int32) (*archive.Head, error) {
	s.seal()
	return s.HeadFolder.Head(ctx, journal, partition)
}

// TestHeadsOfANodeThatSeals: a head that is newer than the opened archive is no head of another one.
func TestHeadsOfANodeThatSeals(t *testing.T) {
	l := newLog(t, never, false)
	cfg := l.config(130)
	a, err := archive.Open(t.Context(), l.archive())
	must(t, err)
	folder, manifest := archive.HeadFolder{Dir: t.TempDir()}, a.Sealed()[len(a.Sealed())-1].Key
	must(t, folder.Keep(t.Context(), *a.Head()))
	all := l.topic()
	tail, err := l.archive().Store.List(t.Context(), archive.Folder)
	must(t, err)
	for _, o := range tail {
		if o.Key == manifest || strings.Contains(o.Key, "/tail") {
			must(t, l.archive().Store.Delete(t.Context(), o.Key))
		}
	}
	cfg.Heads = []archive.Heads{sealingHeads{folder, sync.OnceFunc(func() { must(t, l.keepSome(all)) })}}
	if _, err := trim.Run(t.Context(), cfg); err != nil || len(l.topic()) == records {
		t.Errorf("%v; %d records are left", err, len(l.topic()))
	}
}

// failing is a Keeper or a Trimmer that fails.
type failing struct{ base.Folder }

var errFails = errors.New("it fails")

func (failing) Keep(context.Context, record.Base) error { return errFails }

func (failing) Trim(context.Context, string, base.Trim, int64) (int64, error) { return 0, errFails }

// TestInterruptedTrims goes on after a process ended between any two steps.
func TestInterruptedTrims(t *testing.T) {
	l := newLog(t, never, true)
	cfg := l.config(130)
	cfg.Keepers = []base.Keeper{l.bases, failing{}}
	if _, err := trim.Run(t.Context(), cfg); !errors.Is(err, errFails) { // one copy is kept, and nothing is deleted
		t.Fatal(err)
	}
	l.check()
	cfg = l.config(200)
	cfg.Trimmer = failing{}
	if _, err := trim.Run(t.Context(), cfg); !errors.Is(err, errFails) { // all copies are kept, and nothing is deleted
		t.Fatal(err)
	}
	l.check()
	if n := len(l.topic()); n != records {
		t.Fatalf("%d records are left", n)
	}
	r, err := trim.Run(t.Context(), l.config(records))
	must(t, err)
	if r.From != 192 || r.To != 256 || r.Start < 150 {
		t.Errorf("%+v", r)
	}
	l.check()
}

// TestLostBase finds the base of a log in its archive if every copy is lost, and begins no new log without an archive.
func TestLostBase(t *testing.T) {
	l := newLog(t, func(sequence int64) bool { return sequence%10 == 7 }, true)
	_, err := trim.Run(t.Context(), l.config(130))
	must(t, err)
	want, err := l.bases.Base(t.Context(), rules.Name, 0)
	must(t, err)
	must(t, l.bases.Forget(rules.Name, 0))
	connect := func() {
		t.Helper()
		l.client, err = journal.NewClient(journal.Config{Brokers: l.trimmer.(*broker.Broker).Addrs(), Bases: []base.Source{l.bases}})
		must(t, err)
		t.Cleanup(l.client.Close)
		l.client.SetHistory(wholelog.Archives{Once: true, Config: func(context.Context, string, int32) (archive.Config, error) { return l.archive(), nil }})
	}
	connect()
	if e, err := l.client.Extent(t.Context(), rules.Name, 0); err != nil || e.Base == nil || *e.Base != *want || e.Start == 0 {
		t.Errorf("it begins at %v, %v; want %v", e.Base, err, want)
	}
	l.check()
	bucket, err := blob.Open(t.Context(), blob.URLOf(t.TempDir()))
	must(t, err)
	defer bucket.Close()
	l.store = blob.NewStore(bucket)
	connect()
	var lost *record.BaseError
	if _, err := l.client.Extent(t.Context(), rules.Name, 0); !errors.As(err, &lost) || !strings.Contains(err.Error(), "continues no range") {
		t.Errorf("without an archive: %v", err)
	}
}

// TestLostArchive names what is missing, for a log that was trimmed.
func TestLostArchive(t *testing.T) {
	l := newLog(t, never, false)
	_, err := trim.Run(t.Context(), l.config(130))
	must(t, err)
	lost := l.blobs()[0]
	content, err := l.store.Read(t.Context(), lost, math.MaxInt64)
	must(t, err)
	must(t, l.store.Delete(t.Context(), lost))
	var trimmed *record.TrimmedError
	if got, err := l.values(record.Before); len(got) > 0 || !errors.As(err, &trimmed) || !strings.Contains(err.Error(), lost) || !record.Final(err) {
		t.Errorf("%d records, %v", len(got), err)
	}
	if begins, lacks, err := l.client.Beginning(t.Context(), rules.Name, 0); err != nil || lacks == nil || begins.Sequence != 127 {
		t.Errorf("it begins after %v: %v, %v", begins, lacks, err)
	}
	if got, err := l.values(l.position(127)); err != nil || len(got) != records-128 {
		t.Errorf("from the base on: %d records, %v", len(got), err)
	}
	must(t, l.store.Write(t.Context(), lost, content, time.Minute))
	l.check()
}
