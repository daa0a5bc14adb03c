package trim_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/blob/blobtest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/trim"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
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

// TestADamagedTail forbids no trim. A restore ends before it changes anything, and names the tail.
func TestADamagedTail(t *testing.T) {
	l := newLog(t, never, false)
	cfg := l.archive()
	found, err := cfg.Store.List(t.Context(), archive.Folder)
	must(t, err)
	tail := found[slices.IndexFunc(found, func(o *gocloud.ListObject) bool { return strings.HasSuffix(o.Key, "/tail") })].Key
	must(t, cfg.Store.Write(t.Context(), tail, []byte("perpetua"), time.Minute))
	r, err := trim.Run(t.Context(), l.config(records))
	if err != nil || r.To != 256 {
		t.Fatalf("%+v, %v", r, err)
	}
	l.check()
	a, err := archive.OpenRanges(t.Context(), l.archive())
	must(t, err)
	o := l.elsewhere()
	restore := wholelog.Restore{Client: o.client, Rules: rules, Archive: a, Keepers: []base.Keeper{o.bases}}
	var wrong *archive.Error
	if _, err := restore.Run(t.Context()); !errors.As(err, &wrong) || wrong.Key != tail {
		t.Errorf("restored: %v", err)
	}
	if _, err := restore.Extend(t.Context(), record.Position{Sequence: 255}); !errors.As(err, &wrong) || wrong.Key != tail {
		t.Errorf("extended: %v", err)
	}
	if got := o.topic(); len(got) != 0 {
		t.Errorf("the topic has %d records", len(got))
	}
}

// readOnly is a bucket that refuses every write.
type readOnly struct{ archive.Store }

var errReadOnly = errors.New("403 AccessDenied")

func (readOnly) Write(context.Context, string, []byte, time.Duration) error { return errReadOnly }
func (readOnly) Delete(context.Context, ...string) error                    { return errReadOnly }
func (readOnly) Create(context.Context, string, []byte, time.Duration) (bool, error) {
	return false, errReadOnly
}

// TestABucketThatRefusesWrites is not written to by a trim.
func TestABucketThatRefusesWrites(t *testing.T) {
	l := newLog(t, never, false)
	l.worm = readOnly{l.archive().Store}
	r, err := trim.Run(t.Context(), l.config(records))
	if err != nil || r.To != 256 {
		t.Fatalf("%+v, %v", r, err)
	}
	l.check()
}

// TestAClockThatIsOff behind the log trims nothing and is named, and so is one that differs from Postgres's. If both are ahead, the
// trim deletes what the archive holds, and no more.
func TestAClockThatIsOff(t *testing.T) {
	l := newLog(t, never, false)
	cfg := l.config(records)
	cfg.Now = func() time.Time { return timeOf(0).Add(-time.Hour) }
	r, err := trim.Run(t.Context(), cfg)
	if err != nil || r.Trimmed() || !slices.ContainsFunc(r.Why, func(l trim.Limit) bool {
		return strings.Contains(l.Reason, "the clock of this machine is behind the log")
	}) {
		t.Errorf("behind: %+v, %v", r, err)
	}
	cfg.Now = func() time.Time { return timeOf(0).AddDate(50, 0, 0) }
	cfg.Policy.After = 24 * time.Hour
	cfg.OtherClock = func(context.Context) (time.Time, error) { return timeOf(records), nil }
	if r, err = trim.Run(t.Context(), cfg); err == nil || r.Trimmed() || !strings.Contains(err.Error(), "and Postgres's 2027-01-15T08:05:00Z") {
		t.Errorf("ahead of Postgres: %+v, %v", r, err)
	}
	cfg.OtherClock = func(context.Context) (time.Time, error) { return cfg.Now(), errReadOnly }
	if r, err = trim.Run(t.Context(), cfg); !errors.Is(err, errReadOnly) || r.Trimmed() {
		t.Errorf("without the other clock: %+v, %v", r, err)
	}
	cfg.OtherClock = func(context.Context) (time.Time, error) { return cfg.Now().Add(-time.Minute), nil }
	if r, err = trim.Run(t.Context(), cfg); err != nil || r.To != 256 {
		t.Errorf("ahead: %+v, %v", r, err)
	}
	l.check()
}
