package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

var rules = journaltest.Words{Name: "trading"}

// codec writes words as JSON. size is what it says of any state.
type codec struct{ version, size int }

func (c codec) Version() int          { return c.version }
func (c codec) Size(decide.State) int { return c.size }
func (codec) Append(b []byte, s decide.State) []byte {
	text, _ := json.Marshal(s.(*journaltest.WordList).Words)
	return append(b, text...)
}
func (codec) Read(b []byte) (decide.State, error) {
	s := new(journaltest.WordList)
	return s, json.Unmarshal(b, &s.Words)
}

// signed returns what is before a file's HMAC with the HMAC.
func signed(key, b []byte) []byte { return append(slices.Clip(b), seal.MAC(key, b)...) }

// venue is a journal with an owner, a fold and a bucket.
type venue struct {
	t      *testing.T
	client *journal.Client
	bucket *blob.Bucket
	log    *bytes.Buffer
	store  *Store
	owner  *journal.Owner
	stop   func()
}

var key = []byte("a key of the venue")

func newVenue(t *testing.T) *venue {
	t.Helper()
	c := journaltest.NewClient(t, "trading")
	v := &venue{t: t, client: c, bucket: memblob.OpenBucket(nil), log: new(bytes.Buffer)}
	t.Cleanup(func() { v.bucket.Close() })
	v.store = NewStore(Config{Bucket: v.bucket, Key: key, Logger: slog.New(slog.NewTextHandler(v.log, nil))})
	return v
}

// own runs an owner, which starts from the store.
func (v *venue) own(versions codec) {
	v.t.Helper()
	o, err := journal.NewOwner(journal.OwnerConfig{Client: v.client, Rules: rules, Node: "n1", URL: "http://n1", Known: []journal.Known{v.store},
		Seed: func(ctx context.Context) (*record.Seed, error) { return v.store.Load(ctx, "trading", 0, versions) }})
	if err != nil {
		v.t.Fatal(err)
	}
	v.owner = o
	v.stop = running(v.t, o.Run)
	v.until(func() bool { _, ok := o.Serving(); return ok })
}

// running runs something until it is stopped, or the test ends.
func running(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

func (v *venue) until(is func() bool) {
	v.t.Helper()
	for range 90_000 {
		if is() {
			return
		}
		<-time.After(time.Millisecond)
	}
	v.t.Fatal("it did not come to it")
}

func (v *venue) say(words ...string) (last record.Position) {
	v.t.Helper()
	for _, word := range words {
		c := journaltest.Say(word)
		r, err := journaltest.Insist(func() (submit.Result, error) { return v.owner.Submit(v.t.Context(), c) })
		if err != nil {
			v.t.Fatal(err)
		}
		last = r.Entry.Position
	}
	return last
}

// follow runs a fold, from a seed if there is one, with a maker of snapshots that are due after every record.
func (v *venue) follow(c codec, seed *record.Seed, records int64) (*Maker, *follow.Fold) {
	v.t.Helper()
	var options []follow.Option
	if seed != nil {
		options = append(options, follow.FromSeed(*seed))
	}
	fold := follow.New(v.client, rules, 0, options...)
	m := NewMaker(MakerConfig{Store: v.store, Client: v.client, Rules: rules, Codec: c, Fold: fold, Seed: seed, Node: "n1", Records: records, Interval: time.Hour})
	running(v.t, fold.Run)
	return m, fold
}

func (v *venue) wait(f record.Follower, p record.Position) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), time.Minute)
	defer cancel()
	if err := f.Wait(ctx, p.Sequence); err != nil {
		v.t.Fatal(err)
	}
}

func (v *venue) load(c codec) *record.Seed {
	v.t.Helper()
	seed, err := v.store.Load(v.t.Context(), "trading", 0, c)
	if err != nil {
		v.t.Fatal(err)
	}
	return seed
}

func (v *venue) blobs() (keys []string) {
	for it := v.bucket.List(nil); ; {
		o, err := it.Next(context.Background())
		if err != nil {
			return keys
		}
		keys = append(keys, o.Key)
	}
}

func words(f *follow.Fold) (list string) {
	f.View(func(s decide.State, _ record.Position) { list = strings.Join(s.(*journaltest.WordList).Words, " ") })
	return list
}

func TestWhatAFoldStandsAtIsSavedAndStartedFrom(t *testing.T) {
	for name, size := range map[string]int{"held": 0, "apart": holdable + 1} {
		t.Run(name, func(t *testing.T) {
			v, c := newVenue(t), codec{1, size}
			v.own(c)
			if v.load(c) != nil {
				t.Error("there is a snapshot from the start")
			}
			m, fold := v.follow(c, nil, 1)
			at := v.say("one", "two")
			v.wait(fold, at)
			if err := m.Make(t.Context()); err != nil {
				t.Fatal(err)
			}
			three := v.say("three") // which the second one folded apart begins before
			v.wait(fold, three)
			m.took = 0
			if err := m.Make(t.Context()); err != nil {
				t.Fatal(err)
			}
			seed := v.load(c)
			if !seed.Position.Equal(three) || seed.Term != 1 || seed.URL != "http://n1" || seed.Journal.IsZero() || seed.Time == 0 ||
				!reflect.DeepEqual(seed.State, &journaltest.WordList{Words: []string{"one", "two", "three"}}) {
				t.Errorf("%+v %v", seed, seed.State)
			}
			if len(seed.Anchors) != 1 || seed.Anchors[0].Sequence != 0 {
				t.Errorf("anchors %v", seed.Anchors)
			}
			if got, err := v.store.Positions(t.Context(), "trading", 0); err != nil || !slices.EqualFunc(got, []record.Position{three, at}, record.Position.Equal) {
				t.Errorf("known are %v: %v", got, err)
			}
			_, second := v.follow(c, seed, 1)
			if err := second.WaitTip(t.Context()); err != nil || words(second) != "one two three" {
				t.Errorf("%q at the tip: %v", words(second), err)
			}
			v.wait(second, v.say("four"))
			if got := words(second); got != "one two three four" {
				t.Error(got)
			}
			v.stop()
			v.own(c) // a new owner, from the snapshot
			if below := v.owner.Anchors().Below(at.Sequence); below.Sequence != 0 {
				t.Errorf("the owner seeks from %v", below)
			}
			v.wait(second, v.say("five"))
			if got := words(second); got != "one two three four five" {
				t.Error(got)
			}
			if n := testutil.ToFloat64(v.store.metrics.loaded.WithLabelValues("trading")); n != float64(three.Sequence) {
				t.Errorf("the owner started from %v", n)
			}
		})
	}
}

func TestSnapshotsThatCantBeUsedAreIgnored(t *testing.T) {
	v, c := newVenue(t), codec{version: 1}
	v.own(c)
	m, fold := v.follow(c, nil, 1)
	at := v.say("one")
	v.wait(fold, at)
	if err := m.hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.wait(fold, v.say("two"))
	if err := m.hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	blobs := v.blobs()
	newest, content := blobs[len(blobs)-1], []byte(nil)
	content, err := v.bucket.ReadAll(t.Context(), newest)
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string, content []byte) {
		if err := v.bucket.WriteAll(t.Context(), key, content, nil); err != nil {
			t.Fatal(err)
		}
	}
	edit := bytes.Replace(content, []byte("two"), []byte("TWO"), 1)
	forged := signed([]byte("another key"), edit[:len(edit)-32])
	older := bytes.Replace(content[:len(content)-32], []byte(`"codec":1`), []byte(`"codec":7`), 1)
	for name, bad := range map[string][]byte{"empty": {}, "cut off": content[:len(content)-9], "edited": edit, "forged": forged,
		"of the venue, but not what its name says": signed(key, older), "without a header": signed(key, []byte(magic))} {
		put(newest, bad)
		if seed := v.load(c); seed == nil || !seed.Position.Equal(at) {
			t.Errorf("%s: started from %+v", name, seed)
		}
	}
	if n := testutil.ToFloat64(v.store.metrics.ignored.WithLabelValues("trading", "damaged")); n != 6 {
		t.Errorf("%v were told to be damaged\n%s", n, v.log)
	}
	put(newest, content)
	if seed := v.load(codec{version: 2}); seed != nil {
		t.Errorf("one of another version was used: %+v", seed)
	}
	if n := testutil.ToFloat64(v.store.metrics.ignored.WithLabelValues("trading", "version")); n != 2 {
		t.Errorf("%v were told to be of another version", n)
	}
	renamed := v.store.key("trading", 0, name{record.Position{Offset: 99, Sequence: 99}, 1})
	put(renamed, content)
	if seed := v.load(c); seed == nil || seed.Position.Sequence != at.Sequence+1 || testutil.ToFloat64(v.store.metrics.ignored.WithLabelValues("trading", "damaged")) != 7 {
		t.Errorf("one of another name was used: %+v", seed)
	}
	if err := v.bucket.Delete(t.Context(), renamed); err != nil {
		t.Fatal(err)
	}
	put("snapshots/trading/0/notes.txt", nil)
	put("snapshots/identity/0/"+strings.TrimPrefix(newest, "snapshots/trading/0/"), content)
	if seed := v.load(c); seed == nil || seed.Position.Sequence != at.Sequence+1 {
		t.Errorf("beside other files: %+v", seed)
	}
	if seed, err := v.store.Load(t.Context(), "identity", 0, c); seed != nil || err != nil {
		t.Errorf("another journal's was used: %+v %v", seed, err)
	}
}

// TestAPlantedNameIsNoPosition puts files among the snapshots that somebody else has made or renamed. An owner that took
// their names for positions would find the log without them, and the venue would not start.
func TestAPlantedNameIsNoPosition(t *testing.T) {
	v, c := newVenue(t), codec{version: 1}
	v.own(c)
	m, fold := v.follow(c, nil, 1)
	at := v.say("one")
	v.wait(fold, at)
	if err := m.hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	content, err := v.bucket.ReadAll(t.Context(), v.blobs()[0])
	if err != nil {
		t.Fatal(err)
	}
	beyond := name{record.Position{Offset: 999, Sequence: 999, Hash: record.Hash{1}}, 1}
	folder := v.store.folder("trading", 0)
	for _, key := range []string{folder + beyond.String(), sealed([]byte("another key"), folder+beyond.String()),
		folder + beyond.String() + strings.TrimPrefix(v.blobs()[0], folder+name{at, 1}.String()),
		folder + strings.TrimPrefix(v.store.key("identity", 0, beyond), v.store.folder("identity", 0))} {
		if err := v.bucket.WriteAll(t.Context(), key, content, nil); err != nil {
			t.Fatal(err)
		}
		if known, err := v.store.Positions(t.Context(), "trading", 0); err != nil || len(known) != 1 || !known[0].Equal(at) {
			t.Errorf("with %s known are %v: %v", key, known, err)
		}
	}
	v.stop()
	v.own(c)
	v.say("two")
	if _, err := NewStore(Config{Bucket: v.bucket}).Positions(t.Context(), "trading", 0); err == nil {
		t.Error("positions are told by who can't tell which are the venue's")
	}
	if n, err := NewStore(Config{Bucket: v.bucket}).Forget(t.Context(), "trading", 0); n != 5 || err != nil || len(v.blobs()) != 0 {
		t.Errorf("forgot %d, left are %v: %v", n, v.blobs(), err)
	}
}

func TestTheLastFewAreKept(t *testing.T) {
	v, c := newVenue(t), codec{version: 2}
	v.own(c)
	m, fold := v.follow(c, nil, 1)
	other, _ := v.follow(codec{version: 1}, nil, 1)
	v.wait(other.cfg.Fold, v.say("zero"))
	if err := other.hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n := range keep + 2 {
		v.wait(fold, v.say(fmt.Sprint(n)))
		if err := m.hold(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.hold(t.Context()); err != nil { // two nodes at once: the same name
			t.Fatal(err)
		}
	}
	if n := len(v.blobs()); n != keep+1 {
		t.Errorf("%d snapshots: %v", n, v.blobs())
	}
	if n, err := v.store.Forget(t.Context(), "trading", 0); n != keep+1 || err != nil || len(v.blobs()) != 0 {
		t.Errorf("forgot %d of them: %v", n, err)
	}
}

func TestASnapshotThatTheLogDoesNotHold(t *testing.T) {
	v, c := newVenue(t), codec{version: 1}
	v.own(c)
	m, fold := v.follow(c, nil, 1)
	v.wait(fold, v.say("one"))
	v.stop()
	at, state := fold.Position(), []byte(`["other"]`)
	for name, wrong := range map[string]record.Position{
		"another hash":   {Offset: at.Offset, Sequence: at.Sequence, Hash: record.Hash{1}},
		"beyond the end": {Offset: at.Offset + 9, Sequence: at.Sequence + 9, Hash: record.Hash{2}},
	} {
		h := m.header(new(struct{ decide.State }), wrong, m.mark)
		if _, err := v.store.save(t.Context(), h, nil, state); err != nil {
			t.Fatal(err)
		}
		var diverged *record.DivergedError
		_, second := v.follow(c, v.load(c), 1)
		if err := second.WaitTip(t.Context()); !errors.As(err, &diverged) {
			t.Errorf("%s: a fold went on: %v", name, err)
		}
		for _, seeded := range []bool{true, false} {
			cfg := journal.OwnerConfig{Client: v.client, Rules: rules, Node: "n2", Known: []journal.Known{v.store}}
			if seeded {
				cfg.Known, cfg.Seed = nil, func(ctx context.Context) (*record.Seed, error) { return v.store.Load(ctx, "trading", 0, c) }
			}
			o, err := journal.NewOwner(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := o.Run(t.Context()); !errors.As(err, &diverged) {
				t.Errorf("%s: an owner went on: %v", name, err)
			}
		}
		if _, err := v.store.Forget(t.Context(), "trading", 0); err != nil {
			t.Fatal(err)
		}
	}
	v.own(c)
}

func TestAnEmptyLogBesideASnapshotIsNotFoundedAnew(t *testing.T) {
	v := newVenue(t)
	h := Header{Journal: "trading", Position: record.Position{Offset: 5, Sequence: 5}, Codec: 9}
	if _, err := v.store.save(t.Context(), h, nil, nil); err != nil {
		t.Fatal(err)
	}
	o, err := journal.NewOwner(journal.OwnerConfig{Client: v.client, Rules: rules, Node: "n1", Known: []journal.Known{v.store}})
	if err != nil {
		t.Fatal(err)
	}
	var diverged *record.DivergedError
	if err := o.Run(t.Context()); !errors.As(err, &diverged) {
		t.Errorf("%v", err)
	}
	if end, err := v.client.Tip(t.Context(), "trading", 0); end != 0 || err != nil {
		t.Errorf("the log ends at %d: %v", end, err)
	}
}

func TestWhenASnapshotIsDue(t *testing.T) {
	v, c := newVenue(t), codec{version: 1}
	m, _ := v.follow(c, nil, 1000)
	m.last.Sequence = 5000
	const quick, slow, slower = time.Second, 10 * time.Minute, 30 * time.Minute // of an interval of an hour
	for _, x := range []struct {
		took     time.Duration
		sequence int64
		since    time.Duration
		due      bool
	}{{quick, 5999, time.Minute, false}, {quick, 6000, time.Minute, true}, {quick, 6000, 19 * time.Second, false},
		{quick, 5010, 59 * time.Minute, false}, {quick, 5010, time.Hour, true}, {quick, 5009, time.Hour, false},
		{quick, 5000, 100 * time.Hour, false}, {slow, 6000, 59 * time.Minute, false}, {slow, 6000, time.Hour, true},
		{slower, 6000, 119 * time.Minute, false}, {slower, 6000, 2 * time.Hour, true}} {
		if m.took = x.took; m.due(x.sequence, x.since) != x.due {
			t.Errorf("%+v", x)
		}
	}
	m.Stop(t.Context()) // nothing is folded
	if len(v.blobs()) != 0 {
		t.Errorf("%v", v.blobs())
	}
}

func TestSnapshotsOfOtherNodesCount(t *testing.T) {
	v, c := newVenue(t), codec{version: 1}
	v.own(c)
	m, fold := v.follow(c, nil, 2)
	other, _ := v.follow(c, nil, 1)
	at := v.say("one", "two", "three")
	v.wait(fold, at)
	v.wait(other.cfg.Fold, at)
	if err := other.hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Make(t.Context()); err != nil || !m.last.Equal(at) || m.took != 0 || len(v.blobs()) != 1 {
		t.Errorf("beside another node's snapshot at %v, one was made in %v at %v: %v", at, m.took, m.last, err)
	}
	v.wait(fold, v.say("four", "five"))
	m.Stop(t.Context())
	if len(v.blobs()) != 2 {
		t.Errorf("at a stop: %v", v.blobs())
	}
}

func TestABlobStoreThatDoesNotAnswer(t *testing.T) {
	v, c := newVenue(t), codec{version: 1}
	v.bucket.Close()
	if seed := v.load(c); seed != nil {
		t.Errorf("%+v", seed)
	}
	if _, err := v.store.Positions(t.Context(), "trading", 0); err == nil {
		t.Error("it is told to know nothing")
	}
	m, _ := v.follow(c, nil, 1)
	if err := m.Make(t.Context()); err == nil {
		t.Error("a snapshot was made")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := v.store.Load(ended, "trading", 0, c); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestNamesHaveOneForm(t *testing.T) {
	n := name{record.Position{Offset: 12, Sequence: 10, Hash: record.Hash{0xab}}, 3}
	if got, ok := parseName(n.String()); !ok || !reflect.DeepEqual(got, n) {
		t.Errorf("%v %t", got, ok)
	}
	for _, s := range []string{"", "x", n.String() + "0x", strings.Replace(n.String(), "-12-", "-012-", 1), strings.Replace(n.String(), "-12-", "--1-", 1),
		n.String()[1:], strings.ToUpper(n.String()), strings.TrimSuffix(n.String(), ".3")} {
		if got, ok := parseName(s); ok {
			t.Errorf("%q is %v", s, got)
		}
	}
}

func TestAnchorsAreThinnedToTheRoundest(t *testing.T) {
	var all []record.Position
	for i := range int64(3 * maxAnchors) {
		all = append(all, record.Position{Sequence: i * 1024, Offset: i * 1024})
	}
	thinned := thin(all)
	if len(thinned) > maxAnchors || len(thinned) < maxAnchors/2 || thinned[1].Sequence != 4096 {
		t.Errorf("%d are left: %v", len(thinned), thinned[:3])
	}
	if len(thin(all[:9])) != 9 {
		t.Error("a few were thinned")
	}
}

func FuzzParseFile(f *testing.F) {
	whole, err := appendFile(key, Header{Journal: "trading", Position: record.Position{Offset: 3000, Sequence: 2048}},
		[]record.Position{{Offset: 0}, {Offset: 1030, Sequence: 1024}}, []byte("state"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole[:len(whole)-32])
	f.Add([]byte(magic + "{}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if _, _, _, err := parseFile(key, content); err == nil {
			t.Error("without an HMAC it was read")
		}
		h, anchors, saved, err := parseFile(key, signed(key, content))
		if err != nil {
			return
		}
		again, err := appendFile(key, h, anchors, saved)
		if err != nil {
			t.Fatal(err)
		}
		if h2, anchors2, saved2, err := parseFile(key, again); err != nil || !h2.Position.Equal(h.Position) || h2.Journal != h.Journal || !slices.EqualFunc(anchors, anchors2, record.Position.Equal) || !bytes.Equal(saved, saved2) {
			t.Errorf("%+v is written as %+v: %v", h, h2, err)
		}
	})
}

// TestAMakerThatMayNot makes no snapshot: the bucket may be that of the venue that this one is a copy of.
func TestAMakerThatMayNot(t *testing.T) {
	v, c := newVenue(t), codec{1, 0}
	v.own(c)
	m, fold := v.follow(c, nil, 1)
	var asked atomic.Int32
	var may atomic.Bool
	m.cfg.May = func() bool { asked.Add(1); return may.Load() }
	m.cfg.Interval = time.Millisecond // so that it does not wait for other nodes
	v.wait(fold, v.say("one"))
	m.Stop(t.Context())
	running(t, m.Run)
	v.until(func() bool { return asked.Load() > 3 }) // at the stop, and by three rounds
	if left := v.blobs(); len(left) > 0 {
		t.Errorf("it made %q", left)
	}
	may.Store(true)
	v.until(func() bool { return len(v.blobs()) > 0 })
}
