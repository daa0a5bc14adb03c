package marketdata

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// venue is a log over several days and a bucket in a folder.
type venue struct {
	entries []record.Entry
	dates   []string // of the days that are over
	dir     string
	bucket  *blob.Store
	reads   []int64 // sequences that the sources began after
}

func newVenue(t testing.TB, seed uint64) *venue {
	t.Helper()
	o := projectiontest.NewOwner(t, seed)
	o.Play(150)
	o.PassHour()
	v := &venue{dir: t.TempDir()}
	// Five days in a month's change. The third one has no records.
	begins, err := ParseDate("2026-10-30")
	must(t, err)
	step := 5 * scalar.Day / scalar.Time(len(o.Entries))
	for i, e := range o.Entries {
		r := *e.Record
		r.Time = begins + scalar.Time(i)*step
		if r.Time-begins >= 2*scalar.Day {
			r.Time += scalar.Day
		}
		if i > 0 && dataset.DateOf(r.Time) != dataset.DateOf(v.entries[i-1].Record.Time) {
			r.Time -= r.Time % scalar.Day
		}
		e.Record = &r
		v.entries = append(v.entries, e)
		if date := dataset.DateOf(r.Time); len(v.dates) == 0 || v.dates[len(v.dates)-1] != date {
			v.dates = append(v.dates, date)
		}
	}
	v.dates = v.dates[:len(v.dates)-1]
	bucket, err := blob.Open(t.Context(), blob.URLOf(v.dir))
	must(t, err)
	t.Cleanup(func() { bucket.Close() })
	v.bucket = blob.NewStore(bucket)
	return v
}

// source returns the entries one by one, and then an error of the context that ends the test's run.
type source struct {
	entries []record.Entry
	stop    context.CancelFunc
}

func (s *source) Poll(ctx context.Context) ([]record.Entry, error) {
	if len(s.entries) == 0 {
		s.stop()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	e := s.entries[:1]
	s.entries = s.entries[1:]
	return e, nil
}

func (s *source) Close() {}

func (v *venue) store(b Bucket) *Store { return NewStore(b, "data/", v.entries[0].Journal) }

// run runs a maker until it has read the first records of the log and waits for more. change may change its configuration.
func (v *venue) run(t testing.TB, records int, b Bucket, change func(*MakerConfig)) *Maker {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cfg := MakerConfig{Retry: time.Nanosecond, Store: func(context.Context) (*Store, error) { return v.store(b), nil }}
	cfg.From = func(at record.Position) Source {
		v.reads = append(v.reads, at.Sequence)
		if at.Sequence >= 0 && v.entries[at.Sequence].Position.Hash != at.Hash {
			t.Errorf("a run begins after record %d with another hash", at.Sequence)
		}
		return &source{v.entries[at.Sequence+1 : records], stop}
	}
	if change != nil {
		change(&cfg)
	}
	m := NewMaker(cfg)
	if err := m.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return m
}

// contents returns the files and manifests by path.
func (v *venue) contents(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(v.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, booksSuffix) {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(v.dir, path)
		all[name] = string(b)
		return err
	}))
	return all
}

func names(all map[string]string) []string { return slices.Sorted(maps.Keys(all)) }

func (v *venue) same(t testing.TB, what string, want map[string]string) {
	t.Helper()
	if got := v.contents(t); !maps.Equal(got, want) {
		t.Errorf("%s, the bucket has %v, and not %v", what, names(got), names(want))
	}
}

// TestDaysAreMade makes the days at once, and in several runs that continue from the saved books.
func TestDaysAreMade(t *testing.T) {
	v := newVenue(t, 1)
	m := v.run(t, len(v.entries), v.bucket, nil)
	want := v.contents(t)
	if len(want) != len(v.dates)*(1+len(dataset.PublicTables())) || len(v.dates) != 4 || slices.Contains(v.dates, "2026-11-01") {
		t.Fatalf("days %v: %v", v.dates, names(want))
	}
	if s := m.Status(); s.Day != v.dates[3] || s.Reading <= s.Day || s.Sequence != int64(len(v.entries))-1 || s.Failures != 0 || s.Halted {
		t.Errorf("%+v", s)
	}
	days, err := v.store(v.bucket).Days(t.Context())
	must(t, err)
	next := int64(0)
	for i, d := range days {
		if d.Date != v.dates[i] || d.First != next {
			t.Errorf("the day %d is %s from record %d on", i, d.Date, d.First)
		}
		for _, f := range d.Files {
			content := want[v.store(v.bucket).fileKey(d.Date, &f)]
			if int64(len(content)) != f.Bytes || record.Hash(sha256.Sum256([]byte(content))) != f.SHA256 {
				t.Errorf("%s of %s has %d bytes", f.Table, d.Date, len(content))
			}
		}
		next = d.Next
	}

	often := newVenue(t, 1)
	for n := 1; n < len(often.entries); n += 1 + len(often.entries)/17 {
		often.run(t, n, often.bucket, nil)
	}
	often.run(t, len(often.entries), often.bucket, nil)
	often.same(t, "after several runs", want)
	if first := often.reads[len(often.reads)-1]; first != days[3].Next-1 {
		t.Errorf("the last run read the log after record %d", first)
	}
}

// crashing is a bucket that ends a run at one of its operations, as a kill does.
type crashing struct {
	*blob.Store
	left int
	stop context.CancelFunc
}

var errCrash = errors.New("killed")

func (c *crashing) step() error {
	if c.left--; c.left < 0 {
		c.stop()
		return errCrash
	}
	return nil
}

func (c *crashing) Write(ctx context.Context, key string, content []byte, within time.Duration) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.Store.Write(ctx, key, content, within)
}

func (c *crashing) Create(ctx context.Context, key string, content []byte, within time.Duration) (bool, error) {
	if err := c.step(); err != nil {
		return false, err
	}
	return c.Store.Create(ctx, key, content, within)
}

func (c *crashing) NewWriter(ctx context.Context, key string) (*blob.Writer, error) {
	if err := c.step(); err != nil {
		return nil, err
	}
	return c.Store.NewWriter(ctx, key)
}

func (c *crashing) Delete(ctx context.Context, keys ...string) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.Store.Delete(ctx, keys...)
}

func (c *crashing) List(ctx context.Context, prefix string) ([]*gocloud.ListObject, error) {
	if err := c.step(); err != nil {
		return nil, err
	}
	return c.Store.List(ctx, prefix)
}

// TestCrashes ends runs at each operation of the bucket. What is published is whole at any time, and the last run completes the days.
func TestCrashes(t *testing.T) {
	v := newVenue(t, 2)
	v.run(t, len(v.entries), v.bucket, nil)
	want := v.contents(t)
	for first := range 7 { // all operations, since each further run ends seven operations later
		must(t, os.RemoveAll(filepath.Join(v.dir, "data")))
		for step := first; ; step += 7 {
			ctx, stop := context.WithCancel(t.Context())
			b := &crashing{v.bucket, step, stop}
			m := NewMaker(MakerConfig{Store: func(context.Context) (*Store, error) { return v.store(b), nil },
				From: func(at record.Position) Source { return &source{v.entries[at.Sequence+1:], stop} }})
			if err := m.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			stop()
			days, err := v.store(v.bucket).Days(t.Context())
			must(t, err)
			sizes, err := v.store(v.bucket).sizes(t.Context(), "")
			must(t, err)
			for i := range days {
				if !v.store(v.bucket).whole(&days[i], sizes) {
					t.Fatalf("after a crash, %s is published without its files", days[i].Date)
				}
			}
			if b.left >= 0 {
				break
			}
		}
		v.same(t, fmt.Sprintf("after crashes from operation %d on", first), want)
	}
}

// TestABucketFails has operations of the bucket fail for a while, at the end of a day and at a check. No record is read again for that.
func TestABucketFails(t *testing.T) {
	v := newVenue(t, 2)
	v.run(t, len(v.entries), v.bucket, nil)
	want := v.contents(t)
	for _, every := range []time.Duration{0, time.Nanosecond} {
		must(t, os.RemoveAll(filepath.Join(v.dir, "data")))
		v.reads = nil
		b := &failing{Store: v.bucket}
		m := v.run(t, len(v.entries), b, func(cfg *MakerConfig) {
			from := cfg.From
			cfg.CheckEvery = every
			cfg.From = func(at record.Position) Source { // the plan is made
				b.armed = true
				return from(at)
			}
		})
		if s := m.Status(); s.Failures != failures || len(v.reads) != 1 || s.Day != v.dates[3] {
			t.Errorf("%+v after reading from %v", s, v.reads)
		}
		v.same(t, "after errors", want)
	}
}

const failures = 20

// failing is a bucket whose operations fail for a while once it is armed.
type failing struct {
	*blob.Store
	armed bool
	asked int
}

func (f *failing) fails() bool {
	if f.armed {
		f.asked++
	}
	return f.armed && f.asked <= failures
}

func (f *failing) NewWriter(ctx context.Context, key string) (*blob.Writer, error) {
	if f.fails() {
		return nil, errCrash
	}
	return f.Store.NewWriter(ctx, key)
}

func (f *failing) List(ctx context.Context, prefix string) ([]*gocloud.ListObject, error) {
	if f.fails() {
		return nil, errCrash
	}
	return f.Store.List(ctx, prefix)
}

// TestLostFilesAreMadeAgain deletes files, manifests, and saved books. They come back with the same bytes.
func TestLostFilesAreMadeAgain(t *testing.T) {
	v := newVenue(t, 3)
	v.run(t, len(v.entries), v.bucket, nil)
	want := v.contents(t)
	lose := func(pattern string) {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(v.dir, "data", "*", pattern))
		must(t, err)
		if len(found) == 0 {
			t.Fatalf("nothing is named %s", pattern)
		}
		for _, path := range found {
			must(t, os.Remove(path))
		}
	}
	for _, c := range []struct {
		name string
		lost []string
	}{
		{"a file", []string{"trades/" + v.dates[1] + "*"}},
		{"two days", []string{"trades/" + v.dates[0] + "*", "books/" + v.dates[2] + "-*"}},
		{"a day and its manifest", []string{"*/" + v.dates[2] + "*"}},
		{"the first manifest", []string{"days/" + v.dates[0] + "*"}},
		{"the last manifest", []string{"days/" + v.dates[3] + "*"}},
		{"a file and all saved books", []string{"prices/" + v.dates[3] + "*", "state/*"}},
		{"everything", []string{"*/*"}},
	} {
		for _, pattern := range c.lost {
			lose(pattern)
		}
		if m := v.run(t, len(v.entries), v.bucket, nil); m.Status().Failures > 0 {
			t.Errorf("%s: %+v", c.name, m.Status())
		}
		v.same(t, "without "+c.name, want)
	}
	// A running maker looks for lost files too.
	gone := false
	v.run(t, len(v.entries), v.bucket, func(cfg *MakerConfig) {
		from := cfg.From
		cfg.CheckEvery = time.Nanosecond
		cfg.From = func(at record.Position) Source {
			if !gone {
				gone = true
				lose("trades/" + v.dates[1] + "*")
			}
			return from(at)
		}
	})
	v.same(t, "after a loss during the run", want)
}

// TestDamagedManifests damages manifests. The other days stay published, and the damaged ones are made again.
func TestDamagedManifests(t *testing.T) {
	v := newVenue(t, 7)
	v.run(t, len(v.entries), v.bucket, nil)
	want := v.contents(t)
	s := v.store(v.bucket)
	for i, content := range []string{"", `{"version":1}`, want[s.dayKey(v.dates[0])], "{"} { // the third one is that of another day
		date := v.dates[i]
		must(t, v.bucket.Write(t.Context(), s.dayKey(date), []byte(content), time.Minute))
		days, err := v.store(v.bucket).Days(t.Context())
		if err != nil || len(days) != len(v.dates)-1 || slices.ContainsFunc(days, func(m Manifest) bool { return m.Date == date }) {
			t.Errorf("with %q for %s, %d days are there: %v", content, date, len(days), err)
		}
		if m := v.run(t, len(v.entries), v.bucket, nil); m.Status().Failures > 0 {
			t.Errorf("%+v", m.Status())
		}
		v.same(t, fmt.Sprintf("after %q in the manifest of %s", content, date), want)
	}
}

// TestFiles compares the files with the bucket, and again after one of them was changed.
func TestFiles(t *testing.T) {
	v := newVenue(t, 9)
	v.run(t, len(v.entries), v.bucket, nil)
	check := func() blob.Checked {
		t.Helper()
		all, err := v.store(v.bucket).Files(t.Context())
		must(t, err)
		is, err := v.bucket.Check(t.Context(), "data/", all)
		must(t, err)
		return is
	}
	files := len(v.dates) * len(dataset.PublicTables())
	if is := check(); is.Blobs != files || is.Read != files || len(is.Wrong) != 0 {
		t.Errorf("%d whole files: %+v", files, is)
	}
	days, err := v.store(v.bucket).Days(t.Context())
	must(t, err)
	path := filepath.Join(v.dir, v.store(v.bucket).fileKey(days[1].Date, &days[1].Files[0]))
	content, err := os.ReadFile(path)
	must(t, err)
	content[len(content)/2] ^= 1
	must(t, os.WriteFile(path, content, 0o600))
	if is := check(); is.Read != files || len(is.Wrong) != 1 || !strings.HasSuffix(path, strings.TrimSuffix(is.Wrong[0], " has other bytes than those of its hash")) {
		t.Errorf("after a change of %s: %+v", path, is)
	}
}

// listing counts lists.
type listing struct {
	*blob.Store
	lists atomic.Int64
}

func (l *listing) List(ctx context.Context, prefix string) ([]*gocloud.ListObject, error) {
	l.lists.Add(1)
	return l.Store.List(ctx, prefix)
}

// TestRecent has clients ask at the same time, and later.
func TestRecent(t *testing.T) {
	v := newVenue(t, 8)
	v.run(t, len(v.entries), v.bucket, nil)
	b := &listing{Store: v.bucket}
	s, now := v.store(b), time.Unix(0, 0)
	s.now = func() time.Time { return now }
	ask := func(days int, lists int64) {
		t.Helper()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if got, err := s.Recent(t.Context()); err != nil || len(got) != days {
					t.Errorf("%d days: %v", len(got), err)
				}
			})
		}
		all.Wait()
		if n := b.lists.Swap(0); n != lists {
			t.Errorf("%d lists", n)
		}
	}
	ask(4, 1)
	must(t, v.bucket.Delete(t.Context(), s.dayKey(v.dates[0])))
	now = now.Add(recentFor - 1)
	ask(4, 0)
	now = now.Add(1)
	ask(3, 1)
	gone, stop := context.WithCancel(t.Context())
	stop()
	now = now.Add(recentFor)
	if _, err := s.Recent(gone); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.Recent(t.Context()); err != nil {
		t.Errorf("after a client that went away: %v", err)
	}
}

// TestOtherBytes has a manifest of another build, whose files have other bytes. It stays while its files are there.
func TestOtherBytes(t *testing.T) {
	v := newVenue(t, 4)
	s := v.store(v.bucket)
	v.run(t, len(v.entries), v.bucket, nil)
	want := v.contents(t)
	days, err := s.Days(t.Context())
	must(t, err)
	other := days[0]
	other.Files = slices.Clone(other.Files)
	for i := range other.Files {
		content := "other bytes of " + other.Files[i].Table
		other.Files[i].Bytes, other.Files[i].SHA256 = int64(len(content)), sha256.Sum256([]byte(content))
		must(t, s.putFile(t.Context(), other.Date, &other.Files[i], strings.NewReader(content)))
	}
	must(t, v.bucket.Delete(t.Context(), s.dayKey(other.Date)))
	_, err = s.putDay(t.Context(), &other)
	must(t, err)
	if published, err := s.putDay(t.Context(), &days[0]); err != nil || !slices.Equal(published.Files, other.Files) {
		t.Errorf("the second manifest replaced the first: %+v, %v", published, err)
	}
	must(t, s.sweep(t.Context(), &other))
	if n := len(v.contents(t)); n != len(want) {
		t.Errorf("after the sweep, %d files are there, and not %d", n, len(want))
	}
	must(t, v.bucket.Delete(t.Context(), s.fileKey(other.Date, &other.Files[0])))
	v.run(t, len(v.entries), v.bucket, nil)
	v.same(t, "after the other build's file was lost", want)
}

// TestOldDaysAreDropped keeps two days. A maker that begins later does not make the others.
func TestOldDaysAreDropped(t *testing.T) {
	for _, before := range []bool{true, false} {
		v := newVenue(t, 5)
		if before {
			v.run(t, len(v.entries), v.bucket, nil)
		}
		now, err := ParseDate(v.dates[3])
		must(t, err)
		for range 2 {
			v.run(t, len(v.entries), v.bucket, func(cfg *MakerConfig) {
				cfg.Keep, cfg.Now = 2*24*time.Hour, func() time.Time { return (now + scalar.Day).Std() }
			})
			days, err := v.store(v.bucket).Days(t.Context())
			must(t, err)
			var dates []string
			for _, d := range days {
				dates = append(dates, d.Date)
			}
			if !slices.Equal(dates, v.dates[2:]) || len(v.contents(t)) != 2*(1+len(dataset.PublicTables())) {
				t.Errorf("the days %v are kept of %v", dates, v.dates)
			}
		}
	}
}

// TestTheLastDayStays begins with a log whose days are all too old. The last published day is kept with its books, and a maker continues
// after it. A lost file of it is made again.
func TestTheLastDayStays(t *testing.T) {
	v := newVenue(t, 9)
	v.run(t, len(v.entries), v.bucket, nil)
	old := func(cfg *MakerConfig) {
		cfg.Keep, cfg.Now = 24*time.Hour, func() time.Time { return v.entries[len(v.entries)-1].Record.Time.Std().AddDate(1, 0, 0) }
	}
	v.run(t, len(v.entries), v.bucket, old)
	days, err := v.store(v.bucket).Days(t.Context())
	must(t, err)
	if len(days) != 1 || days[0].Date != v.dates[3] || len(v.contents(t)) != 1+len(dataset.PublicTables()) {
		t.Fatalf("the bucket has %v", names(v.contents(t)))
	}
	books, err := filepath.Glob(filepath.Join(v.dir, "data", "*", booksFolder, "*"))
	if err != nil || len(books) != 1 {
		t.Errorf("saved books: %v, %v", books, err)
	}
	v.run(t, len(v.entries), v.bucket, old)
	if first := v.reads[len(v.reads)-1]; first != days[0].Next-1 {
		t.Errorf("the last run read the log after record %d", first)
	}
	want := v.contents(t)
	must(t, os.Remove(filepath.Join(v.dir, v.store(v.bucket).fileKey(days[0].Date, &days[0].Files[0]))))
	v.run(t, len(v.entries), v.bucket, old)
	v.same(t, "after a loss of a file of the last day", want)
}

// TestAnotherLog halts a maker whose records are not those of the published days.
func TestAnotherLog(t *testing.T) {
	v := newVenue(t, 6)
	v.run(t, len(v.entries), v.bucket, nil)
	days, err := v.store(v.bucket).Days(t.Context())
	must(t, err)
	want := v.contents(t)
	other := days[0]
	other.Hash[0]++
	var diverged *record.DivergedError
	if _, err := v.store(v.bucket).putDay(t.Context(), &other); !errors.As(err, &diverged) {
		t.Errorf("a day of another log: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	m := NewMaker(MakerConfig{Store: func(context.Context) (*Store, error) { return v.store(v.bucket), nil },
		From: func(record.Position) Source { return diverging{} }})
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	for !m.Status().Halted {
		select {
		case err := <-done:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	stop()
	<-done
	v.same(t, "with another log", want)
}

// diverging is a log that lacks the position that it is to continue from.
type diverging struct{}

func (diverging) Poll(context.Context) ([]record.Entry, error) { return nil, &record.DivergedError{} }
func (diverging) Close()                                       {}

func TestParseDate(t *testing.T) {
	for text, valid := range map[string]bool{"2026-11-26": true, "2028-02-29": true, "2026-02-29": false, "2026-2-9": false, "20261126": false, "": false,
		"2026-11-26 ": false, "2026-13-01": false, "1970-01-01": true} {
		at, err := ParseDate(text)
		if (err == nil) != valid || valid && (at%scalar.Day != 0 || dataset.DateOf(at) != text || dataset.DateOf(at+scalar.Day-1) != text || dataset.DateOf(at+scalar.Day) == text) {
			t.Errorf("%q: %v, %v", text, at, err)
		}
	}
}
