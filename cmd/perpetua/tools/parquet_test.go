package tools

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// parquetRange is the number of records of a file in these tests.
const parquetRange = 50

// marketLog returns the Kafka records of a random market.
func marketLog(t *testing.T, seed uint64) (all []*kgo.Record) {
	t.Helper()
	o := projectiontest.NewOwner(t, seed)
	o.Play(150)
	o.PassHour()
	var prev record.Hash
	id := scalar.ID{9}
	for _, e := range o.Entries {
		r := *e.Record
		r.Prev = prev
		if genesis, ok := r.Events[0].(*record.Genesis); ok {
			id = genesis.JournalID
		}
		value, err := record.Encode(nil, &r)
		if err != nil {
			t.Fatal(err)
		}
		prev = sha256.Sum256(value)
		all = append(all, journal.KafkaRecord("trading", "trading", 0, id, &r, value))
	}
	return all
}

// parquet runs the command and returns what it prints as JSON.
func parquet(t *testing.T, args ...string) (map[string]exported, error) {
	t.Helper()
	var out bytes.Buffer
	std := outputTo(&out)
	std.ArchiveRange = parquetRange
	err := Log(t.Context(), append([]string{"parquet", "--json"}, args...), std)
	var all []exported
	if err == nil {
		if err := json.Unmarshal(out.Bytes(), &all); err != nil {
			t.Fatalf("%v in %s", err, &out)
		}
	}
	found := make(map[string]exported)
	for _, e := range all {
		found[e.Journal] = e
	}
	return found, err
}

// parquetFiles returns the contents of the Parquet files below a folder.
func parquetFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Base(path) == "lock" || strings.HasSuffix(path, ".books.zst") {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(b)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}

// TestParquetOfEverySource writes the same files from a topic, from a file, and from an archive, in one run and in two.
func TestParquetOfEverySource(t *testing.T) {
	all := marketLog(t, 1)
	last := int64(len(all)) - 1
	bucket, err := blob.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	trading, err := journals.All().Of("trading")
	if err != nil {
		t.Fatal(err)
	}
	part := filledFolder(t, all[:2*parquetRange+7], 64<<10, func(*broker.Broker, *journal.Client, base.Folder) {})
	cfg := archive.Config{Store: blob.NewStore(bucket), Box: box, Journal: "trading"}.WithRangeRecords(parquetRange)
	whole := filledFolder(t, all, 64<<10, func(_ *broker.Broker, client *journal.Client, _ base.Folder) {
		if err := archiveJournal(t.Context(), client, trading.Rules, cfg, nil, nil); err != nil {
			t.Fatal(err)
		}
	})
	file := filepath.Join(t.TempDir(), "log.zst")
	if err := CopyLog(t.Context(), []string{"--from", whole, "--to", file}, outputTo(new(bytes.Buffer))); err != nil {
		t.Fatal(err)
	}

	to := t.TempDir()
	done, err := parquet(t, "--data", whole, "--to", to)
	if e := done["trading"]; err != nil || e.Sequence != last || e.Records != last+1 || e.Rows == 0 || done["onboarding"].Sequence != -1 || len(done) != 2 {
		t.Fatalf("%+v, %v; the log ends with record %d", done, err, last)
	}
	want := parquetFiles(t, to)
	again := func(what string, to string, records, files int64, args ...string) {
		t.Helper()
		done, err := parquet(t, append([]string{"--to", to}, args...)...)
		if e := done["trading"]; err != nil || e.Sequence != last || e.Records != records || e.Files != files {
			t.Errorf("%s: %+v, %v", what, done, err)
		}
		if got := parquetFiles(t, to); !maps.Equal(got, want) {
			t.Errorf("%s: other files are written: %v, not %v", what, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
	inTail := (last + 1) % parquetRange
	tailFiles := int64(len(want)) / (last/parquetRange + 1)
	again("once more", to, inTail, tailFiles, "--data", whole)
	again("from a file", t.TempDir(), last+1, int64(len(want)), "--file", file)
	again("what is there, from a file", to, inTail, tailFiles, "--file", file)
	twice := t.TempDir()
	if _, err := parquet(t, "--data", part, "--to", twice, "--journal", "trading"); err != nil {
		t.Fatal(err)
	}
	full := int64(len(parquetFiles(t, twice))) * 2 / 3
	again("the rest", twice, last+1-2*parquetRange, int64(len(want))-full, "--data", whole)

	for _, to := range []string{t.TempDir(), twice} {
		r := parquetRequest{Settings: &settings.Settings{Overrides: settings.Overrides{ArchiveRange: parquetRange}}, to: to}
		e, err := r.export(t.Context(), trading, archiveSource(func(string) archive.Config { return cfg }), outputTo(new(bytes.Buffer)))
		if err != nil || e.Sequence != last || !maps.Equal(parquetFiles(t, to), want) {
			t.Errorf("from an archive: %+v, %v", e, err)
		}
	}

	// Another log, and one without its end.
	other := filledFolder(t, marketLog(t, 2), 64<<10, func(*broker.Broker, *journal.Client, base.Folder) {})
	short := filepath.Join(t.TempDir(), "short.jsonl")
	if err := CopyLog(t.Context(), []string{"--from", part, "--to", short}, outputTo(new(bytes.Buffer))); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--data", other}, {"--data", part}, {"--file", short}} {
		var diverged *record.DivergedError
		if _, err := parquet(t, append([]string{"--to", to}, args...)...); !errors.As(err, &diverged) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if !maps.Equal(parquetFiles(t, to), want) {
		t.Error("a run that failed has changed files")
	}
}

// TestParquetOfATrimmedFolder writes from the base on if that is asked for.
func TestParquetOfATrimmedFolder(t *testing.T) {
	const n, at = 300, 200
	dir, _ := trimmedFolder(t, n, at)
	to := t.TempDir()
	var trimmed *record.TrimmedError
	for _, args := range [][]string{nil, {"--journal", "trading", "--from", "199"}} {
		if _, err := parquet(t, append([]string{"--data", dir, "--to", to}, args...)...); !errors.As(err, &trimmed) || len(parquetFiles(t, to)) > 0 {
			t.Errorf("%v: %v", args, err)
		}
	}
	for i, from := range [][]string{{"--from", "210"}, nil} {
		records := int64(n-at) * int64(1-i) // the second run adds nothing
		done, err := parquet(t, append([]string{"--data", dir, "--to", to, "--journal", "trading"}, from...)...)
		if e := done["trading"]; err != nil || e.Sequence != n-1 || e.Records != records {
			t.Errorf("%+v, %v", done, err)
		}
	}
	var empty *dataset.EmptyError
	if _, err := parquet(t, "--data", dir, "--to", t.TempDir(), "--journal", "trading", "--from", "100000"); !errors.As(err, &empty) {
		t.Errorf("from a record after the end: %v", err)
	}
	if _, err := parquet(t, "--data", dir, "--to", to, "--journal", "trading", "--from", "0"); !errors.As(err, &trimmed) {
		t.Errorf("from a record before the base and the first file: %v", err)
	}
	file := filepath.Join(t.TempDir(), "log.jsonl")
	if err := CopyLog(t.Context(), []string{"--data", dir, "--from", dir, "--to", file}, outputTo(new(bytes.Buffer))); err != nil {
		t.Fatal(err)
	}
	if _, err := parquet(t, "--file", file, "--to", t.TempDir()); !errors.As(err, &trimmed) {
		t.Errorf("the beginning of a trimmed file: %v", err)
	}
	copied := t.TempDir()
	if _, err := parquet(t, "--file", file, "--to", copied, "--journal", "trading", "--from", "200"); err != nil || !maps.Equal(parquetFiles(t, copied), parquetFiles(t, to)) {
		t.Errorf("from a file: %v", err)
	}
}

// TestParquetRefusesArguments before it writes or reads anything.
func TestParquetRefusesArguments(t *testing.T) {
	to, venue := filepath.Join(t.TempDir(), "new"), t.TempDir()
	if err := os.Mkdir(filepath.Join(venue, "kafka"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"", "--to {} --journal identity", "--to {} --journal none", "--to {} --from 0", "--to {} --from 5", "--to {} --from -1 --journal trading",
		"--to {} --from x --journal trading", "--to {} --data {}", "--to " + venue,
		"--to {} --file a --archive mem://", "--to {} --archive nonsense"} {
		_, err := parquet(t, strings.Fields(strings.ReplaceAll(args, "{}", to))...)
		var usage *settings.UsageError
		if !errors.As(err, &usage) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, err := parquet(t, "--to", to, "--file", filepath.Join(to, "missing.jsonl")); err == nil {
		t.Error("a file that is missing was read")
	}
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the folder was made")
	}
}

// TestParquetLocksTheFolder refuses a folder to which another run writes.
func TestParquetLocksTheFolder(t *testing.T) {
	data := filledFolder(t, marketLog(t, 3), 64<<10, func(*broker.Broker, *journal.Client, base.Folder) {})
	to := t.TempDir()
	folder, err := local.OpenFolder(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parquet(t, "--data", data, "--to", to); err == nil || !strings.Contains(err.Error(), "in use") || len(parquetFiles(t, to)) > 0 {
		t.Errorf("a folder in use: %v", err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := parquet(t, "--data", data, "--to", to); err != nil || len(parquetFiles(t, to)) == 0 {
		t.Errorf("afterwards: %v", err)
	}
}
