package broker_test

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	segmented    = 60   // batches of a segmented log
	segmentBytes = 1500 // of its segments: each holds a few batches
)

// chained are the records of a journal, in which offsets are sequences.
var chained = sync.OnceValue(func() (all []*kgo.Record) {
	prev := record.Hash{}
	for i := range int64(segmented + 100) {
		r := &record.Record{Sequence: i, Prev: prev, Time: scalar.Time(1_700_000_000_000_000 + i), Outcome: decide.Accepted,
			Command: decide.Recorded{ID: scalar.ID{byte(i), byte(i >> 8)}, Type: record.TypeTermStarted, Actor: decide.Engine},
			Events:  []decide.Event{&record.TermStarted{Term: i, Node: "n", URL: "http://n", Build: "test"}}}
		if i == 0 {
			r.Command.Type, r.Events = record.TypeGenesis, []decide.Event{&record.Genesis{Journal: topic, JournalID: scalar.ID{1}, Partitions: 1}}
		}
		value, err := record.Encode(nil, r)
		if err != nil {
			panic(err)
		}
		prev = sha256.Sum256(value)
		all = append(all, journal.KafkaRecord(topic, topic, 0, scalar.ID{1}, r, value))
	}
	return all
})

// trimTo is a trim of that journal at an offset.
func trimTo(offset int64) base.Trim {
	return base.Trim{Offset: offset, Base: record.Base{Journal: topic, Partitions: 1, JournalID: scalar.ID{1}, Sequence: offset,
		Prev: sha256.Sum256(chained()[offset-1].Value), Term: offset - 1}}
}

// extend appends records of the journal, one batch each.
func extend(t *testing.T, b *broker.Broker, from, to int) {
	t.Helper()
	c := client(t, b.Addrs())
	defer c.Close()
	for _, r := range chained()[from:to] {
		again := *r // the client writes to its records
		if err := c.ProduceSync(t.Context(), &again).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// startSegmented starts a broker that writes small segments.
func startSegmented(t *testing.T, config broker.Config) *broker.Broker {
	t.Helper()
	config.Logger, config.SegmentBytes = quiet(), segmentBytes
	b, err := broker.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// segmentedLog makes the folder of a log of many segments and returns their first offsets.
func segmentedLog(t *testing.T) (dir string, bases []int64) {
	t.Helper()
	dir = t.TempDir()
	b := startSegmented(t, broker.Config{Dir: dir})
	createTopic(t, client(t, b.Addrs()), topic, nil)
	extend(t, b, 0, segmented)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if bases = segmentsOf(t, dir); len(bases) < 10 || len(bases) > segmented/2 {
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
			if r.Offset != next || string(r.Value) != string(chained()[next].Value) {
				t.Fatalf("offset %d has %q, where %d comes next", r.Offset, r.Value, next)
			}
			next++
		})
	}
}

// TestTrim trims logs twice at any offsets, and wants the same log before and after a restart, with what is appended.
func TestTrim(t *testing.T) {
	dir, bases := segmentedLog(t)
	for seed := range uint64(10) { // each starts a broker twice, which syncs many files
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			dir, end := copied(t, dir), segmented
			b := startSegmented(t, broker.Config{Dir: dir, Sync: seed%2 == 0})
			last := int64(1)
			for range 2 {
				last += random.Int64N(segmented - last)
				want := keptBase(bases, last)
				for _, time := range []string{"once", "again"} {
					if got, err := b.Trim(t.Context(), topic, trimTo(last), last); err != nil || got != want {
						t.Fatalf("%s trimmed at %d: %d, %v; want %d", time, last, got, err, want)
					}
				}
				if left := segmentsOf(t, dir); left[0] != want {
					t.Fatalf("the segments %v are left after a trim at %d", left, last)
				}
				beginsWith(t, b, want, end)
			}
			extend(t, b, end, end+3)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			beginsWith(t, start(t, dir), keptBase(bases, last), end+3)
		})
	}
}

// interrupt makes a folder that a power cut in a trim leaves: trim.json was written, and some of the segments and indexes
// are deleted, in any order.
func interrupt(t *testing.T, dir string, bases []int64, at int64, deleted func() bool) {
	t.Helper()
	write(t, filepath.Join(partitionFolder(dir), "trim.json"), append(trimTo(at).JSON(), '\n'))
	for _, b := range bases {
		for _, extension := range []string{".dat", ".idx"} {
			if b < keptBase(bases, at) && deleted() {
				if err := os.Remove(filepath.Join(partitionFolder(dir), strconv.FormatInt(b, 10)+extension)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestInterruptedTrim ends a trim after trim.json was written. The next start finishes it.
func TestInterruptedTrim(t *testing.T) {
	dir, bases := segmentedLog(t)
	for seed := range uint64(40) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			random, dir := rand.New(rand.NewPCG(seed, 1)), copied(t, dir)
			at := 1 + random.Int64N(segmented-1)
			interrupt(t, dir, bases, at, func() bool { return random.IntN(2) == 0 })
			want := keptBase(bases, at)
			report, err := broker.Scan(t.Context(), dir)
			if err != nil {
				t.Fatalf("trimmed at %d: %v", at, err)
			}
			if report.Begins() != want {
				t.Fatalf("trimmed at %d, the log begins at %d; want %d", at, report.Begins(), want)
			}
			if seed >= 10 {
				return
			}
			b := start(t, dir)
			beginsWith(t, b, want, segmented)
			if left := segmentsOf(t, dir); left[0] != want {
				t.Errorf("the segments %v are left after a trim at %d", left, at)
			}
		})
	}
}

// TestTrimIsFinishedDurably deletes nothing that a trim has left until the folder with trim.json is on disk.
func TestTrimIsFinishedDurably(t *testing.T) {
	dir, bases := segmentedLog(t)
	interrupt(t, dir, bases, 30, func() bool { return false })
	broken := errors.New("the disk is broken")
	_, err := broker.Start(t.Context(), broker.Config{Dir: dir, Logger: quiet()}.WithSync(func(f *os.File) error {
		if f.Name() == partitionFolder(dir) {
			return broken
		}
		return f.Sync()
	}))
	if !errors.Is(err, broken) || !slices.Equal(segmentsOf(t, dir), bases) {
		t.Errorf("%v; the segments %v are left", err, segmentsOf(t, dir))
	}
}

// TestTrimSyncsWhatItKeeps wants the first segment that is kept on disk before the others are deleted, also in a broker that
// does not sync. If that fails, the broker stops.
func TestTrimSyncsWhatItKeeps(t *testing.T) {
	dir, bases := segmentedLog(t)
	kept := filepath.Join(partitionFolder(dir), strconv.FormatInt(keptBase(bases, 30), 10)+".dat")
	broken, fails := errors.New("the disk is broken"), atomic.Bool{}
	b := startSegmented(t, broker.Config{Dir: dir}.WithSync(func(f *os.File) error {
		if fails.Load() && f.Name() == kept {
			return broken
		}
		return f.Sync()
	}))
	fails.Store(true)
	if got, err := b.Trim(t.Context(), topic, trimTo(30), 30); !errors.Is(err, broken) {
		t.Fatalf("%d, %v", got, err)
	}
	<-b.Done()
	if !errors.Is(b.Err(), broken) || !slices.Equal(segmentsOf(t, dir), bases) {
		t.Errorf("%v; the segments %v are left", b.Err(), segmentsOf(t, dir))
	}
}

// TestTrimOfATopicCreatedAgain trims a topic, deletes it, and trims the one of the same name that follows.
func TestTrimOfATopicCreatedAgain(t *testing.T) {
	for _, sync := range []bool{false, true} {
		dir, _ := segmentedLog(t)
		b := startSegmented(t, broker.Config{Dir: dir, Sync: sync})
		if _, err := b.Trim(t.Context(), topic, trimTo(50), 50); err != nil {
			t.Fatal(err)
		}
		c := client(t, b.Addrs())
		deleted, err := kadm.NewClient(c).DeleteTopics(t.Context(), topic)
		if err := cmp.Or(err, deleted.Error()); err != nil {
			t.Fatal(err)
		}
		createTopic(t, c, topic, nil)
		extend(t, b, 0, segmented)
		if err := deleteRecords(t, b, 10); !errors.Is(err, kerr.PolicyViolation) {
			t.Errorf("sync %v: a client deletes records of the new topic: %v", sync, err)
		}
		bases := segmentsOf(t, dir)
		start, err := b.Trim(t.Context(), topic, trimTo(30), 30)
		if err != nil || start != keptBase(bases, 30) {
			t.Fatalf("sync %v: the new topic was trimmed to %d, %v", sync, start, err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		beginsWith(t, startSegmented(t, broker.Config{Dir: dir, Sync: sync}), start, segmented)
	}
}

// TestTrimWhileProducing trims a log to which records are appended.
func TestTrimWhileProducing(t *testing.T) {
	for _, sync := range []bool{false, true} {
		dir, bases := segmentedLog(t)
		b := startSegmented(t, broker.Config{Dir: dir, Sync: sync})
		c := client(t, b.Addrs())
		var appended atomic.Int64
		for _, r := range chained()[segmented:] {
			again := *r
			c.Produce(t.Context(), &again, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Error(err)
				}
				appended.Add(1)
			})
		}
		at := int64(20)
		for ; at < segmented; at += 10 {
			if start, err := b.Trim(t.Context(), topic, trimTo(at), at); err != nil || start != keptBase(bases, at) {
				t.Fatalf("sync %v: trimmed at %d: %d, %v", sync, at, start, err)
			}
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := len(chained())
		beginsWith(t, b, keptBase(bases, at-10), all)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		beginsWith(t, start(t, dir), keptBase(bases, at-10), all)
	}
}

// TestKilledTrim kills a broker between trim.json and the deletion.
func TestKilledTrim(t *testing.T) {
	for _, sync := range []string{"", "1"} {
		dir, bases := segmentedLog(t)
		b := startChild(t, dir, sync)
		fmt.Fprintln(b.input, "trim 30")
		if said, err := io.ReadAll(b.output); err != nil || len(said) > 0 {
			t.Fatalf("the child says %q, %v", said, err)
		}
		b.kill()
		if left := segmentsOf(t, dir); !slices.Equal(left, bases) {
			t.Errorf("the segments %v are left", left)
		}
		beginsWith(t, start(t, dir), keptBase(bases, 30), segmented)
		if left := segmentsOf(t, dir); left[0] != keptBase(bases, 30) {
			t.Errorf("the segments %v are left after a start", left)
		}
	}
}

// TestTrimRefuses deletes nothing where a trim is not safe.
func TestTrimRefuses(t *testing.T) {
	dir, bases := segmentedLog(t)
	for _, sync := range []bool{false, true} {
		dir := copied(t, dir)
		b := startSegmented(t, broker.Config{Dir: dir, Sync: sync})
		trim := func(topic string, at base.Trim, safe int64) error {
			_, err := b.Trim(t.Context(), topic, at, safe)
			return err
		}
		changed := func(change func(*base.Trim)) base.Trim {
			at := trimTo(30)
			change(&at)
			return at
		}
		createTopic(t, client(t, b.Addrs()), "empty", nil)
		for what, c := range map[string]struct {
			err  error
			want string
		}{
			"past what is safe":       {trim(topic, trimTo(30), 29), "safe to delete"},
			"past the end":            {trim(topic, trimTo(segmented), 1<<40), "is not in the log"},
			"an empty topic":          {trim("empty", trimTo(30), 30), "is not in the log"},
			"no topic":                {trim("elsewhere", trimTo(30), 30), kerr.UnknownTopicOrPartition.Message},
			"no base":                 {trim(topic, base.Trim{Offset: 30}, 40), "not the base"},
			"another offset":          {trim(topic, changed(func(at *base.Trim) { at.Offset = 31 }), 40), "it is record 31"},
			"another hash":            {trim(topic, changed(func(at *base.Trim) { at.Base.Prev[0]++ }), 40), "it follows the hash"},
			"another journal":         {trim(topic, changed(func(at *base.Trim) { at.Base.Journal = "identity" }), 40), "its key is"},
			"another journal's id":    {trim(topic, changed(func(at *base.Trim) { at.Base.JournalID = scalar.ID{2} }), 40), "its id is"},
			"by a client":             {deleteRecords(t, b, bases[3]), kerr.PolicyViolation.Message},
			"all records by a client": {deleteRecords(t, b, -1), kerr.PolicyViolation.Message},
		} {
			if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
				t.Errorf("sync %v: %s: %v", sync, what, c.err)
			}
		}
		beginsWith(t, b, 0, segmented)
		if left := segmentsOf(t, dir); !slices.Equal(left, bases) {
			t.Errorf("sync %v: the segments %v are left", sync, left)
		}
		if err := trim(topic, trimTo(30), 30); err != nil {
			t.Fatal(err)
		}
		if err := deleteRecords(t, b, -1); !errors.Is(err, kerr.PolicyViolation) {
			t.Errorf("sync %v: a client deletes all records after a trim: %v", sync, err)
		}
		beginsWith(t, b, keptBase(bases, 30), segmented)
	}
}

// deleteRecords asks a broker as any client may.
func deleteRecords(t *testing.T, b *broker.Broker, offset int64) error {
	t.Helper()
	offsets := make(kadm.Offsets)
	offsets.AddOffset(topic, 0, offset, -1)
	deleted, err := kadm.NewClient(client(t, b.Addrs())).DeleteRecords(t.Context(), offsets)
	return cmp.Or(err, deleted.Error())
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
