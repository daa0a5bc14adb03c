package transparency_test

import (
	"errors"
	"io/fs"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	. "github.com/perpetua-exchange/perpetua/streams/transparency"
)

// TestPast: the tree of every smaller size is signed and proves its last record, though its partial tiles never existed.
func TestPast(t *testing.T) {
	l := publish(t, 1)
	l.grow(700)
	reader := NewReader(l.origin, l.store, l, l)
	for _, size := range []int64{1, 5, 255, 256, 257, 300, 512, 699, 700} {
		p, err := l.signer.Past(t.Context(), reader, size)
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		small := publish(t, 1)
		small.grow(int(size))
		policy, err := NewPolicy().ForLog(l.key.Verifier())
		if err != nil {
			t.Fatal(err)
		}
		o, err := policy.Open(c.Note)
		if err != nil || o.Size != size || o.Root != small.tree.Root() {
			t.Fatalf("the tree of size %d: %+v, %v", size, o, err)
		}
		path, err := p.Prove(t.Context(), o.Tree(), size-1)
		if err != nil {
			t.Fatal(err)
		}
		entry := Entry(l.root(size - 1))
		if err := tlog.CheckRecord(path, size, o.Root, size-1, tlog.RecordHash(entry[:])); err != nil {
			t.Errorf("record %d: %v", size-1, err)
		}
	}
	if _, err := l.signer.Past(t.Context(), reader, 701); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a tree that is not published yet: %v", err)
	}
}
