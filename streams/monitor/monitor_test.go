package monitor_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/monitor"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
	"github.com/perpetua-exchange/perpetua/streams/transparency/witnesstest"
)

// source serves a log of some records.
type place struct {
	*httptest.Server
	t     *testing.T
	tree  transparency.Tree
	files map[string][]byte
	key   *transparency.Key
	sign  *transparency.Signer
	text  string // of the checkpoint
	asked func(name string)
}

type signsAll struct{ transparency.Heads }

func (signsAll) Advance(context.Context, transparency.Origin, transparency.Head, transparency.Head) error {
	return nil
}

var origin = transparency.Origin{Host: "venue.example", Journal: "trading", ID: scalar.ID{1}}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, files: make(map[string][]byte)}
	var err error
	if p.key, err = transparency.NewKey(origin, make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	p.sign = transparency.NewSigner(origin, signsAll{}, p.key)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if p.asked != nil {
			p.asked(name)
		}
		b, ok := p.files[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(b)
	}))
	t.Cleanup(p.Close)
	return p
}

// grow appends records of a seed up to a size, and signs.
func (p *place) grow(seed byte, size int64) *place {
	p.t.Helper()
	keep := func(t transparency.Tile) { p.files[transparency.TilePath(t.Tile)] = t.Data }
	for i := p.tree.Size(); i < size; i++ {
		p.tree.Append(sha256.Sum256(binary.BigEndian.AppendUint64([]byte{seed}, uint64(i))), keep)
	}
	for _, tile := range p.tree.Partial() {
		keep(tile)
	}
	c, err := p.sign.Sign(p.t.Context(), transparency.Head{}, transparency.Head{Size: size, Root: p.tree.Root()}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	p.files["checkpoint"] = c.Note
	text, _, _ := strings.Cut(string(c.Note), "\n\n")
	p.text = text + "\n"
	return p
}

// watched is a monitor with its state.
type watched struct {
	t      *testing.T
	m      *monitor.Monitor
	state  monitor.State
	policy *transparency.Policy
	file   string
	now    time.Time
}

func watch(t *testing.T, policy *transparency.Policy, places ...*place) *watched {
	t.Helper()
	w := &watched{t: t, policy: policy, now: time.Now(), file: filepath.Join(t.TempDir(), "state")}
	var urls []string
	for _, p := range places {
		urls = append(urls, p.URL)
	}
	w.m = monitor.New(monitor.Config{URLs: urls, Policy: policy, Stale: time.Minute, Client: http.DefaultClient, Now: func() time.Time { return w.now }})
	return w
}

// check checks, and wants alarms of these kinds. The state passes through its file.
func (w *watched) check(want ...string) monitor.Report {
	w.t.Helper()
	r, next := w.m.Check(w.t.Context(), w.state)
	var got []string
	for _, a := range r.Alarms {
		got = append(got, a.Kind)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.t.Errorf("alarms %+v, want %v", r.Alarms, want)
	}
	err := next.Write(w.file)
	if err == nil {
		w.state, err = monitor.ReadState(w.file, w.policy)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func policyOf(t *testing.T, p *place) *transparency.Policy {
	t.Helper()
	v, err := note.NewVerifier(p.key.Verifier())
	if err != nil {
		t.Fatal(err)
	}
	return transparency.NewPolicy(v)
}

func TestGrowth(t *testing.T) {
	a, b := newPlace(t).grow(1, 300), newPlace(t).grow(1, 257)
	w := watch(t, policyOf(t, a), a, b)
	if r := w.check(); r.Records != 300 {
		t.Errorf("%+v", r)
	}
	a.grow(1, 5000)
	b.grow(1, 300)
	w.now = w.now.Add(time.Hour)
	if r := w.check(); r.Records != 5000 {
		t.Errorf("%+v", r)
	}
	w.now = w.now.Add(time.Hour)
	b.grow(1, 5000)
	w.check(monitor.Stale) // a
	b.Close()
	w.check(monitor.Stale, monitor.Unreachable)
}

// TestForks are found between two sources, and against what is remembered.
func TestForks(t *testing.T) {
	a, b := newPlace(t).grow(1, 300), newPlace(t).grow(2, 300)
	w := watch(t, policyOf(t, a), a, b)
	w.check(monitor.Fork)
	b.grow(2, 400)
	w.check(monitor.Fork)
	one := watch(t, policyOf(t, a), a)
	one.check()
	forked := newPlace(t).grow(2, 1000)
	a.files = forked.files
	one.check(monitor.Fork)
	one.check(monitor.Fork) // it is not forgotten
}

// TestMissingTiles: a checkpoint is not remembered before tiles prove it, so that it is still found to be a fork.
func TestMissingTiles(t *testing.T) {
	a := newPlace(t).grow(1, 1000)
	w := watch(t, policyOf(t, a), a)
	w.check()
	a.files = newPlace(t).grow(2, 2000).files
	const name = "tile/0/003"
	tile := a.files[name]
	delete(a.files, name)
	w.check(monitor.Unreachable)
	w.check(monitor.Unreachable)
	a.files[name] = tile
	w.check(monitor.Fork)
}

// TestFirstTiles: the first checkpoint is not remembered before tiles prove it, and tiles of a second place with the same checkpoint are
// compared with it too. That place need not have tiles.
func TestFirstTiles(t *testing.T) {
	a, b := newPlace(t).grow(1, 1000), newPlace(t).grow(1, 1000)
	const edge = "tile/1/000.p/3"
	right := a.files[edge]
	wrong := append([]byte{right[0] ^ 1}, right[1:]...)
	w := watch(t, policyOf(t, a), a)
	a.files[edge] = wrong
	w.check(monitor.Unproven)
	delete(a.files, edge)
	w.check(monitor.Unreachable)
	if w.check(monitor.Unreachable); w.state.Checkpoint != "" {
		t.Errorf("%q is remembered without tiles", w.state.Checkpoint)
	}
	a.files[edge] = right
	if w.check(); w.state.Checkpoint == "" {
		t.Error("no checkpoint is remembered")
	}
	both := watch(t, w.policy, a, b)
	both.state = w.state
	b.files[edge] = wrong
	both.check(monitor.Unproven)
	b.files = map[string][]byte{"checkpoint": b.files["checkpoint"]}
	both.check()
}

// TestFirstTilesOfACosignedCheckpoint: nor is a cosigned checkpoint remembered before tiles prove it, if it is all that a place serves.
func TestFirstTilesOfACosignedCheckpoint(t *testing.T) {
	a := newPlace(t).grow(1, 1000)
	witness := witnesstest.Start(t, "w")
	policy, err := transparency.ParsePolicy([]byte("log " + a.key.Verifier() + "\nwitness w " + witness.Key().String() + "\nquorum w\n"))
	if err != nil {
		t.Fatal(err)
	}
	a.files["cosigned-checkpoint"] = append(slices.Clone(a.files["checkpoint"]), witness.Cosign(a.text)...)
	const edge = "tile/1/000.p/3"
	right := a.files[edge]
	delete(a.files, "checkpoint")
	a.files[edge] = append([]byte{right[0] ^ 1}, right[1:]...)
	w := watch(t, policy, a)
	if w.check(monitor.Unproven, monitor.Unreachable); w.state.Checkpoint != "" {
		t.Errorf("%q is remembered without tiles", w.state.Checkpoint)
	}
	a.files[edge] = right
	if w.check(monitor.Unreachable); w.state.Checkpoint == "" {
		t.Error("no checkpoint is remembered")
	}
}

// TestEachTileIsReadOnce: the last tiles of a checkpoint are not read again after the proof of consistency was made from them.
func TestEachTileIsReadOnce(t *testing.T) {
	a := newPlace(t).grow(1, 1000)
	w := watch(t, policyOf(t, a), a)
	w.check()
	a.grow(1, 70_000)
	read := make(map[string]int)
	a.asked = func(name string) { read[name]++ }
	w.check()
	for name, n := range read {
		if n != 1 {
			t.Errorf("%s was read %d times", name, n)
		}
	}
	if len(read) < 4 {
		t.Errorf("only %v was read", read)
	}
}

// TestWithheldTiles: a fork that grows without tiles becomes stale, although its checkpoints are new. Tiles end that.
func TestWithheldTiles(t *testing.T) {
	a := newPlace(t).grow(1, 1000)
	w := watch(t, policyOf(t, a), a)
	w.check()
	whole := newPlace(t).grow(2, 2000)
	withhold := func() { a.files = map[string][]byte{"checkpoint": whole.files["checkpoint"]} }
	withhold()
	w.check(monitor.Unreachable)
	whole.grow(2, 3000)
	withhold()
	w.now = w.now.Add(time.Hour)
	w.check(monitor.Stale, monitor.Unreachable)
	w.check(monitor.Stale, monitor.Unreachable) // the state remembers it
	whole = newPlace(t).grow(1, 4000)
	a.files = whole.files
	w.check()
	whole.grow(1, 5000)
	withhold()
	w.check(monitor.Unreachable) // the time begins again
}

// TestShorterForks: a source that is new has a shorter tree than the remembered one, which the tiles of another source prove.
func TestShorterForks(t *testing.T) {
	a, b := newPlace(t).grow(1, 1000), newPlace(t).grow(2, 500)
	one := watch(t, policyOf(t, a), a)
	one.check()
	both := watch(t, one.policy, b, a)
	both.state = one.state
	delete(a.files, "checkpoint") // its tiles are served
	both.check(monitor.Fork, monitor.Unreachable)
	b.files = newPlace(t).grow(1, 500).files
	both.check(monitor.Unreachable)
}

// TestUnprovenForks: a fork that is smaller than the remembered tree becomes stale at a source that is new, if no source has the tiles
// of that tree, although its checkpoints are new.
func TestUnprovenForks(t *testing.T) {
	a, b := newPlace(t).grow(1, 1000), newPlace(t).grow(2, 500)
	one := watch(t, policyOf(t, a), a)
	one.check()
	other := watch(t, one.policy, b)
	other.state = one.state
	other.check()
	b.grow(2, 600)
	other.now = other.now.Add(time.Hour)
	if r := other.check(monitor.Stale); len(r.Alarms) > 0 && r.Alarms[0].URL != b.URL {
		t.Errorf("%+v", r)
	}
	b.grow(2, 700)
	other.check(monitor.Stale) // the state remembers it
	b.grow(2, 1100)
	other.check(monitor.Fork)
	b.files = newPlace(t).grow(1, 1100).files
	other.check()
}

// TestUnprovenForksThatGoAway: a source that withholds tiles does not gain time if it does not answer in between.
func TestUnprovenForksThatGoAway(t *testing.T) {
	a := newPlace(t).grow(1, 1000)
	w := watch(t, policyOf(t, a), a)
	w.check()
	fork := newPlace(t)
	for i := range int64(3) {
		fork.grow(2, 2000+i)
		a.files = map[string][]byte{"checkpoint": fork.files["checkpoint"]}
		want := []string{monitor.Unreachable}
		if i > 1 {
			want = []string{monitor.Stale, monitor.Unreachable}
		}
		w.check(want...)
		w.now = w.now.Add(50 * time.Second)
		a.files = nil
		if i == 0 {
			w.check(monitor.Unreachable)
		}
	}
}

func TestOtherAlarms(t *testing.T) {
	a := newPlace(t).grow(1, 700)
	w := watch(t, policyOf(t, a), a)
	w.check()
	good := a.files["checkpoint"]
	a.files["checkpoint"] = newPlace(t).grow(1, 600).files["checkpoint"]
	w.check(monitor.Shrink)
	a.files["checkpoint"] = []byte(strings.Replace(string(good), "\n700\n", "\n701\n", 1))
	w.check(monitor.Signature)
	a.files["checkpoint"] = good[:len(good)-5]
	w.check(monitor.Signature)
	a.grow(1, 900)
	a.files["tile/0/003.p/132"][5] ^= 1
	w.check(monitor.Unproven)
	a.files["tile/0/003.p/132"][5] ^= 1
	w.check()
	text, err := os.ReadFile(w.file)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{string(text[:len(text)/2]), strings.Replace(string(text), "@v1", "@v2", 1), strings.Replace(string(text), "900", "901", 1),
		strings.Replace(string(text), `{`, `{"more":1,`, 1)} {
		if err := os.WriteFile(w.file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := monitor.ReadState(w.file, w.policy); err == nil || !strings.Contains(err.Error(), w.file) {
			t.Errorf("%v\n%s", err, bad)
		}
	}
}

// TestWitnessed asks for the cosigned checkpoint, and for its age.
func TestWitnessed(t *testing.T) {
	a := newPlace(t).grow(1, 300)
	witness := witnesstest.Start(t, "w")
	text := "log " + a.key.Verifier() + "\nwitness w " + witness.Key().String() + "\nquorum w\n"
	policy, err := transparency.ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w := watch(t, policy, a)
	w.check(monitor.Unreachable)
	a.files["cosigned-checkpoint"] = a.files["checkpoint"]
	w.check(monitor.Signature)
	a.files["cosigned-checkpoint"] = append(slices.Clone(a.files["checkpoint"]), witness.Cosign(a.text)...)
	a.grow(1, 400)
	w.check()
	w.now = w.now.Add(time.Hour)
	w.check(monitor.Stale)
	w.now = w.now.Add(-time.Hour)
	w.check()
	delete(a.files, "cosigned-checkpoint") // cosignatures that a source withholds become stale
	w.check(monitor.Unreachable)
	w.now = w.now.Add(time.Hour)
	w.check(monitor.Stale, monitor.Unreachable)
	never := watch(t, policy, a)
	never.check(monitor.Unreachable)
	never.now = never.now.Add(time.Hour)
	never.check(monitor.Stale, monitor.Unreachable)
}
