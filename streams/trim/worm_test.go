package trim_test

import (
	"errors"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/blob/blobtest"
	"github.com/perpetua-exchange/perpetua/streams/trim"
)

// TestABucketThatKeepsEverything has a tail that is out of date. The log is trimmed by its full ranges, and restored up to their end.
func TestABucketThatKeepsEverything(t *testing.T) {
	l := newLog(t, never, false)
	bucket, err := blob.Open(t.Context(), blob.URLOf(t.TempDir()))
	must(t, err)
	t.Cleanup(func() { bucket.Close() })
	worm := blobtest.NewWorm(blob.NewStore(bucket), blobtest.Policy{Until: time.Now().Add(time.Hour)})
	l.worm = worm
	all := l.topic()
	must(t, l.keepSome(all[:10]))
	for range 2 {
		if err := l.keepSome(all); !errors.Is(err, archive.ErrTailKept) {
			t.Fatal(err)
		}
	}
	found, err := worm.List(t.Context(), archive.Folder)
	if err != nil || len(found) != 2+2*4 {
		t.Errorf("%d objects, %v; want one tail and four ranges", len(found), err)
	}
	r, err := trim.Run(t.Context(), l.config(records))
	if err != nil || r.To != 256 {
		t.Fatalf("%+v, %v", r, err)
	}
	l.check()
	o := l.elsewhere()
	is, err := o.restore(0)
	if err != nil || is.Appended != 256 || is.End.Sequence != 255 {
		t.Errorf("restored: %+v, %v", is, err)
	}
	if got := o.topic(); len(got) != 256 || string(got[255].Value) != string(l.all[255].Value) {
		t.Errorf("the restored topic has %d records", len(got))
	}
	if a, err := archive.Open(t.Context(), l.archive()); err != nil || a.Tail() != nil || worm.Refused() != 2 {
		t.Errorf("%v, %v; refused %d times", a, err, worm.Refused())
	}
}
