package lake

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ranged is the number of records of a range in the tests.
const ranged = 64

// venue is a random venue with an archive in a folder and rows in Postgres.
type venue struct {
	*projectiontest.Owner
	onboarding []record.Entry
	url, dir   string
	pool       *pgxpool.Pool
	store      archive.Store
	box        *seal.Box
}

// newVenue plays a market with funding, settlement, and liquidations, and an onboarding. Postgres has no rows of them.
func newVenue(t testing.TB) *venue {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	v := &venue{Owner: projectiontest.NewOwner(t, seed), url: projectiontest.MigratedURL(t), dir: t.TempDir()}
	playMarket(t, v.Owner)
	r := projectiontest.NewRegistrar(t, seed)
	r.Play(400)
	rechain(t, v.Entries)
	rechain(t, r.Entries)
	v.onboarding = r.Entries
	v.pool = projectiontest.Open(t, v.url)
	bucket, err := blob.Open(t.Context(), blob.URLOf(v.dir))
	must(t, err)
	t.Cleanup(func() { bucket.Close() })
	v.store = blob.NewStore(bucket)
	v.box, err = seal.New(make([]byte, seal.KeySize))
	must(t, err)
	return v
}

// playMarket plays until a position was liquidated or deleveraged. Most random markets have one within the ten hours.
func playMarket(t testing.TB, o *projectiontest.Owner) {
	t.Helper()
	o.Play(200)
	for hour := range 10 {
		o.PassHour()
		o.Jolt(int64(hour%5-2) * 200)
		o.Play(10)
		o.PlaceStops(1)
	}
	for n := int64(1); !slices.ContainsFunc(o.Entries, liquidates); n++ {
		if n > 20 {
			t.Fatal("no position is liquidated")
		}
		o.Play(20)
		o.Jolt((n%2*2 - 1) * min(100*n, 900))
	}
}

// liquidates reports whether a record has a trade that liquidates or deleverages a position.
func liquidates(e record.Entry) bool {
	return slices.ContainsFunc(e.Record.Events, func(of decide.Event) bool {
		executed, ok := of.(*trading.TradeExecuted)
		return ok && executed.Type != trading.Trade
	})
}

// rechain gives entries the values of records, which an archive holds. Those of projectiontest are placeholders.
func rechain(t testing.TB, entries []record.Entry) {
	t.Helper()
	at := record.Before
	for i := range entries {
		e := &entries[i]
		e.Record.Prev = at.Hash
		var err error
		e.Value, err = record.Encode(nil, e.Record)
		must(t, err)
		at = record.Position{Sequence: e.Record.Sequence, Offset: e.Record.Sequence, Hash: sha256.Sum256(e.Value)}
		e.Position = at
	}
}

func (v *venue) project(t testing.TB, name string, entries []record.Entry, list []projections.Projection) {
	t.Helper()
	last := entries[len(entries)-1].Position.Sequence
	must(t, projections.Config{Pool: v.pool, Log: projectiontest.NewLog(entries...), Journal: name}.Runner(list...).Replay(t.Context(), last))
}

func (v *venue) archiveConfig(name string) archive.Config {
	return archive.Config{Store: v.store, Box: v.box, Journal: name}.WithRangeRecords(ranged)
}

// seal archives the records of a journal before a sequence.
func (v *venue) seal(t testing.TB, name string, before int64) {
	t.Helper()
	entries := v.Entries
	if name == "onboarding" {
		entries = v.onboarding
	}
	w, err := archive.NewWriter(t.Context(), v.archiveConfig(name))
	must(t, err)
	add(t, w, name, entries, before)
}

// sealWith is seal for the trading journal with another configuration.
func (v *venue) sealWith(t testing.TB, cfg archive.Config, before int64) {
	t.Helper()
	w, err := archive.NewWriter(t.Context(), cfg)
	must(t, err)
	add(t, w, "trading", v.Entries, before)
}

// add archives the records that a writer lacks.
func add(t testing.TB, w *archive.Writer, name string, entries []record.Entry, before int64) {
	t.Helper()
	id := entries[0].Record.Events[0].(*record.Genesis).JournalID
	for _, e := range entries[w.Position().Sequence+1 : before] {
		k := journal.KafkaRecord(name, name, 0, id, e.Record, e.Value)
		k.Offset = e.Record.Sequence
		must(t, w.Add(t.Context(), k))
	}
}

func rulesOf(name string) decide.Rules {
	if name == "onboarding" {
		return onboarding.Rules()
	}
	return trading.Rules()
}

func (v *venue) filler(name string, change func(*FillerConfig)) *Filler {
	cfg := FillerConfig{Archive: v.archiveConfig(name), Rules: rulesOf(name), Catalog: Catalog{v.pool, v.dir + "/lake/"}, Prefix: "lake/",
		Sealed: func() int64 { return 1 << 40 }, Every: time.Millisecond, Retry: time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	return NewFiller(cfg)
}

// half returns the number of records in the first half of a journal's full ranges.
func half(entries []record.Entry) int64 { return max(int64(len(entries))/ranged/2, 1) * ranged }

// content returns the catalog in text, without random ids and times, and the bytes of the files.
func (v *venue) content(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, sql := range []string{
		`SELECT r::text FROM (SELECT journal, range, sequence, hash, manifest FROM lake.ranges ORDER BY journal, range) r`,
		`SELECT r::text FROM (SELECT table_name, f.path, record_count, file_size_bytes, footer_size FROM lake.ducklake_data_file f JOIN lake.ducklake_table USING (table_id) ORDER BY 1, 2) r`,
		`SELECT r::text FROM (SELECT t.table_name, s.column_id, s.contains_null, s.min_value, s.max_value FROM lake.ducklake_table_column_stats s JOIN lake.ducklake_table t USING (table_id) ORDER BY 1, 2) r`,
		`SELECT r::text FROM (SELECT t.table_name, s.record_count, s.next_row_id, s.file_size_bytes FROM lake.ducklake_table_stats s JOIN lake.ducklake_table t USING (table_id) ORDER BY 1) r`,
	} {
		for _, line := range v.texts(t, sql) {
			fmt.Fprintln(&all, line)
		}
	}
	for _, path := range v.paths(t) {
		b, err := os.ReadFile(filepath.Join(v.dir, path))
		must(t, err)
		fmt.Fprintf(&all, "%s %x\n", path, b)
	}
	return all.String()
}

func (v *venue) paths(t testing.TB) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(v.dir, "lake", "main", "*", "*"))
	must(t, err)
	for i := range all {
		all[i], err = filepath.Rel(v.dir, all[i])
		must(t, err)
	}
	return all
}

func (v *venue) texts(t testing.TB, sql string) (all []string) {
	t.Helper()
	rows, err := v.pool.Query(t.Context(), sql)
	must(t, err)
	for rows.Next() {
		var s string
		must(t, rows.Scan(&s))
		all = append(all, s)
	}
	must(t, rows.Err())
	return all
}

// fillAll archives both journals whole and fills the catalog.
func (v *venue) fillAll(t testing.TB) {
	t.Helper()
	for name, entries := range map[string][]record.Entry{"trading": v.Entries, "onboarding": v.onboarding} {
		v.seal(t, name, int64(len(entries))/ranged*ranged)
		must(t, v.filler(name, nil).Fill(t.Context()))
	}
}

// TestFilesAreThoseOfTheCommand compares the files in the bucket with those that a Writer writes from the log.
func TestFilesAreThoseOfTheCommand(t *testing.T) {
	v := newVenue(t)
	v.fillAll(t)
	to := t.TempDir()
	w, err := dataset.NewWriter(dataset.Config{Dir: to, Journal: "trading", Range: ranged})
	must(t, err)
	for i := range v.Entries[:len(v.Entries)/ranged*ranged] {
		must(t, w.Add(&v.Entries[i]))
	}
	named := v.texts(t, `SELECT t.table_name || '/' || f.path FROM lake.ducklake_data_file f JOIN lake.ducklake_table t USING (table_id)`)
	if len(named) < 12 || len(named) != len(v.paths(t)) {
		t.Errorf("the catalog names %d files, and there are %d", len(named), len(v.paths(t)))
	}
	for _, path := range named {
		got, err := os.ReadFile(filepath.Join(v.dir, "lake", "main", path))
		must(t, err)
		if strings.Contains(path, "onboarding") {
			continue
		}
		want, err := os.ReadFile(filepath.Join(to, path[:strings.LastIndexByte(path, '-')]+suffix))
		must(t, err)
		if string(got) != string(want) {
			t.Errorf("%s differs from the file of the command", path)
		}
	}
}

// crashing is a bucket that fails at the nth write of a file, or from the first listing of files on. A Filler lists them when it has
// added a range.
type crashing struct {
	archive.Store
	crash
	writes int
	ended  bool
}

// crash is a moment at which a filler ends.
type crash struct {
	write int  // number of the write, from 1; 0 for the listing
	after bool // whether the write takes place
	torn  bool // whether the last file that the filler has left is damaged
}

var errCrash = errors.New("the process ends")

func (c *crashing) Create(ctx context.Context, key string, content []byte, within time.Duration) (bool, error) {
	c.writes++
	if c.writes == c.write {
		c.ended = true
		if c.after {
			if _, err := c.Store.Create(ctx, key, content, within); err != nil {
				return false, err
			}
		}
	}
	if c.ended {
		return false, errCrash
	}
	return c.Store.Create(ctx, key, content, within)
}

func (c *crashing) List(ctx context.Context, prefix string) ([]*gocloud.ListObject, error) {
	if strings.HasPrefix(prefix, "lake/") && c.write == 0 {
		c.ended = true
	}
	if c.ended {
		return nil, errCrash
	}
	return c.Store.List(ctx, prefix)
}

// TestCrashes ends a filler at writes of the first and the last range and between them, and when it has added a range. It damages a
// file that the catalog does not name, and leaves one of another build. The next filler makes an undisturbed catalog, with the same files.
func TestCrashes(t *testing.T) {
	v := newVenue(t)
	v.seal(t, "trading", 2*ranged)
	must(t, v.filler("trading", nil).Fill(t.Context()))
	want := v.content(t)
	first := len(v.texts(t, "SELECT path FROM lake.ducklake_data_file WHERE path LIKE 'trading-000000000000-%'"))
	all := len(v.paths(t))
	if first < 3 || all < first+3 {
		t.Fatalf("there are %d files, and %d of them in the first range", all, first)
	}
	for _, c := range []crash{{1, false, false}, {2, true, true}, {first, false, true}, {first, true, false}, {first + 1, true, true}, {all, true, false}, {0, false, false}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			v.empty(t)
			must(t, v.store.Write(t.Context(), "lake/main/trades/trading-000000000000-0123456789abcdef.parquet", []byte("PAR1 of another build"), time.Minute))
			store := &crashing{Store: v.store, crash: c}
			if err := v.filler("trading", func(cfg *FillerConfig) { cfg.Archive.Store = store }).Fill(t.Context()); !errors.Is(err, errCrash) {
				t.Fatalf("the filler ended with %v", err)
			}
			if c.torn {
				v.tear(t)
			}
			must(t, v.filler("trading", nil).Fill(t.Context()))
			if got := v.content(t); got != want {
				t.Error("the catalog or a file differs")
			}
		})
	}
}

// empty removes the catalog and the files.
func (v *venue) empty(t testing.TB) {
	t.Helper()
	_, err := v.pool.Exec(t.Context(), strings.Join(v.texts(t, `SELECT 'DELETE FROM lake.' || relname FROM pg_class WHERE relnamespace = 'lake'::regnamespace AND relkind = 'r'`), ";"))
	must(t, err)
	must(t, os.RemoveAll(filepath.Join(v.dir, "lake")))
}

// tear damages a file of a range that the catalog does not have.
func (v *venue) tear(t testing.TB) {
	t.Helper()
	named := v.texts(t, "SELECT path FROM lake.ducklake_data_file")
	for _, path := range v.paths(t) {
		if name := filepath.Base(path); !slices.Contains(named, name) && !strings.Contains(name, "0123456789abcdef") {
			must(t, os.WriteFile(filepath.Join(v.dir, path), []byte("PAR1 torn"), 0o600))
			return
		}
	}
	t.Fatal("every file is in the catalog")
}

// TestTwoFillers runs fillers of two nodes at the same time. Each range is added once.
func TestTwoFillers(t *testing.T) {
	v := newVenue(t)
	v.fillAll(t)
	want := v.content(t)
	v.empty(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all []*Filler
	done := make(chan error, 4)
	for range 2 {
		for _, name := range []string{"trading", "onboarding"} {
			f := v.filler(name, nil)
			all = append(all, f)
			go func() { done <- f.Run(ctx) }()
		}
	}
	// The content is read only when no filler writes: a file that is being written has another name.
	last := map[string]int64{"trading": int64(len(v.Entries))/ranged*ranged - 1, "onboarding": int64(len(v.onboarding))/ranged*ranged - 1}
	until(t, func() bool {
		return !slices.ContainsFunc(all, func(f *Filler) bool { return f.Status().Sequence < last[f.cfg.Archive.Journal] })
	})
	until(t, func() bool { return v.content(t) == want })
	cancel()
	for range all {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func until(t testing.TB, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not happen in time")
		}
	}
}

// TestOrphans has another build write a file of a range and die. The next filler deletes it.
func TestOrphans(t *testing.T) {
	v := newVenue(t)
	orphan := "lake/main/trades/trading-000000000000-0123456789abcdef.parquet"
	must(t, v.store.Write(t.Context(), orphan, []byte("PAR1 of another build"), time.Minute))
	later := "lake/main/trades/trading-000000000640-0123456789abcdef.parquet"
	must(t, v.store.Write(t.Context(), later, []byte("PAR1 of a range that is not in the catalog"), time.Minute))
	v.seal(t, "trading", ranged)
	must(t, v.filler("trading", nil).Fill(t.Context()))
	if all := v.paths(t); slices.Contains(all, orphan) || !slices.Contains(all, later) {
		t.Errorf("the files are %v", all)
	}
}

// TestFiles compares the files of the catalog with the bucket, and again after files were lost, cut, and changed. A filler of an empty
// catalog makes all of them again.
func TestFiles(t *testing.T) {
	v := newVenue(t)
	catalog := Catalog{v.pool, v.dir + "/lake/"}
	check := func() blob.Checked {
		t.Helper()
		all, err := catalog.Files(t.Context(), "lake/")
		must(t, err)
		is, err := v.store.(*blob.Store).Check(t.Context(), "lake/", all)
		must(t, err)
		return is
	}
	if is := check(); is.Blobs != 0 || len(is.Wrong) != 0 {
		t.Errorf("before the first range: %+v", is)
	}
	v.fillAll(t)
	files := v.paths(t)
	whole := func() {
		t.Helper()
		if is := check(); is.Blobs != len(files) || is.Read != len(files) || len(is.Wrong) != 0 {
			t.Errorf("%d whole files: %+v", len(files), is)
		}
	}
	whole()
	must(t, v.store.Write(t.Context(), "lake/main/trades/foreign.parquet", []byte("PAR1"), time.Minute))
	whole()
	changed, err := os.ReadFile(filepath.Join(v.dir, files[2]))
	must(t, err)
	changed[len(changed)/2] ^= 1
	must(t, os.Remove(filepath.Join(v.dir, files[0])))
	must(t, os.WriteFile(filepath.Join(v.dir, files[1]), changed[:4], 0o600))
	must(t, os.WriteFile(filepath.Join(v.dir, files[2]), changed, 0o600))
	is := check()
	if len(is.Wrong) != 3 || is.Read != len(files)-2 {
		t.Errorf("%+v", is)
	}
	for i, says := range []string{" is missing", " has 4 bytes instead of ", " has other bytes than those of its hash"} {
		if !slices.ContainsFunc(is.Wrong, func(w string) bool { return strings.HasPrefix(w, files[i]+says) }) {
			t.Errorf("%s%s is not in %q", files[i], says, is.Wrong)
		}
	}
	_, err = v.pool.Exec(t.Context(), documentedSQL(t, "The next start fills it again from the archive:"))
	must(t, err)
	v.fillAll(t)
	whole()
}

// documentedSQL returns the SQL that follows a sentence in the documentation.
func documentedSQL(t testing.TB, sentence string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "schemas", "README.md"))
	must(t, err)
	_, after, found := strings.Cut(string(page), sentence)
	_, after, begins := strings.Cut(after, "```sql\n")
	sql, _, ends := strings.Cut(after, "```")
	if !found || !begins || !ends {
		t.Fatalf("schemas/README.md has no SQL after %q", sentence)
	}
	return sql
}

// TestNoRange has a running filler define the tables of an archive without a full range, once.
func TestNoRange(t *testing.T) {
	v := newVenue(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := v.filler("trading", func(c *FillerConfig) { c.Sealed = func() int64 { return -1 } })
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	until(t, func() bool {
		return len(v.texts(t, "SELECT table_name FROM lake.ducklake_table")) == len(dataset.Tables("trading"))
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must(t, f.Fill(t.Context()))
	if got := v.texts(t, "SELECT count(*)::text FROM lake.ducklake_snapshot"); got[0] != "2" {
		t.Errorf("there are %s snapshots", got[0])
	}
}

// TestAnotherArchive fills a catalog from an archive, and continues with another one, and with one that is shorter.
func TestAnotherArchive(t *testing.T) {
	v := newVenue(t)
	v.fillAll(t)
	for name, change := range map[string]string{
		"another manifest":   `UPDATE lake.ranges SET manifest = repeat('0', 64)`,
		"an earlier archive": `INSERT INTO lake.ranges SELECT journal, partition, 1000, 128128, hash, manifest, snapshot_id FROM lake.ranges WHERE range = 0`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := v.pool.Exec(t.Context(), change)
			must(t, err)
			var diverged *record.DivergedError
			if err := v.filler("trading", nil).Fill(t.Context()); !errors.As(err, &diverged) {
				t.Errorf("got %v", err)
			}
		})
	}
	var order *OrderError
	if _, err := (Catalog{v.pool, "/"}).Add(t.Context(), Range{Journal: "trading", Number: 2000, Next: 1}, nil); !errors.As(err, &order) {
		t.Errorf("a range that does not follow: %v", err)
	}
}

// TestColumnsChange gives the catalog the columns of another build. The next range ends the old ones and begins the new ones.
func TestColumnsChange(t *testing.T) {
	v := newVenue(t)
	v.seal(t, "trading", 2*ranged)
	first := v.filler("trading", nil)
	v.fillTo(t, first, ranged)
	_, err := v.pool.Exec(t.Context(), `UPDATE lake.ducklake_column SET column_id = 99, column_name = 'removed' WHERE column_name = 'fee'
		AND table_id = (SELECT table_id FROM lake.ducklake_table WHERE table_name = 'trades')`)
	must(t, err)
	must(t, v.filler("trading", nil).Fill(t.Context()))
	got := v.texts(t, `SELECT column_name || ' ' || column_id || ' ' || begin_snapshot || ' ' || COALESCE(end_snapshot, 0) FROM lake.ducklake_column
		WHERE column_name IN ('removed', 'fee') AND table_id = (SELECT table_id FROM lake.ducklake_table WHERE table_name = 'trades') ORDER BY 1`)
	if want := []string{"fee 13 2 0", "removed 99 1 2"}; !slices.Equal(got, want) {
		t.Errorf("the columns are %v, not %v", got, want)
	}
	if got := v.texts(t, `SELECT string_agg(schema_version::text, ' ' ORDER BY snapshot_id) FROM lake.ducklake_snapshot`); got[0] != "0 1 2" {
		t.Errorf("the schema versions are %v", got)
	}
}

// fillTo adds the ranges before a sequence.
func (v *venue) fillTo(t testing.TB, f *Filler, before int64) {
	t.Helper()
	a, err := archive.Open(t.Context(), f.cfg.Archive)
	must(t, err)
	for _, s := range a.Sealed() {
		if s.Base.Sequence <= before {
			must(t, f.add(t.Context(), a, &s))
		}
	}
}
