package broker_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/broker"
)

// makeLog fills a folder through a broker, with batches of one and of several
// records in several segments, and returns the segment files in order.
func makeLog(t *testing.T, dir string, batches int) []string {
	t.Helper()
	b := start(t, dir)
	c := client(t, b.Addrs())
	bytes := "4000"
	createTopic(t, c, topic, map[string]*string{"segment.bytes": &bytes})
	createTopic(t, c, "identity", nil)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range batches {
		var records []*kgo.Record
		for range 1 + i%3 {
			value := make([]byte, 20+random.IntN(300))
			for j := range value {
				value[j] = byte(random.Uint32())
			}
			records = append(records, &kgo.Record{
				Topic: topic, Value: value, Timestamp: time.UnixMilli(1700000000000 + int64(i)),
				Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte("order.place")}},
			})
		}
		if err := c.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	produce(t, c, "identity", "one record")
	c.Close()
	b.Close()
	segments, err := filepath.Glob(filepath.Join(dir, "partitions", topic+"-0", "*.dat"))
	if err != nil || len(segments) < 2 {
		t.Fatalf("%d segments: %v", len(segments), err)
	}
	slices.SortFunc(segments, func(a, b string) int { return len(a) - len(b) + cmpInt(len(a), len(b), a < b) })
	return segments
}

// cmpInt orders names of the same length as text.
func cmpInt(a, b int, less bool) int {
	if a != b {
		return 0
	}
	if less {
		return -1
	}
	return 1
}

// fingerprint hashes every file of a folder but the lock, which says who looked
// last.
func fingerprint(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "lock" {
			return err
		}
		content, err := os.ReadFile(path)
		all[path] = sha256.Sum256(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// starts returns where the batches of a segment start, and its end.
func starts(content []byte) []int {
	var all []int
	at := 0
	for ; at < len(content); at += 12 + int(binary.BigEndian.Uint32(content[at+8:])) {
		all = append(all, at)
	}
	return append(all, at)
}

// refused starts a broker and demands damage in the file, near the byte.
func refused(t *testing.T, dir, file string, from, to int) *broker.DamageError {
	t.Helper()
	before := fingerprint(t, dir)
	b, err := broker.Start(t.Context(), broker.Config{Dir: dir, Logger: quiet()})
	if err == nil {
		b.Close()
		t.Fatalf("%s was opened with byte %d to %d damaged", file, from, to)
	}
	damage := (*broker.DamageError)(nil)
	if !errors.As(err, &damage) {
		t.Fatalf("got %v, want damage", err)
	}
	if damage.File != file || damage.Offset < int64(from) || damage.Offset >= int64(to) {
		t.Fatalf("got %v, want damage of %s between %d and %d", err, file, from, to)
	}
	if !maps.Equal(before, fingerprint(t, dir)) {
		t.Fatalf("%v, but files were changed", err)
	}
	return damage
}

func TestEveryFlippedByteIsRefused(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	segments := makeLog(t, dir, 40)
	exact, total := 0, 0
	flip := func(file string, content []byte, at int, by byte) {
		ends := starts(content)
		i, found := slices.BinarySearch(ends, at)
		if !found {
			i--
		}
		content[at] ^= by
		write(t, file, content)
		// The damage is named within the batch that holds the byte.
		damage := refused(t, dir, file, ends[i], ends[i+1])
		content[at] ^= by
		write(t, file, content)
		total++
		if damage.Offset == int64(at) {
			exact++
		}
	}
	for range 400 {
		file := segments[random.IntN(len(segments))]
		content := read(t, file)
		flip(file, content, random.IntN(len(content)), byte(1+random.IntN(255)))
	}
	// The header of the last batch is where damage looks most like a crash.
	last := segments[len(segments)-1]
	content := read(t, last)
	ends := starts(content)
	for at := ends[len(ends)-2]; at < ends[len(ends)-2]+61; at++ {
		for _, by := range []byte{1, 0x80, 0xff, byte(1 + random.IntN(255))} {
			flip(last, content, at, by)
		}
	}
	if exact*100 < total*98 {
		t.Errorf("the exact byte was named for %d of %d flips only", exact, total)
	}
	start(t, dir) // all are mended
}

// Whatever an index holds, a start makes it agree with its segment again.
func TestIndexesAreMadeAgain(t *testing.T) {
	dir := t.TempDir()
	segments := makeLog(t, dir, 12)
	want := map[string][]byte{}
	for _, file := range segments {
		want[indexOf(file)] = read(t, indexOf(file))
	}
	for name, damage := range map[string]func(index []byte) []byte{
		"a byte flipped at the start": func(x []byte) []byte { x[0] ^= 0x10; return x },
		"a byte flipped in the last":  func(x []byte) []byte { x[len(x)-1] ^= 0x10; return x },
		"half of a further entry":     func(x []byte) []byte { return append(x, x[:7]...) },
		"half of its last entry":      func(x []byte) []byte { return x[:len(x)-7] },
		"half an entry, and whole ones after it": func(x []byte) []byte {
			return slices.Concat(x[:len(x)-15], x[:7], x[len(x)-15:], x[:15])
		},
		"zeros":   func(x []byte) []byte { return make([]byte, len(x)) },
		"nothing": func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			for file, content := range want {
				write(t, file, damage(slices.Clone(content)))
			}
			b := start(t, dir)
			if n := len(values(t, b.Addrs(), topic)); n != 24 {
				t.Errorf("%d records", n)
			}
			b.Close()
			for file, content := range want {
				if !slices.Equal(read(t, file), content) {
					t.Errorf("%s is not as it was", file)
				}
			}
		})
	}
}

// A crash can cut the last batch at any byte; it alone is dropped.
func TestEveryCutOfTheLastBatch(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	c := client(t, b.Addrs())
	createTopic(t, c, topic, nil)
	produce(t, c, topic, numbered(0, 5)...)
	c.Close()
	b.Close()
	file := filepath.Join(dir, "partitions", topic+"-0", "0.dat")
	whole, wholeIndex := read(t, file), read(t, indexOf(file))
	ends := starts(whole)
	from, to := ends[len(ends)-2], ends[len(ends)-1]
	for size := from; size <= to; size++ {
		write(t, file, whole[:size])
		write(t, indexOf(file), wholeIndex[:len(wholeIndex)-size%31])
		report, err := broker.Scan(t.Context(), dir)
		if err != nil {
			t.Fatalf("cut to %d of %d bytes: %v", size, to, err)
		}
		cut, want := report.Incomplete(), map[string]int64{file: int64(from)}
		if size == from || size == to {
			want = map[string]int64{}
		}
		if !maps.Equal(cut, want) {
			t.Fatalf("cut to %d of %d bytes: %v, want %v", size, to, cut, want)
		}
		// A start for each is slow; a few suffice for what comes after a scan.
		if size%17 != 0 && size < to-1 {
			continue
		}
		b := start(t, dir)
		records := 4
		if size == to {
			records = 5
		}
		if got := values(t, b.Addrs(), topic); fmt.Sprint(got) != fmt.Sprint(numbered(0, records)) {
			t.Fatalf("cut to %d of %d bytes: %q", size, to, got)
		}
		if offset := produce(t, client(t, b.Addrs()), topic, "after"); offset != int64(records) {
			t.Fatalf("cut to %d of %d bytes: the next offset is %d", size, to, offset)
		}
		b.Close()
	}
}

func indexOf(segment string) string { return segment[:len(segment)-len(".dat")] + ".idx" }

func TestDamageThatIsNoFlip(t *testing.T) {
	origin := t.TempDir()
	segments := makeLog(t, origin, 40)
	last := len(segments) - 1
	for name, c := range map[string]struct {
		damage func(t *testing.T, files []string) (file string, from, to int)
	}{
		"a cut in a segment that is not the last": {func(t *testing.T, files []string) (string, int, int) {
			content := read(t, files[1])
			ends := starts(content)
			write(t, files[1], content[:len(content)-3])
			return files[1], ends[len(ends)-2], len(content)
		}},
		"a segment missing": {func(t *testing.T, files []string) (string, int, int) {
			os.Remove(files[1])
			return files[2], 0, 1
		}},
		"the last segment missing": {func(t *testing.T, files []string) (string, int, int) {
			os.Remove(files[last])
			return indexOf(files[last]), 0, 1
		}},
		"a batch missing": {func(t *testing.T, files []string) (string, int, int) {
			content := read(t, files[1])
			ends := starts(content)
			write(t, files[1], slices.Delete(content, ends[2], ends[3]))
			return files[1], ends[2], ends[2] + 8
		}},
		"a batch twice": {func(t *testing.T, files []string) (string, int, int) {
			content := read(t, files[last])
			ends := starts(content)
			write(t, files[last], append(content, content[ends[len(ends)-2]:]...))
			return files[last], len(content), len(content) + 8
		}},
		"zeros after the end": {func(t *testing.T, files []string) (string, int, int) {
			content := read(t, files[last])
			write(t, files[last], append(content, make([]byte, 4096)...))
			return files[last], len(content), len(content) + 8
		}},
		"a length beyond the end, with more damage, before intact batches": {func(t *testing.T, files []string) (string, int, int) {
			content := read(t, files[last])
			content[9], content[100] = 3, content[100]+1
			write(t, files[last], content)
			return files[last], 8, 9
		}},
		"the topics not named": {func(t *testing.T, files []string) (string, int, int) {
			file := filepath.Join(filepath.Dir(files[0]), "..", "..", "topics.json")
			os.Remove(file)
			return filepath.Clean(file), 0, 1
		}},
		"the topics unreadable": {func(t *testing.T, files []string) (string, int, int) {
			file := filepath.Clean(filepath.Join(filepath.Dir(files[0]), "..", "..", "topics.json"))
			content := read(t, file)
			content[0] = 'x'
			write(t, file, content)
			return file, 0, 1
		}},
		"a segment of another name": {func(t *testing.T, files []string) (string, int, int) {
			name := filepath.Join(filepath.Dir(files[0]), "00.dat")
			os.Rename(files[0], name)
			return name, 0, 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(origin)); err != nil {
				t.Fatal(err)
			}
			var files []string
			for _, s := range segments {
				name, _ := filepath.Rel(origin, s)
				files = append(files, filepath.Join(dir, name))
			}
			file, from, to := c.damage(t, files)
			refused(t, dir, file, from, to)
		})
	}
}

// What is derived from the segments may be damaged or missing.
func TestDerivedFilesAreMadeAgain(t *testing.T) {
	dir := t.TempDir()
	makeLog(t, dir, 10)
	partition := filepath.Join(dir, "partitions", topic+"-0")
	write(t, filepath.Join(partition, "snapshot.json"), []byte(`{"version":1,"high_watermark":3,"log_start_offset":2`))
	for _, name := range []string{"seq_windows.json", "session_state.json", "pids.log", "groups.log"} {
		write(t, filepath.Join(dir, name), []byte("damage"))
	}
	indexes, _ := filepath.Glob(filepath.Join(partition, "*.idx"))
	for _, name := range indexes {
		os.Remove(name)
	}
	b := start(t, dir)
	if n := len(values(t, b.Addrs(), topic)); n != 19 {
		t.Fatalf("%d records", n)
	}
	b.Close()
	start(t, dir)
}

// TestSummaryThatLies changes where kfake's summary says that the log starts and ends. kfake believes a summary whose
// segment sizes are right, so it must be made anew from the segments.
func TestSummaryThatLies(t *testing.T) {
	for _, lie := range []string{"log_start_offset", "high_watermark"} {
		t.Run(lie, func(t *testing.T) {
			dir := t.TempDir()
			segments := makeLog(t, dir, 10)
			path := filepath.Join(filepath.Dir(segments[0]), "snapshot.json")
			var summary map[string]any
			if err := json.Unmarshal(read(t, path), &summary); err != nil {
				t.Fatal(err)
			}
			if _, ok := summary[lie]; !ok {
				t.Fatalf("the summary has no %s: %v", lie, summary)
			}
			summary[lie] = 2
			text, err := json.Marshal(summary)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, text)
			b := start(t, dir)
			if n := len(values(t, b.Addrs(), topic)); n != 19 {
				t.Errorf("%d of 19 records are left", n)
			}
		})
	}
}
