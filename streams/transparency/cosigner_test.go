package transparency_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	. "github.com/perpetua-exchange/perpetua/streams/transparency"
	"github.com/perpetua-exchange/perpetua/streams/transparency/witnesstest"
)

// table implements Heads and CosignedTrees for one log.
type table struct {
	mu               sync.Mutex
	head             Head
	signed, cosigned Checkpoint
	changed          chan struct{} // closed at each cosigned checkpoint
}

func (s *table) Head(context.Context, Origin) (Head, error) { return s.head, nil }

func (s *table) Advance(_ context.Context, _ Origin, _, next Head) error {
	s.head = next
	return nil
}

func (s *table) Publish(_ context.Context, _ Origin, c Checkpoint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signed = c
	return nil
}

func (s *table) Published(context.Context, Origin) (Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signed, nil
}

func (s *table) PublishCosigned(_ context.Context, _ Origin, c Checkpoint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Size >= s.cosigned.Size {
		s.cosigned = c
		close(s.changed)
		s.changed = make(chan struct{})
	}
	return nil
}

func (s *table) Cosigned(context.Context, Origin) (Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cosigned, nil
}

// publishedLog is a log whose tiles are in a bucket in memory.
type publishedLog struct {
	*table
	t      *testing.T
	origin Origin
	seed   byte
	tree   Tree
	store  *Store
	signer *Signer
	key    *Key
}

func publish(t *testing.T, seed byte) *publishedLog {
	t.Helper()
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { bucket.Close() })
	l := &publishedLog{table: &table{changed: make(chan struct{})}, t: t, origin: Origin{"venue.example", "trading", 0, scalar.ID{9}}, seed: seed}
	l.store = NewStore(blob.NewStore(bucket), l.origin)
	var err error
	if l.key, err = NewKey(l.origin, make([]byte, 32)); err != nil {
		t.Fatal(err)
	}
	l.signer = NewSigner(l.origin, l, l.key)
	return l
}

// root returns the root of a record.
func (l *publishedLog) root(sequence int64) commitment.Hash {
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte{l.seed}, uint64(sequence)))
}

// grow appends records and publishes the checkpoint.
func (l *publishedLog) grow(n int) {
	l.t.Helper()
	var tiles []Tile
	for range n {
		l.tree.Append(l.root(l.tree.Size()), func(t Tile) { tiles = append(tiles, t) })
	}
	ctx := l.t.Context()
	if err := l.store.Write(ctx, append(tiles, l.tree.Partial()...)); err != nil {
		l.t.Fatal(err)
	}
	c, err := l.signer.Sign(ctx, Head{}, Head{Size: l.tree.Size(), Root: l.tree.Root()}, nil)
	if err == nil {
		err = l.Publish(ctx, l.origin, c)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// cosign runs a cosigner until the end of the test or until stop is called.
func (l *publishedLog) cosign(p *Policy) (c *Cosigner, stop func()) {
	l.t.Helper()
	c = NewCosigner(CosignerConfig{Origin: l.origin, Policy: p, Store: l.store, Heads: l, Cosigned: l, Every: time.Millisecond, Again: time.Hour})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Run(ctx)
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	l.t.Cleanup(stop)
	return c, stop
}

// until waits until a checkpoint of a size is cosigned, and returns it under the policy.
func (l *publishedLog) until(p *Policy, size int64) *Opened {
	l.t.Helper()
	tooLate := time.After(time.Minute)
	for range 1_000_000 {
		l.mu.Lock()
		c, changed := l.cosigned, l.changed
		l.mu.Unlock()
		if c.Size < size {
			select {
			case <-changed:
			case <-tooLate:
				l.t.Fatalf("no checkpoint of %d records is cosigned after a minute", size)
			}
			continue
		}
		own, err := p.ForLog(l.key.Verifier())
		if err != nil {
			l.t.Fatal(err)
		}
		o, err := own.Open(c.Note)
		if err != nil {
			l.t.Fatalf("%v\n%s", err, c.Note)
		}
		return o
	}
	panic("unreachable")
}

// witnessed returns a policy with n witnesses, which know the log, and a quorum.
func (l *publishedLog) witnessed(n int, quorum string) (*Policy, []*witnesstest.Witness) {
	l.t.Helper()
	var text strings.Builder
	var all []*witnesstest.Witness
	for i := range n {
		w := witnesstest.Start(l.t, fmt.Sprintf("witness.example/w%d", i))
		if err := w.Knows(l.key.Verifier()); err != nil {
			l.t.Fatal(err)
		}
		fmt.Fprintf(&text, "witness w%d %v %s/\n", i, w.Key(), w.URL)
		all = append(all, w)
	}
	p, err := ParsePolicy([]byte(text.String() + quorum))
	if err != nil {
		l.t.Fatal(err)
	}
	return p, all
}

// TestCosigned has witnesses cosign a log that grows. One that is away delays nothing while the quorum is met. One that forgot, or a
// cosigner that starts anew, continues.
func TestCosigned(t *testing.T) {
	l := publish(t, 1)
	p, w := l.witnessed(3, "group g 2 w0 w1 w2\nquorum g\n")
	l.grow(5)
	_, stop := l.cosign(p)
	if o := l.until(p, 5); len(o.Cosigned) < 2 || o.Size != 5 || o.Root != l.tree.Root() {
		t.Errorf("%+v", o)
	}
	w[1].Away(true)
	l.grow(300)
	if o := l.until(p, 305); len(o.Cosigned) != 2 {
		t.Errorf("%+v", o)
	}
	w[0].Forget()
	l.grow(1)
	l.until(p, 306)
	w[1].Away(false)
	w[0].Away(true)
	stop()
	l.grow(700)
	l.cosign(p) // another process
	if o := l.until(p, 1006); len(o.Cosigned) != 2 || o.Cosigned[0].Witness != "w1" || time.Since(o.Cosigned[0].Time) > time.Hour {
		t.Errorf("%+v", o)
	}
	if last, _ := w[1].Last(l.origin.String()); last.N != 1006 || last.Hash != l.tree.Root() {
		t.Errorf("the witness has cosigned %v", last)
	}
}

// TestCovers counts the distinct witnesses of the policy that have cosigned a checkpoint.
func TestCovers(t *testing.T) {
	l := publish(t, 1)
	p, w := l.witnessed(3, "group g 2 w0 w1 w2\nquorum g\n")
	w[2].Away(true)
	l.grow(5)
	_, stop := l.cosign(p)
	l.until(p, 5)
	stop()
	c := l.cosigned
	foreign := l.origin
	foreign.Journal = "identity"
	forged := c
	forged.Note = bytes.Replace(c.Note, []byte("\n5\n"), []byte("\n9\n"), 1)
	for name, a := range map[string]struct {
		origin Origin
		c      Checkpoint
		quorum int
		want   int64
		sound  bool
	}{
		"as many":          {l.origin, c, 2, 5, true},
		"too few":          {l.origin, c, 3, 0, true},
		"none is cosigned": {l.origin, Checkpoint{}, 1, 0, true},
		"another log":      {foreign, c, 1, 0, false},
		"another number":   {l.origin, forged, 1, 0, false},
		"no key":           {l.origin, Checkpoint{Size: 5, Note: c.Note, Verifier: "not a key"}, 1, 0, false},
	} {
		if got, err := p.Covers(a.origin, a.c, a.quorum); got != a.want || (err == nil) != a.sound {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}

// TestWitnessesRefuse: a log that is another than the one a witness cosigned, or that the witness does not know, gets no cosignature.
func TestWitnessesRefuse(t *testing.T) {
	one := publish(t, 1)
	p, w := one.witnessed(1, "quorum w0\n")
	one.grow(300)
	_, stop := one.cosign(p)
	one.until(p, 300)
	stop()
	refuseForks(t, p)
	if last, _ := w[0].Last(one.origin.String()); last.N != 300 || last.Hash != one.tree.Root() {
		t.Errorf("the witness has cosigned %v", last)
	}
}

// refuseForks checks that the witness of a policy cosigns no fork of a log of which it has cosigned 300 records, and that the
// cosigner reports that.
func refuseForks(t *testing.T, p *Policy) {
	t.Helper()
	for name, size := range map[string]int{"a fork that is longer": 400, "one of the same size": 300, "one that is cut": 200} {
		fork := publish(t, 2)
		fork.grow(size)
		c, stop := fork.cosign(p)
		said := awaitStatus(t, c, func(err error) bool { return err != nil && strings.Contains(err.Error(), "has cosigned another tree") })
		stop()
		t.Logf("%s: %v", name, said)
		if fork.cosigned.Size > 0 {
			t.Errorf("%s: %d records are cosigned", name, fork.cosigned.Size)
		}
	}
}

// awaitStatus waits until a condition holds for the result of the last submission to the first witness, and returns that.
func awaitStatus(t *testing.T, c *Cosigner, holds func(error) bool) (err error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		if err = c.Status()[0].Err; holds(err) {
			return err
		}
		if time.Now().After(deadline) {
			t.Fatalf("the last submission has ended with %v", err)
		}
	}
}

func TestCosignatures(t *testing.T) {
	l := publish(t, 1)
	l.grow(3)
	p, w := l.witnessed(2, "quorum w1\n")
	own, err := p.ForLog(l.key.Verifier())
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(l.signed.Note), "\n\n")
	text += "\n"
	with := func(lines ...string) []byte { return []byte(string(l.signed.Note) + strings.Join(lines, "")) }
	if _, err := own.Open(with()); !errors.Is(err, ErrQuorum) {
		t.Error(err)
	}
	if _, err := own.Open(with(w[0].Cosign(text))); !errors.Is(err, ErrQuorum) {
		t.Error(err)
	}
	if o, err := own.Open(with(w[0].Cosign(text), w[1].Cosign(text))); err != nil || len(o.Cosigned) != 2 {
		t.Error(err)
	}
	if _, err := own.OpenSigned(with(w[0].Cosign("another" + text))); err == nil || errors.Is(err, ErrQuorum) {
		t.Errorf("a cosignature of another text: %v", err)
	}
	if _, err := own.Open([]byte(text + "\n" + w[1].Cosign(text))); err == nil {
		t.Error("a checkpoint is accepted that the log did not sign")
	}
	key := w[0].Key()
	if again, err := ParseWitnessKey(key.String()); err != nil || again.String() != key.String() {
		t.Errorf("%v, %v", again, err)
	}
}

// TestPolicies refuses policies by the line.
func TestPolicies(t *testing.T) {
	l := publish(t, 1)
	log := l.key.Verifier()
	var keys []string
	for i := range 5 {
		keys = append(keys, witnesstest.Start(t, fmt.Sprint("w", i)).Key().String())
	}
	good := "# a comment\n\n \tlog  " + log + " https://venue.example\nwitness A " + keys[0] + "\nwitness B " + keys[1] + " https://b.example/x/\n" +
		"witness C " + keys[2] + "\ngroup AB any A B\ngroup all all AB C\nquorum all\n"
	p, err := ParsePolicy([]byte(good))
	if err != nil || len(p.Logs) != 1 || len(p.Witnesses) != 3 || p.Witnesses[1].URL != "https://b.example/x" || !p.NeedsWitnesses() {
		t.Fatalf("%v, %+v", err, p)
	}
	if p, err := ParsePolicy([]byte("quorum none\n")); err != nil || p.NeedsWitnesses() {
		t.Error(err)
	}
	for bad, want := range map[string]string{
		"":                     "quorum",
		good[:len(good)-1]:     "line 9: the line does not end",
		good + "quorum all\n":  "line 10: a second quorum",
		"quorum A\n":           `line 1: "A" is not defined`,
		"hello\n":              "line 1: a line is",
		"log x\nquorum none\n": "line 1: the key of a log",
		"witness none " + keys[0] + "\nquorum none\n":                          "line 1: the name",
		"witness A " + keys[0] + "\nwitness A " + keys[1] + "\nquorum A\n":     "line 2: the name",
		"witness A " + keys[0] + "\nwitness B " + keys[0] + "\nquorum A\n":     "line 2: the key occurs",
		"witness A " + keys[0] + " ftp://x\nquorum A\n":                        "line 1: \"ftp://x\"",
		"witness A " + log + "\nquorum A\n":                                    "line 1: the key of the witness A: a key of type 1",
		"witness A " + strings.Replace(keys[0], "+", "+0", 1) + "\nquorum A\n": "line 1: the key of the witness A: the hash",
		"witness A " + keys[0] + "\ngroup g 2 A\nquorum g\n":                   "line 2: the threshold",
		"witness A " + keys[0] + "\ngroup g 01 A\nquorum g\n":                  "line 2: the threshold",
		"witness A " + keys[0] + "\ngroup g all A A\nquorum g\n":               "line 2: \"A\" is a member",
		"witness A " + keys[0] + "\ngroup g all A\ngroup h all A\nquorum g\n":  "line 3: \"A\" is a member",
		"group g all A\nwitness A " + keys[0] + "\nquorum g\n":                 "line 1: \"A\" is not defined",
		"quorum none\r\n": "line 1: column 12",
	} {
		if _, err := ParsePolicy([]byte(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", bad, err, want)
		}
	}
}

// FuzzParsePolicy finds no policy that panics, nor one without a quorum.
func FuzzParsePolicy(f *testing.F) {
	f.Add("witness A w+1+BA==\ngroup g any A\nquorum g\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ParsePolicy([]byte(text)); err == nil && !strings.Contains(text, "quorum") {
			t.Error("there is no quorum")
		}
	})
}

// FuzzParseProof: what is read has one form.
func FuzzParseProof(f *testing.F) {
	f.Add("c2sp.org/tlog-proof@v1\nindex 3\n" + strings.Repeat("A", 43) + "=\n\na\n1\nb\n\n— c d\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseProof(text)
		if err == nil && !strings.Contains(text, "\nextra ") && p.String() != text {
			t.Errorf("%q becomes %q", text, p)
		}
	})
}
