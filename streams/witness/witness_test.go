package witness

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

var (
	key   = []byte("a key of the venue")
	rules = journaltest.Words{Name: "trading"}
)

func position(sequence int64) record.Position {
	return record.Position{Offset: sequence + 2, Sequence: sequence, Hash: record.Hash{byte(sequence)}}
}

func newStore(t *testing.T, bucket *gocloud.Bucket, prefix string) (*Store, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	return NewStore(Config{Bucket: bucket, Key: key, TopicPrefix: prefix, Logger: slog.New(slog.NewTextHandler(log, nil))}), log
}

// known returns the sequences that a store tells of a journal, in order.
func known(t *testing.T, s *Store, name string) (sequences []int64) {
	t.Helper()
	positions, err := s.Positions(t.Context(), name, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range positions {
		if !p.Equal(position(p.Sequence)) {
			t.Errorf("%v is not what was written", p)
		}
		sequences = append(sequences, p.Sequence)
	}
	slices.Sort(sequences)
	return sequences
}

func TestEachNodeHasItsWitness(t *testing.T) {
	folder := t.TempDir()
	bucket, err := blob.Open(t.Context(), blob.URLOf(folder))
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	s, _ := newStore(t, bucket, "")
	other, _ := newStore(t, bucket, "venue-2-")
	for _, w := range []struct {
		store   *Store
		journal string
		node    string
		at      int64
	}{{s, "trading", "n1", 5}, {s, "trading", "../n/2 ü", 7}, {s, "identity", "n1", 1}, {other, "trading", "n1", 9}, {s, "trading", "n1", 6}} {
		if err := w.store.write(t.Context(), w.journal, 0, w.node, position(w.at)); err != nil {
			t.Fatal(err)
		}
	}
	if got := known(t, s, "trading"); !slices.Equal(got, []int64{6, 7}) {
		t.Errorf("known are %v", got)
	}
	if n, err := NewStore(Config{Bucket: bucket}).Forget(t.Context(), "trading", 0); n != 2 || err != nil {
		t.Errorf("forgot %d: %v", n, err)
	}
	if got := [][]int64{known(t, s, "trading"), known(t, s, "identity"), known(t, other, "trading")}; len(got[0]) != 0 || got[1][0] != 1 || got[2][0] != 9 {
		t.Errorf("left are %v", got)
	}
}

// TestAWitnessOfNobodyIsIgnored damages, moves and forges witnesses. A venue that believed one would not start.
func TestAWitnessOfNobodyIsIgnored(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	defer bucket.Close()
	s, log := newStore(t, bucket, "")
	if err := s.write(t.Context(), "trading", 0, "n1", position(5)); err != nil {
		t.Fatal(err)
	}
	good, err := bucket.ReadAll(t.Context(), s.key("trading", 0, "n1"))
	if err != nil {
		t.Fatal(err)
	}
	forger := NewStore(Config{Bucket: bucket, Key: []byte("another key")})
	line, _, _ := bytes.Cut(good, []byte("\n"))
	for what, content := range map[string][]byte{"empty": {}, "cut off": good[:len(good)-2], "longer": append(good[:len(good):len(good)], '\n'),
		"edited": bytes.Replace(good, []byte(`"sequence":5`), []byte(`"sequence":9`), 1), "forged": forger.sign(line), "no witness": s.sign([]byte("{}")),
		"of another node": good, "huge": bytes.Repeat([]byte("x"), maxSize+1)} {
		log.Reset()
		planted := s.key("trading", 0, "n2")
		if err := bucket.WriteAll(t.Context(), planted, content, nil); err != nil {
			t.Fatal(err)
		}
		if got := known(t, s, "trading"); !slices.Equal(got, []int64{5}) || !strings.Contains(log.String(), planted) {
			t.Errorf("%s: known are %v, and told was %s", what, got, log)
		}
	}
	if _, err := NewStore(Config{Bucket: bucket}).Positions(t.Context(), "trading", 0); err == nil {
		t.Error("positions are told by who can't tell which witnesses are the venue's")
	}
}

// TestPlantedFilesHoldNobodyUp plants what can't be read beside witnesses, and what gocloud's own driver would read on the way
// to them. An owner must not wait for any of it.
func TestPlantedFilesHoldNobodyUp(t *testing.T) {
	dir := t.TempDir()
	bucket, err := blob.Open(t.Context(), blob.URLOf(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	s, log := newStore(t, bucket, "")
	for node, at := range map[string]int64{"n1": 5, "n2": 6} {
		if err := s.write(t.Context(), "trading", 0, node, position(at)); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(s.folder("trading", 0)), name) }
	for name, plant := range map[string]func(path string) error{
		"n2.witness.attrs":                     func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
		"n1.witness.attrs":                     func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"n3.witness":                           func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"n4.witness":                           func(path string) error { return os.Mkdir(path, 0o700) },
		"n5.witness":                           func(path string) error { return os.Symlink("nowhere", path) },
		"n6.witness":                           func(path string) error { return os.Symlink(os.DevNull, path) },
		"n7.witness":                           func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"n8.witness.1890abcdef012345.tmp":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"n9.witness.1890abcdef012345.tmp.more": func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		if err := plant(at(name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := known(t, s, "trading"); !slices.Equal(got, []int64{5, 6}) || !strings.Contains(log.String(), "n7.witness") {
		t.Errorf("known are %v, and told was %s", got, log)
	}
}

func TestWhatAKilledNodeWasWritingIsClearedUp(t *testing.T) {
	dir := t.TempDir()
	bucket, err := blob.Open(t.Context(), blob.URLOf(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	s, _ := newStore(t, bucket, "")
	if err := s.write(t.Context(), "trading", 0, "n1", position(5)); err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(dir, filepath.FromSlash(s.folder("trading", 0)))
	for name, age := range map[string]time.Duration{"n2.witness.1890abcdef012345.tmp": 2 * blob.AbandonedAfter, "n2.witness.1890abcdef012346.tmp": 0} {
		if err := os.WriteFile(filepath.Join(place, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(place, name), time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.retire(t.Context(), "trading", 0, position(5)); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(place, "*")); err != nil || len(left) != 2 || filepath.Base(left[1]) != "n2.witness.1890abcdef012346.tmp" {
		t.Errorf("left are %v: %v", left, err)
	}
}

func TestWitnessesOfNodesThatAreGoneAreClearedUp(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	defer bucket.Close()
	s, _ := newStore(t, bucket, "")
	for node, at := range map[string]int64{"gone": 4, "gone, and knew more": 8, "here": 5} {
		if err := s.write(t.Context(), "trading", 0, node, position(at)); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(node, "gone") {
			age(t, s, node)
		}
	}
	if err := s.retire(t.Context(), "trading", 0, position(6)); err != nil {
		t.Fatal(err)
	}
	if got := known(t, s, "trading"); !slices.Equal(got, []int64{5, 8}) {
		t.Errorf("left are %v", got)
	}
}

// age makes a node's witness one that was written long ago.
func age(t *testing.T, s *Store, node string) {
	t.Helper()
	name := s.key("trading", 0, node)
	content, err := s.cfg.Bucket.ReadAll(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := bytes.Cut(content, []byte("\n"))
	line = bytes.Replace(line, []byte(`"written":"20`), []byte(`"written":"19`), 1) // most other years lack a 29 February
	if err := s.cfg.Bucket.WriteAll(t.Context(), name, s.sign(line), nil); err != nil {
		t.Fatal(err)
	}
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

// venue is a journal with an owner that knows nothing but the witnesses.
type venue struct {
	t      *testing.T
	client *journal.Client
	store  *Store
	folder string
}

func newVenue(t *testing.T) *venue {
	t.Helper()
	v := &venue{t: t, client: journaltest.NewClient(t, "trading"), folder: t.TempDir()}
	bucket, err := blob.Open(t.Context(), blob.URLOf(v.folder))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bucket.Close() })
	v.store, _ = newStore(t, bucket, "")
	return v
}

func (v *venue) owner() *journal.Owner {
	v.t.Helper()
	o, err := journal.NewOwner(journal.OwnerConfig{Client: v.client, Rules: rules, Node: "n1", Known: []journal.Known{v.store}})
	if err != nil {
		v.t.Fatal(err)
	}
	return o
}

// own runs an owner, and waits until it serves.
func (v *venue) own() (o *journal.Owner, stop func()) {
	v.t.Helper()
	o = v.owner()
	stop = running(v.t, o.Run)
	for limit := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		if _, ok := o.Serving(); ok {
			return o, stop
		}
		if time.Now().After(limit) {
			v.t.Fatal("the owner does not come to serve")
		}
	}
}

func (v *venue) say(o *journal.Owner, word string) record.Position {
	v.t.Helper()
	var busy *submit.NotAcceptedError // it does not serve yet, or the machine is busy
	for limit := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		r, err := o.Submit(v.t.Context(), journaltest.Say(word))
		if err == nil {
			return r.Entry.Position
		}
		if !errors.As(err, &busy) || time.Now().After(limit) {
			v.t.Fatal(err)
		}
	}
}

// TestACleanStopLeavesAWitnessOfTheTip stops a venue right after a write and cuts the log. Nothing but the witness knows.
func TestACleanStopLeavesAWitnessOfTheTip(t *testing.T) {
	v := newVenue(t)
	fold := follow.New(v.client, rules, 0)
	stopFold := running(t, fold.Run)
	k := NewKeeper(KeeperConfig{Store: v.store, Client: v.client, Rules: rules, Fold: fold, Node: "n1"})
	o, stop := v.own()
	v.say(o, "one")
	last := v.say(o, "two")
	stop()
	k.CatchUp(t.Context())
	stopFold()
	k.Stop(t.Context())
	if positions, err := v.store.Positions(t.Context(), "trading", 0); err != nil || len(positions) != 1 || !positions[0].Equal(last) {
		t.Fatalf("the witness says %v and not %v: %v", positions, last, err)
	}
	if files, err := filepath.Glob(filepath.Join(v.folder, "witnesses/trading/0/*")); err != nil || len(files) != 1 {
		t.Errorf("files %v: %v", files, err)
	}

	o, stop = v.own() // as long as the log is whole
	v.say(o, "three")
	stop()
	journaltest.Cut(t, v.client, "trading", last.Offset)
	var diverged *record.DivergedError
	if err := v.owner().Run(t.Context()); !errors.As(err, &diverged) || !diverged.Have.Equal(last) {
		t.Errorf("without its end the log is taken: %v", err)
	}
	if err := v.client.HoldsKnown(t.Context(), rules, 0, v.store); !errors.As(err, &diverged) {
		t.Errorf("without its end the log is believed: %v", err)
	}
	if n, err := v.store.Forget(t.Context(), "trading", 0); n != 1 || err != nil {
		t.Fatalf("forgot %d: %v", n, err)
	}
	o, _ = v.own()
	v.say(o, "again")
}

// TestAShorterLogLeavesTheWitnessAsItIs starts and stops the node on a log that has lost its end, and on one that goes on
// otherwise from there. What the node has seen before stays known.
func TestAShorterLogLeavesTheWitnessAsItIs(t *testing.T) {
	v := newVenue(t)
	once := func() {
		t.Helper()
		fold := follow.New(v.client, rules, 0)
		stop := running(t, fold.Run)
		k := NewKeeper(KeeperConfig{Store: v.store, Client: v.client, Rules: rules, Fold: fold, Node: "n1"})
		k.CatchUp(t.Context())
		stop()
		k.Stop(t.Context())
	}
	o, stop := v.own()
	v.say(o, "one")
	last := v.say(o, "two")
	stop()
	once()
	knows := func(what string, want record.Position) {
		t.Helper()
		if positions, err := v.store.Positions(t.Context(), "trading", 0); err != nil || len(positions) != 1 || !positions[0].Equal(want) {
			t.Errorf("%s: the witness says %v and not %v: %v", what, positions, want, err)
		}
	}
	knows("of the whole log", last)
	journaltest.Cut(t, v.client, "trading", last.Offset)
	once()
	knows("after a start on the log without its end", last)

	careless, err := journal.NewOwner(journal.OwnerConfig{Client: v.client, Rules: rules, Node: "n2"})
	if err != nil {
		t.Fatal(err)
	}
	stop = running(t, careless.Run)
	for range 3 {
		v.say(careless, "other")
	}
	stop()
	once()
	knows("after a start on a log that went on otherwise", last)
	if _, err := v.store.Forget(t.Context(), "trading", 0); err != nil {
		t.Fatal(err)
	}
	once()
	if positions, err := v.store.Positions(t.Context(), "trading", 0); err != nil || len(positions) != 1 || positions[0].Sequence <= last.Sequence {
		t.Errorf("of a log that was forgotten, the witness says %v: %v", positions, err)
	}
}

// followed owns the journal, adds a record, and returns a fold that has read it, and its position.
func (v *venue) followed() (*follow.Fold, record.Position) {
	v.t.Helper()
	fold := follow.New(v.client, rules, 0)
	running(v.t, fold.Run)
	o, _ := v.own()
	last := v.say(o, "one")
	if err := fold.Wait(v.t.Context(), last.Sequence); err != nil {
		v.t.Fatal(err)
	}
	return fold, last
}

// TestAWitnessIsWrittenAfterSoManyRecords is about a venue that is not stopped, but killed.
func TestAWitnessIsWrittenAfterSoManyRecords(t *testing.T) {
	k := &Keeper{last: position(10), at: time.Now()}
	for _, c := range []struct {
		at   int64
		wait time.Duration
		due  bool
	}{{10, 0, false}, {10, time.Hour, false}, {11, 0, false}, {11, within, true}, {9 + Every, within - 1, false}, {10 + Every, 0, true}} {
		if got := k.due(position(c.at), k.at.Add(c.wait)); got != c.due {
			t.Errorf("at %d after %v: due %v", c.at, c.wait, got)
		}
	}
}

// TestAFoldThatIsNotYetThere: a fold that reads the log from its genesis passes the last witness later. Only a stop before it is worth
// a warning.
func TestAFoldThatIsNotYetThere(t *testing.T) {
	v := newVenue(t)
	fold, last := v.followed()
	if err := v.store.write(t.Context(), "trading", 0, "n1", position(last.Sequence+5)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	k := NewKeeper(KeeperConfig{Store: v.store, Client: v.client, Rules: rules, Fold: fold, Node: "n1"})
	k.log = slog.New(slog.NewTextHandler(&out, nil))
	k.tick(t.Context(), time.Now().Add(within))
	if out.Len() > 0 {
		t.Errorf("on its way it said %s", out.String())
	}
	k.Stop(t.Context())
	if !strings.Contains(out.String(), "level=WARN") || !k.last.IsBefore() {
		t.Errorf("at the stop it said %q, and the witness is %v", out.String(), k.last)
	}
}

func TestABucketThatFailsHoldsNothingUp(t *testing.T) {
	v := newVenue(t)
	fold, last := v.followed()
	if err := os.WriteFile(filepath.Join(v.folder, "witnesses"), nil, 0o600); err != nil { // where a folder should be
		t.Fatal(err)
	}
	k := NewKeeper(KeeperConfig{Store: v.store, Client: v.client, Rules: rules, Fold: fold, Node: "n1"})
	k.Stop(t.Context())
	if !k.last.IsBefore() {
		t.Error("a witness was written")
	}
	if err := os.Remove(filepath.Join(v.folder, "witnesses")); err != nil {
		t.Fatal(err)
	}
	k.Stop(t.Context())
	if !k.last.Equal(last) {
		t.Errorf("the witness says %v", k.last)
	}
}

// TestAKeeperThatMayNot writes no witness: the bucket may be that of the venue that this one is a copy of.
func TestAKeeperThatMayNot(t *testing.T) {
	v := newVenue(t)
	fold, _ := v.followed()
	may := false
	k := NewKeeper(KeeperConfig{Store: v.store, Client: v.client, Rules: rules, Fold: fold, Node: "n1", May: func() bool { return may }})
	for _, may = range []bool{false, true} {
		k.Stop(t.Context())
		if positions, err := v.store.Positions(t.Context(), "trading", 0); err != nil || len(positions) > 0 != may {
			t.Errorf("it may: %v, and the witnesses say %v: %v", may, positions, err)
		}
	}
}
