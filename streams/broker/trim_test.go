package broker_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// trimTo is a trim at an offset of a log in which offsets are sequences.
func trimTo(offset int64) base.Trim {
	return base.Trim{Offset: offset, Base: record.Base{Journal: "trading", Partitions: 1, JournalID: scalar.ID{1},
		Sequence: offset, Prev: record.Hash{byte(offset), 1}}}
}

const segmented = 60 // batches of a segmented log

// segmentedLog makes the folder of a log of many segments and returns their first offsets.
func segmentedLog(t *testing.T) (dir string, bases []int64) {
	t.Helper()
	dir = t.TempDir()
	b, err := broker.Start(t.Context(), broker.Config{Dir: dir, Logger: quiet(), SegmentBytes: 300})
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, b.Addrs())
	createTopic(t, c, topic, nil)
	produce(t, c, topic, numbered(0, segmented)...)
	c.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if bases = segmentsOf(t, dir); len(bases) < 10 {
		t.Fatalf("%d segments", len(bases))
	}
	return dir, bases
}

func partitionFolder(dir string) string { return filepath.Join(dir, "partitions", topic+"-0") }

func segmentsOf(t testing.TB, dir string) (bases []int64) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(partitionFolder(dir), "*.dat"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		n, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(path), ".dat"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		bases = append(bases, n)
	}
	slices.Sort(bases)
	return bases
}

// copied returns a copy of a folder.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// keptBase returns the first offset of the segment that holds an offset.
func keptBase(bases []int64, offset int64) int64 {
	kept := bases[0]
	for _, b := range bases {
		if b <= offset {
			kept = b
		}
	}
	return kept
}

// beginsWith wants a log to begin at an offset and to hold the values from there to an end.
func beginsWith(t *testing.T, b *broker.Broker, start int64, end int) {
	t.Helper()
	c := client(t, b.Addrs(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(start)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	defer c.Close()
	starts, err := kadm.NewClient(c).ListStartOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := starts.Lookup(topic, 0); o.Err != nil || o.Offset != start {
		t.Fatalf("the log begins at %d, %v; want %d", o.Offset, o.Err, start)
	}
	for next := start; next < int64(end); {
		fetches := c.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if want := fmt.Sprintf("value %d", next); r.Offset != next || string(r.Value) != want {
				t.Fatalf("offset %d has %q, want %d with %q", r.Offset, r.Value, next, want)
			}
			next++
		})
	}
}

// TestTrim trims logs twice at any offsets, and wants the same log before and after a restart, with what is appended.
func TestTrim(t *testing.T) {
	dir, bases := segmentedLog(t)
	checks := 0
	rapid.Check(t, func(r *rapid.T) {
		if checks++; checks > 12 { // each starts a broker twice, which syncs many files
			return
		}
		dir, end := copied(t, dir), segmented
		last := int64(0)
		b, err := broker.Start(t.Context(), broker.Config{Dir: dir, Logger: quiet(), SegmentBytes: 300, Sync: rapid.Bool().Draw(r, "sync")})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { b.Close() }()
		for range 2 {
			at := rapid.Int64Range(max(1, last), segmented-1).Draw(r, "offset")
			want := keptBase(bases, at)
			got, err := b.Trim(t.Context(), topic, trimTo(at), at)
			if err != nil || got != want {
				t.Fatalf("trimmed at %d: %d, %v; want %d", at, got, err, want)
			}
			if again, err := b.Trim(t.Context(), topic, trimTo(at), at); err != nil || again != want {
				t.Fatalf("again: %d, %v", again, err)
			}
			if left := segmentsOf(t, dir); left[0] != want {
				t.Fatalf("the segments %v are left after a trim at %d", left, at)
			}
			beginsWith(t, b, want, end)
			last = at
		}
		c := client(t, b.Addrs())
		produce(t, c, topic, numbered(end, end+3)...)
		c.Close()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		b = start(t, dir)
		beginsWith(t, b, keptBase(bases, last), end+3)
	})
}

// TestInterruptedTrim ends a trim after trim.json was written, and after the disk has deleted any of the files that the trim
// deletes. The next start finishes it.
func TestInterruptedTrim(t *testing.T) {
	dir, bases := segmentedLog(t)
	checks := 0
	rapid.Check(t, func(r *rapid.T) {
		dir := copied(t, dir)
		at := rapid.Int64Range(1, segmented-1).Draw(r, "offset")
		write(t, filepath.Join(partitionFolder(dir), "trim.json"), append(trimTo(at).JSON(), '\n'))
		want := keptBase(bases, at)
		for _, b := range bases {
			for _, extension := range []string{".dat", ".idx"} {
				if b < want && rapid.Bool().Draw(r, fmt.Sprintf("%d%s is deleted", b, extension)) {
					if err := os.Remove(filepath.Join(partitionFolder(dir), strconv.FormatInt(b, 10)+extension)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		report, err := broker.Scan(t.Context(), dir)
		if err != nil || report.Begins() != want {
			t.Fatalf("trimmed at %d, the log begins at %d, %v; want %d", at, report.Begins(), err, want)
		}
		if checks++; checks > 12 {
			return
		}
		b := start(t, dir)
		defer b.Close()
		beginsWith(t, b, want, segmented)
		if left := segmentsOf(t, dir); left[0] != want {
			t.Errorf("the segments %v are left after a trim at %d", left, at)
		}
	})
}

// TestTrimRefuses deletes nothing where a trim is not safe.
func TestTrimRefuses(t *testing.T) {
	dir, bases := segmentedLog(t)
	b := start(t, dir)
	ctx := t.Context()
	for what, c := range map[string]struct {
		trim base.Trim
		safe int64
	}{
		"past what is safe": {trimTo(30), 29},
		"past the end":      {trimTo(segmented), 1 << 40},
		"no base":           {base.Trim{Offset: 30}, 40},
	} {
		if got, err := b.Trim(ctx, topic, c.trim, c.safe); err == nil {
			t.Errorf("%s: %d", what, got)
		}
	}
	if got, err := b.Trim(ctx, "elsewhere", trimTo(30), 30); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("no topic: %d, %v", got, err)
	}
	c := client(t, b.Addrs())
	kill := func(offset int64) error {
		offsets := make(kadm.Offsets)
		offsets.AddOffset(topic, 0, offset, -1)
		deleted, err := kadm.NewClient(c).DeleteRecords(ctx, offsets)
		return cmpErr(err, deleted.Error())
	}
	if err := kill(bases[3]); !errors.Is(err, kerr.PolicyViolation) {
		t.Errorf("a client deletes records: %v", err)
	}
	beginsWith(t, b, 0, segmented)
	if left := segmentsOf(t, dir); !slices.Equal(left, bases) {
		t.Errorf("the segments %v are left", left)
	}
	if _, err := b.Trim(ctx, topic, trimTo(30), 30); err != nil {
		t.Fatal(err)
	}
	other := trimTo(40)
	other.Base.JournalID = scalar.ID{2}
	if _, err := b.Trim(ctx, topic, other, 40); err == nil || !strings.Contains(err.Error(), "another base") {
		t.Errorf("the base of another journal: %v", err)
	}
	if err := kill(-1); !errors.Is(err, kerr.PolicyViolation) {
		t.Errorf("a client deletes all records: %v", err)
	}
	beginsWith(t, b, keptBase(bases, 30), segmented)
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// TestLostBeginning refuses a log without its beginning unless a trim explains it.
func TestLostBeginning(t *testing.T) {
	dir, bases := segmentedLog(t)
	segment := func(b int64) string { return strconv.FormatInt(b, 10) + ".dat" }
	dropTo := func(dir string, n int) {
		for _, b := range bases[:n] {
			os.Remove(filepath.Join(partitionFolder(dir), segment(b)))
			os.Remove(filepath.Join(partitionFolder(dir), strconv.FormatInt(b, 10)+".idx"))
		}
	}
	trim := func(dir string, offset int64) {
		write(t, filepath.Join(partitionFolder(dir), "trim.json"), append(trimTo(offset).JSON(), '\n'))
	}
	for what, c := range map[string]struct {
		harm func(dir string)
		file string
		want string
	}{
		"no trim.json":                  {func(dir string) { dropTo(dir, 2) }, segment(bases[2]), "starts at offset"},
		"more than was trimmed is gone": {func(dir string) { dropTo(dir, 3); trim(dir, bases[3]-1) }, segment(bases[3]), "after offset"},
		"a gap above the trim": {func(dir string) {
			trim(dir, bases[2])
			os.Remove(filepath.Join(partitionFolder(dir), segment(bases[4])))
		}, segment(bases[5]), "comes next"},
		"the trimmed segment is gone": {func(dir string) {
			trim(dir, bases[4]+1)
			os.Remove(filepath.Join(partitionFolder(dir), segment(bases[4])))
		}, segment(bases[5]), "comes next"},
		"the end is gone":    {func(dir string) { trim(dir, segmented+5) }, "trim.json", "it ends at offset"},
		"no segment is left": {func(dir string) { dropTo(dir, len(bases)); trim(dir, 30) }, "trim.json", "no segment is left"},
		"trim.json is cut":   {func(dir string) { write(t, filepath.Join(partitionFolder(dir), "trim.json"), trimTo(30).JSON()[:50]) }, "trim.json", "where a log was trimmed"},
	} {
		dir := copied(t, dir)
		c.harm(dir)
		before := fingerprint(t, dir)
		_, err := broker.Start(t.Context(), broker.Config{Dir: dir, Logger: quiet()})
		var damage *broker.DamageError
		if !errors.As(err, &damage) || filepath.Base(damage.File) != c.file || !strings.Contains(damage.Reason, c.want) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		after := fingerprint(t, dir)
		delete(before, "lock")
		delete(after, "lock")
		if fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("%s: the folder was changed", what)
		}
	}
}
