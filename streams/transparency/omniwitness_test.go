package transparency_test

import (
	"strings"
	"testing"

	. "github.com/perpetua-exchange/perpetua/streams/transparency"
	"github.com/perpetua-exchange/perpetua/streams/transparency/witnesstest"
)

// TestOmniwitness checks that omniwitness, which this project did not write, cosigns a log as it grows within a tile and over many, and
// cosigns the last tree again for another process. It refuses forks, and still cosigns the log after them.
func TestOmniwitness(t *testing.T) {
	w := witnesstest.NewOmniwitness(t, "witness.example/omni")
	l := publish(t, 1)
	w.Start(t, l.key.Verifier())
	p, err := ParsePolicy([]byte(w.Policy()))
	if err != nil {
		t.Fatal(err)
	}
	grown := func(sizes ...int64) {
		t.Helper()
		_, stop := l.cosign(p)
		defer stop()
		for _, size := range sizes {
			l.grow(int(size - l.tree.Size()))
			if o := l.until(p, size); o.Size != size || o.Root != l.tree.Root() || len(o.Cosigned) != 1 || o.Cosigned[0].Witness != "omni" {
				t.Errorf("%d records: %+v", size, o)
			}
		}
	}
	grown(1, 2, 255, 256, 257, 300)
	c, stop := l.cosign(p)
	awaitStatus(t, c, func(err error) bool { return err == nil })
	stop()
	refuseForks(t, p)
	grown(301, 70_000)
}

// TestOmniwitnessInARotation checks that omniwitness cosigns a log while two keys sign, and continues when its operator has replaced
// the old key by the new one. Between, it refuses a log that only the new key has signed.
func TestOmniwitnessInARotation(t *testing.T) {
	w := witnesstest.NewOmniwitness(t, "witness.example/omni")
	l := publish(t, 1)
	p, err := ParsePolicy([]byte(w.Policy()))
	if err != nil {
		t.Fatal(err)
	}
	old, next := l.key, l.another(2)
	sign := func(keys ...*Key) {
		t.Helper()
		l.signer, l.key = NewSigner(l.origin, l, pair(keys)), keys[0]
		l.grow(100)
	}
	stop := w.Start(t, old.Verifier())
	c, _ := l.cosign(p)
	sign(old)
	l.until(p, 100)
	sign(next, old)
	l.until(p, 200)
	sign(next)
	// The specification asks for 403. omniwitness answers 500 and logs that no signature can be verified.
	awaitStatus(t, c, func(err error) bool { return err != nil && strings.Contains(err.Error(), "it answered") })
	sign(next, old)
	l.until(p, 400)
	stop()
	w.Replace(t, next.Verifier())
	w.Start(t, next.Verifier())
	sign(next, old)
	l.until(p, 500)
	sign(next)
	l.until(p, 600)
}
