package dataset

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/parquet-go/parquet-go"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// short is the number of records of a file in most tests.
const short = 64

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write adds a log to a dataset, as far as the dataset lacks it.
func write(cfg Config, entries []record.Entry) (Summary, error) {
	w, err := NewWriter(cfg)
	if err != nil {
		return Summary{}, err
	}
	defer w.Abandon()
	after, _ := w.After()
	for i := after.Sequence + 1; i < int64(len(entries)); i++ {
		if err := w.Add(&entries[i]); err != nil {
			return Summary{}, err
		}
	}
	return w.Finish()
}

func mustWrite(t testing.TB, cfg Config, entries []record.Entry) Summary {
	t.Helper()
	s, err := write(cfg, entries)
	must(t, err)
	return s
}

// contents returns the bytes of all files below a folder, without saved books.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".books.zst") {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(b)
		return err
	}))
	return all
}

// rowsOf reads all rows of a table in the order of the files.
func rowsOf[T any](t testing.TB, dir, table string) (all []T) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, table, "*"+suffix))
	must(t, err)
	for _, path := range paths {
		some, err := parquet.ReadFile[T](path)
		must(t, err)
		all = append(all, some...)
	}
	return all
}

// played returns the log of a random market.
func played(t testing.TB, seed uint64) []record.Entry {
	t.Helper()
	o := projectiontest.NewOwner(t, seed)
	o.Play(500)
	o.PassHour()
	return o.Entries
}

// TestFilesGrow writes a log in several runs and in one. The files are the same, and a run leaves full files alone.
func TestFilesGrow(t *testing.T) {
	entries := played(t, 1)
	once := Config{Dir: t.TempDir(), Journal: "trading", Range: short}
	all := mustWrite(t, once, entries)
	if want := int64(len(entries)); all.Records != want || all.Next != want || all.Files != int64(len(tablesOf("trading")))*((want+short-1)/short) {
		t.Errorf("%+v of %d records", all, want)
	}
	often := once
	often.Dir = t.TempDir()
	for _, n := range []int{1, short - 1, short, short + 1, 3 * short, 3*short + 7, len(entries)} {
		before := contents(t, often.Dir)
		s := mustWrite(t, often, entries[:n])
		written := int64(0)
		for name, now := range contents(t, often.Dir) {
			if was, ok := before[name]; !ok || was != now {
				written++
			}
			if was, ok := before[name]; ok && was != now && !strings.Contains(name, firstOfLast(before)) {
				t.Errorf("after %d records, the full file %s has changed", n, name)
			}
		}
		if s.Files != written || s.Next != int64(n) {
			t.Errorf("%+v after %d records, and %d files have changed", s, n, written)
		}
	}
	mustWrite(t, often, entries)
	if got, want := contents(t, often.Dir), contents(t, once.Dir); !maps.Equal(got, want) {
		t.Errorf("several runs have written other files: %v, not %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// firstOfLast returns the number in the names of the last files.
func firstOfLast(all map[string]string) string {
	last := ""
	for name := range all {
		last = max(last, filepath.Base(name))
	}
	return last
}

// TestInterruptedRun abandons a run, and leaves what a killed one leaves. There is no half file, and the next run completes the files.
func TestInterruptedRun(t *testing.T) {
	entries := played(t, 2)
	whole := Config{Dir: t.TempDir(), Journal: "trading", Range: short}
	mustWrite(t, whole, entries)
	want := contents(t, whole.Dir)

	cfg := whole
	cfg.Dir = t.TempDir()
	w, err := NewWriter(cfg)
	must(t, err)
	for i := range 2*short + 5 {
		must(t, w.Add(&entries[i]))
	}
	for name, content := range contents(t, cfg.Dir) { // as if the process were killed here
		if strings.HasSuffix(name, suffix) && content != want[name] {
			t.Errorf("%s is not whole", name)
		}
	}
	again, err := NewWriter(cfg)
	must(t, err)
	if after, known := again.After(); !known || !after.Equal(entries[2*short-1].Position) {
		t.Errorf("the next run goes on after %v", after)
	}
	must(t, os.Remove(cfg.path("trades", short))) // as if it were killed between the names of two files
	mustWrite(t, cfg, entries)
	if got := contents(t, cfg.Dir); !maps.Equal(got, want) {
		t.Errorf("the next run has left %v", slices.Sorted(maps.Keys(got)))
	}
}

// TestFrom leaves out the ranges before a record. Later runs continue from there, unless they ask for earlier records.
func TestFrom(t *testing.T) {
	entries := played(t, 3)
	whole := Config{Dir: t.TempDir(), Journal: "trading", Range: short}
	mustWrite(t, whole, entries)
	late := Config{Dir: t.TempDir(), Journal: "trading", Range: short, From: 2*short + 9}
	w, err := NewWriter(late)
	must(t, err)
	if after, known := w.After(); known || after.Sequence != 2*short-1 {
		t.Errorf("after %v, %v", after, known)
	}
	mustWrite(t, late, entries[:4*short])
	want := contents(t, whole.Dir)
	for name, content := range contents(t, late.Dir) {
		if content != want[name] {
			t.Errorf("%s differs", name)
		}
	}
	for _, run := range []struct{ from, first int64 }{{-1, 2 * short}, {6 * short, 2 * short}, {short + 1, short}, {0, 0}} {
		late.From = run.from
		mustWrite(t, late, entries)
		want := maps.Clone(want)
		maps.DeleteFunc(want, func(name, _ string) bool {
			return filepath.Base(name) < filepath.Base(late.path("", run.first)) || run.first > 0 && strings.HasPrefix(name, booksTable)
		})
		if got := contents(t, late.Dir); !maps.Equal(got, want) {
			t.Errorf("from %d on, a later run leaves the files %v", run.from, slices.Sorted(maps.Keys(got)))
		}
	}
	late.Dir, late.From = t.TempDir(), int64(len(entries))+short
	var empty *EmptyError
	if s, err := write(late, entries); !errors.As(err, &empty) || len(contents(t, late.Dir)) > 0 {
		t.Errorf("from a record after the end: %+v, %v", s, err)
	}
}

// TestDamageIsMended changes bytes in the last file, and deletes full files. The next run writes all of them.
func TestDamageIsMended(t *testing.T) {
	entries := played(t, 7)[:3*short+9]
	cfg := Config{Dir: filepath.Join(t.TempDir(), "a[b]*"), Journal: "trading", Range: short, From: -1}
	mustWrite(t, cfg, entries)
	want := contents(t, cfg.Dir)
	last := cfg.path("orders", 3*short)
	content, err := os.ReadFile(last)
	must(t, err)
	content[10] ^= 0xff
	for what, damage := range map[string]func() error{
		"a damaged last file": func() error { return os.WriteFile(last, content, 0o644) },
		"a lost file":         func() error { return os.Remove(cfg.path("trades", 0)) },
		"a lost range": func() (err error) {
			for _, of := range tablesOf("trading") {
				err = errors.Join(err, os.Remove(cfg.path(of.name, short)))
			}
			return err
		},
	} {
		must(t, damage())
		must(t, os.WriteFile(filepath.Join(cfg.Dir, "trades", ".trading-5"+suffix+unfinished), nil, 0o644))
		mustWrite(t, cfg, entries)
		if got := contents(t, cfg.Dir); !maps.Equal(got, want) {
			t.Errorf("after %s, the next run leaves other files", what)
		}
	}
}

// rewriteHeader replaces a file of orders by one without rows and with a changed header.
func rewriteHeader(t *testing.T, path string, change func(h *header)) {
	t.Helper()
	h, err := readHeader(path)
	must(t, err)
	change(&h)
	text, err := json.Marshal(&h)
	must(t, err)
	f, err := os.Create(path)
	must(t, err)
	_, err = tablesOf("trading")[0].create(f, nil).close(headerKey, string(text))
	must(t, err)
	must(t, f.Close())
}

// TestOtherFilesAreRefused changes what the folder or the log has. The run fails and changes nothing.
func TestOtherFilesAreRefused(t *testing.T) {
	entries, other := played(t, 4), played(t, 5)
	for what, c := range map[string]struct {
		change  func(cfg *Config)
		entries []record.Entry
		want    any
	}{
		"another log":             {func(*Config) {}, other, new(*DivergedError)},
		"a log without its end":   {func(*Config) {}, entries[:3*short+2], new(*DivergedError)},
		"another size of ranges":  {func(cfg *Config) { cfg.Range = 2 * short }, entries, new(*FileError)},
		"another version":         {func(cfg *Config) { rewriteHeader(t, cfg.path("orders", short), func(h *header) { h.Version-- }) }, entries, new(*FileError)},
		"other columns":           {func(cfg *Config) { rewriteHeader(t, cfg.path("orders", short), func(h *header) { h.Schema[0]++ }) }, entries, new(*FileError)},
		"a file that is cut off":  {func(cfg *Config) { must(t, os.Truncate(cfg.path("orders", short), 100)) }, entries, new(*FileError)},
		"a file of another table": {func(cfg *Config) { must(t, os.Rename(cfg.path("orders", short), cfg.path("trades", short))) }, entries, new(*FileError)},
		"a file of another log": {func(cfg *Config) {
			elsewhere := *cfg
			elsewhere.Dir = t.TempDir()
			mustWrite(t, elsewhere, other)
			must(t, os.Rename(elsewhere.path("orders", short), cfg.path("orders", short)))
		}, entries, new(*FileError)},
	} {
		cfg := Config{Dir: t.TempDir(), Journal: "trading", Range: short}
		mustWrite(t, cfg, entries[:3*short+5])
		c.change(&cfg)
		before := contents(t, cfg.Dir)
		if _, err := write(cfg, c.entries); !errors.As(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
		if !maps.Equal(contents(t, cfg.Dir), before) {
			t.Errorf("%s: the folder was changed", what)
		}
	}
}

// TestNumbersThatDoNotFit names the record, and leaves no file.
func TestNumbersThatDoNotFit(t *testing.T) {
	entries := slices.Clone(played(t, 6)[:short/2])
	last := *entries[short/2-1].Record
	last.Events = []decide.Event{&trading.IndexUpdated{Symbol: "X", IndexPrice: fixed.Decimal{Coef: 1, Scale: 19}}}
	entries[short/2-1].Record = &last
	cfg := Config{Dir: t.TempDir(), Journal: "trading", Range: short}
	_, err := write(cfg, entries)
	var precision *PrecisionError
	if !errors.As(err, &precision) || precision.Sequence != last.Sequence || len(contents(t, cfg.Dir)) > 0 {
		t.Errorf("%v, and %d files", err, len(contents(t, cfg.Dir)))
	}
}

// TestNumbers compares the bytes of numbers with their text.
func TestNumbers(t *testing.T) {
	for _, d := range []fixed.Decimal{{}, {Coef: 1, Scale: 18}, {Coef: -1, Scale: 18}, {Coef: 6500010, Scale: 2}, {Coef: 1<<63 - 1}, {Coef: -1 << 63},
		{Coef: -1 << 63, Scale: 18}} {
		if got, want := rational(new(maker).decimal(d)), text(t, d.String()); got.Cmp(want) != 0 {
			t.Errorf("%v is %v", d, got)
		}
	}
}
