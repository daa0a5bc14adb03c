package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func TestAnArchiveReturnsTheTopic(t *testing.T) {
	ctx := t.Context()
	for seed := range uint64(2) {
		p := newTopic(t, seed).grow(300)
		p.odd() // after the last valid record
		bucket, err := blob.Open(ctx, blob.URLOf(t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		defer bucket.Close()
		cfg := testConfig(t, blob.NewStore(bucket))
		if err := p.archive(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		checkEqual(t, read(t, cfg, 0, math.MaxInt64), p.records)
		checkStored(t, cfg, 0, math.MaxInt64, p.records)
		a, err := Open(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := a.Verify(ctx, nil)
		if err != nil || sum.Ranges != 2 || sum.Records != p.sequence || sum.Tail != p.sequence-256 || sum.Base.Prev != p.prev ||
			sum.Records+sum.Skipped != int64(len(p.records)) {
			t.Errorf("%+v, %v", sum, err)
		}
		if b := a.Base(); b.Sequence != 256 || b.JournalID != p.id || b.Validate() != nil {
			t.Errorf("the base is %v", b)
		}
	}
}

// TestAnArchiveOfEncodedRecords archives a topic with the records of its owner, some of which lost a race against those of the topic.
func TestAnArchiveOfEncodedRecords(t *testing.T) {
	p := newTopic(t, 3).grow(300)
	cache := record.NewEncodedCache(1024)
	for i, r := range p.records {
		head, err := record.DecodeHead(r.Value)
		if err != nil {
			continue
		}
		value := bytes.Clone(r.Value)
		if i%7 == 0 {
			value[len(value)-3] ^= 1
		}
		cache.Add(record.Entry{Record: head, Position: record.Position{Sequence: head.Sequence, Hash: sha256.Sum256(value)}, Value: value})
	}
	cfg := testConfig(t, newMemory())
	cfg.Encoded = cache
	if err := p.archive(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	checkStored(t, cfg, 0, math.MaxInt64, p.records)
	a, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if sum, err := a.Verify(t.Context(), nil); err != nil || sum.Records != p.sequence {
		t.Errorf("%+v, %v", sum, err)
	}
}

// TestAnyPart reads [from, to) as the records of the topic that count to it, and the values of the valid ones among them.
func TestAnyPart(t *testing.T) {
	p := newTopic(t, 4).grow(280)
	cfg := testConfig(t, newMemory())
	if err := p.archive(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	sequences, next := make([]int64, len(p.records)), p.sequence
	for i := len(p.records) - 1; i >= 0; i-- {
		if isValid(p, i) {
			next--
		}
		sequences[i] = next
	}
	for _, c := range [][2]int64{{0, 1}, {0, 128}, {1, 2}, {127, 129}, {128, 128}, {50, 200}, {256, 280}, {279, 5000}, {280, 5000}, {3000, 5000}} {
		var want []*kgo.Record
		var values [][]byte
		for i, r := range p.records {
			if s := sequences[i]; s >= c[0] && s < c[1] {
				want = append(want, r)
				if isValid(p, i) {
					values = append(values, r.Value)
				}
			}
		}
		checkEqual(t, read(t, cfg, c[0], c[1]), want)
		checkStored(t, cfg, c[0], c[1], want)
		a, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for value, err := range a.Values(t.Context(), c[0], c[1]) {
			if err != nil || len(values) == 0 || !bytes.Equal(value, values[0]) {
				t.Fatalf("%v: %s is not the next value: %v", c, value, err)
			}
			values = values[1:]
		}
		if len(values) > 0 {
			t.Errorf("%v: %d values are missing", c, len(values))
		}
	}
}

// isValid reports whether a record of a topic is valid: the first copy of a value that is not odd.
func isValid(p *topic, i int) bool {
	r := p.records[i]
	if len(r.Headers) != 6 || strings.Contains(string(r.Value), strings.Repeat("ab", 32)) {
		return false
	}
	for _, q := range p.records[max(0, i-8):i] {
		if bytes.Equal(q.Value, r.Value) {
			return false
		}
	}
	return true
}

// TestOddRecords archives values that writers of today do not make, among them one of 4 MiB.
func TestOddRecords(t *testing.T) {
	p := newTopic(t, 5)
	for _, data := range []string{`{}`, `{"a":{"a":{"a":[[],{},[{}]]}}}`, `{"a":"\u0000\ud83d\ude00\\\"","b":"é"}`, `{"a":1,"a":1,"A":1}`,
		`{"n":[0,-0,0.0,1e400,123456789012345678901234567890,-0.10,1E+2]}`, `{"x":"` + strings.Repeat("long", 1<<20) + `"}`,
		`{"id":"` + strings.ToUpper(p.id.String()) + `","prev":"` + p.prev.String() + `"}`, `{"type":"` + strings.Repeat("t", 300) + `"}`} {
		p.valid(p.value(data))
		if len(data) < 1<<20 {
			p.valid(p.value(data))
		}
	}
	cfg := testConfig(t, newMemory())
	if err := p.archive(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	checkEqual(t, read(t, cfg, 0, math.MaxInt64), p.records)
}

// TestCrashes ends a writer before or after any of its writes. Whatever was written is a sound archive, and the next writer goes
// on to the same end.
func TestCrashes(t *testing.T) {
	ctx := t.Context()
	p := newTopic(t, 6).grow(150)
	tiny := func(s *memory) Config {
		cfg := testConfig(t, s)
		cfg.sizes = sizes{64, 12_000}
		return cfg
	}
	whole := newMemory()
	if err := p.archive(ctx, tiny(whole)); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		s := newMemory()
		part := *p
		for crash := range rapid.IntRange(1, 2).Draw(r, "crashes") {
			part.records = p.records[:rapid.IntRange(1, len(p.records)).Draw(r, "records")]
			s.writes, s.fails, s.after = 0, rapid.IntRange(1, whole.writes).Draw(r, "write"), rapid.Bool().Draw(r, "after")
			err := part.archive(ctx, tiny(s))
			if err != nil && !errors.Is(err, errCrash) {
				r.Fatalf("crash %d: %v", crash, err)
			}
			s.fails = 0
			a, err := Open(ctx, tiny(s))
			if err != nil {
				r.Fatal(err)
			}
			if _, err := a.Verify(ctx, nil); err != nil {
				r.Fatal(err)
			}
		}
		if err := p.archive(ctx, tiny(s)); err != nil {
			r.Fatal(err)
		}
		checkEqual(t, read(t, tiny(s), 0, math.MaxInt64), p.records)
	})
}

// TestTwoWriters archive the same topic at the same time.
func TestTwoWriters(t *testing.T) {
	p := newTopic(t, 7).grow(280)
	s := newMemory()
	errs := make([]error, 2)
	var writing sync.WaitGroup
	for i := range errs {
		writing.Go(func() {
			cfg := testConfig(t, s)
			cfg.codec = nil
			w, err := NewWriter(t.Context(), cfg)
			for _, r := range p.records {
				if err == nil && r.Offset >= w.Next() {
					err = w.Add(t.Context(), r)
				}
			}
			errs[i] = err
		})
	}
	writing.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var want []*kgo.Record
	for _, r := range p.records {
		if r.Offset <= lastOf(t, testConfig(t, s)) {
			want = append(want, r)
		}
	}
	checkEqual(t, read(t, testConfig(t, s), 0, math.MaxInt64), want)
}

// storePlain stores the chunks of the current range in another form, as another build may.
func (w *Writer) storePlain(t *testing.T) {
	p := w.current
	if err := p.flush(w, w.entries); err != nil {
		t.Fatal(err)
	}
	w.entries, w.bytes = nil, 0
	d, err := newDecoders()
	if err != nil {
		t.Fatal(err)
	}
	o := &object{cfg: &w.archive.cfg, manifest: &p.Manifest, log: w.log, heads: p.heads}
	var chunks []byte
	for i := range p.heads {
		h := &p.heads[i]
		o.chunks, p.chunks = append(o.chunks, p.chunks[:h.Facts+h.Columns]), p.chunks[h.Facts+h.Columns:]
		v, err := o.chunk(d, i)
		if err != nil {
			t.Fatal(err)
		}
		var lengths []byte
		for i := range v.ends {
			lengths = binary.AppendUvarint(lengths, uint64(len(v.value(i))))
		}
		chunks = append(chunks, o.chunks[i][:h.Facts]...)
		from := len(chunks)
		chunks = append(chunks, 0) // form 0, without compression
		for _, frame := range [][]byte{lengths, v.values} {
			chunks = append(binary.AppendUvarint(chunks, uint64(len(frame))), 0)
			chunks = append(chunks, frame...)
		}
		h.Columns = len(chunks) - from
	}
	p.chunks = chunks
}

// TestTwoBuilds archive the same topic, and store the same records in other bytes. Each range and the tail has the object of the
// build that came first, and both builds name it.
func TestTwoBuilds(t *testing.T) {
	p := newTopic(t, 7).grow(540)
	for _, plainFirst := range []bool{false, true} {
		s := newMemory()
		var builds [2]*Writer
		for i := range builds {
			w, err := NewWriter(t.Context(), testConfig(t, s))
			if err != nil {
				t.Fatal(err)
			}
			builds[i] = w
		}
		const plain = 1
		order := []int{0, plain}
		if plainFirst {
			order = []int{plain, 0}
		}
		for _, r := range p.records {
			for _, i := range order {
				w := builds[i]
				if i == plain && w.current.Records == w.archive.cfg.rangeSize()-1 {
					w.storePlain(t)
				}
				if err := w.Add(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			if builds[0].current.Records == 0 {
				slices.Reverse(order) // the other one seals the next range
			}
		}
		builds[plain].storePlain(t)
		for _, i := range order {
			if err := builds[i].Tail(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		sealed := sound(t, testConfig(t, s)).Sealed()
		for _, w := range builds {
			if !slices.Equal(w.archive.Sealed(), sealed) || w.archive.Tail().Object != builds[0].archive.Tail().Object {
				t.Errorf("the builds have sealed %+v and %+v", w.archive.Sealed(), sealed)
			}
		}
		if small, large := sealed[0].Bytes, sealed[1].Bytes; len(sealed) != 4 || (large > 3*small) == plainFirst || (small > 3*large) != plainFirst {
			t.Errorf("%d ranges; the first two have objects of %d and %d bytes", len(sealed), small, large)
		}
		checkEqual(t, read(t, testConfig(t, s), 0, math.MaxInt64), p.records)
	}
}

// TestAnObjectOfAnotherBuild has no manifest, because its writer has crashed. The writer of this build names it as it is.
func TestAnObjectOfAnotherBuild(t *testing.T) {
	p := newTopic(t, 7).grow(140)
	s := newMemory()
	s.fails = 2 // the manifest
	w, err := NewWriter(t.Context(), testConfig(t, s))
	for _, r := range p.records {
		if err == nil && w.current.Records == w.archive.cfg.rangeSize()-1 {
			w.storePlain(t)
		}
		if err == nil {
			err = w.Add(t.Context(), r)
		}
	}
	if !errors.Is(err, errCrash) || len(s.blobs) != 1 {
		t.Fatal(err, len(s.blobs))
	}
	s.fails = 0
	if err := p.archive(t.Context(), testConfig(t, s)); err != nil {
		t.Fatal(err)
	}
	if size := sound(t, testConfig(t, s)).Sealed()[0].Bytes; size < 40_000 {
		t.Errorf("the object has %d bytes", size)
	}
	checkEqual(t, read(t, testConfig(t, s), 0, math.MaxInt64), p.records)
}

func lastOf(t *testing.T, cfg Config) int64 {
	a, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := a.last()
	return m.LastOffset
}

// TestAnotherHistory refuses to go on with an archive whose topic has other records now.
func TestAnotherHistory(t *testing.T) {
	ctx := t.Context()
	s := newMemory()
	p, q := newTopic(t, 8).grow(150), newTopic(t, 8).grow(100)
	q.valid(q.value(`{"forked":1}`))
	q.grow(280)
	first, err := NewWriter(ctx, testConfig(t, s)) // before the other history was archived
	if err != nil {
		t.Fatal(err)
	}
	if err := p.archive(ctx, testConfig(t, s)); err != nil {
		t.Fatal(err)
	}
	for _, r := range q.records {
		if err = first.Add(ctx, r); err != nil {
			break
		}
	}
	var wrong *Error
	if !errors.As(err, &wrong) || wrong.Damage != Forked {
		t.Errorf("a writer of another history: %v", err)
	}
}

// TestDamage changes each blob of an archive in many ways: opening or verifying it names the blob.
func TestDamage(t *testing.T) {
	ctx := t.Context()
	p := newTopic(t, 9).grow(300)
	s := newMemory()
	if err := p.archive(ctx, testConfig(t, s)); err != nil {
		t.Fatal(err)
	}
	check := func(blobs map[string][]byte) error {
		a, err := Open(ctx, testConfig(t, &memory{blobs: blobs}))
		if err == nil {
			_, err = a.Verify(ctx, nil)
		}
		return err
	}
	keys := slices.Sorted(maps.Keys(s.blobs))
	if len(keys) != 6 {
		t.Fatal(keys)
	}
	expect := func(what, key string, change func(map[string][]byte), damages ...Damage) {
		t.Helper()
		blobs := maps.Clone(s.blobs)
		change(blobs)
		err := check(blobs)
		var wrong *Error
		if !errors.As(err, &wrong) || key != "" && wrong.Key != key || len(damages) > 0 && !slices.Contains(damages, wrong.Damage) {
			t.Fatalf("%s %s: %v", what, key, err)
		}
	}
	for _, key := range keys {
		whole := s.blobs[key]
		for i := 0; i < len(whole); i += 1 + len(whole)/16 {
			expect("flipped", key, func(b map[string][]byte) {
				flipped := slices.Clone(whole)
				flipped[i] ^= 1 << (i % 8)
				b[key] = flipped
			})
			expect("cut", key, func(b map[string][]byte) { b[key] = whole[:i] }, Cut, Damaged)
		}
		expect("longer", key, func(b map[string][]byte) { b[key] = append(slices.Clone(whole), 0) })
		for _, other := range keys {
			if other != key {
				expect("swapped", "", func(b map[string][]byte) { b[key], b[other] = b[other], b[key] })
				expect("replaced by "+other, key, func(b map[string][]byte) { b[key] = b[other] })
			}
		}
	}
	manifest, object := testConfig(t, s).folderOf(keys, "manifest-"), testConfig(t, s).folderOf(keys, "range-")
	expect("missing", manifest[0], func(b map[string][]byte) { delete(b, manifest[0]) }, Missing)
	expect("missing", object[1], func(b map[string][]byte) { delete(b, object[1]) }, Missing)
	expect("of another version", manifest[1], func(b map[string][]byte) {
		b[manifest[1]] = bytes.Replace(b[manifest[1]], []byte("manifest 1"), []byte("manifest 2"), 1)
	}, Version)
	other := newMemory()
	if err := newTopic(t, 10).grow(300).archive(ctx, testConfig(t, other)); err != nil {
		t.Fatal(err)
	}
	expect("foreign", manifest[1], func(b map[string][]byte) { b[manifest[1]] = other.blobs[manifest[1]] }, Foreign)
}

// folderOf returns the keys of one kind.
func (c Config) folderOf(keys []string, kind string) (of []string) {
	for _, k := range keys {
		if strings.HasPrefix(k, c.folder()+kind) {
			of = append(of, k)
		}
	}
	return of
}

// counting is a bucket that counts the manifests, and the objects, of full ranges that are read.
type counting struct {
	*memory
	reads, objects int
}

// Read implements Store.
func (c *counting) Read(ctx context.Context, key string, limit int64) ([]byte, error) {
	if strings.Contains(key, "/"+manifestName) {
		c.reads++
	}
	if strings.Contains(key, "/range-") {
		c.objects++
	}
	return c.memory.Read(ctx, key, limit)
}

// TestARangeReadsItsObject, and not that of the range before.
func TestARangeReadsItsObject(t *testing.T) {
	c := &counting{memory: newMemory()}
	cfg := testConfig(t, c)
	if err := newTopic(t, 12).grow(600).archive(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	size := cfg.rangeSize()
	for n := range int64(3) {
		c.objects = 0
		if all := read(t, cfg, n*size, (n+1)*size); int64(len(all)) < size || c.objects != 1 {
			t.Errorf("range %d: %d records of %d objects", n, len(all), c.objects)
		}
	}
}

// TestManifestsAreReadOnce, unless the bucket lists another one in the place of one that was read, or none.
func TestManifestsAreReadOnce(t *testing.T) {
	p, c := newTopic(t, 11).grow(300), &counting{memory: newMemory()}
	cfg := testConfig(t, c)
	opens := func(ranges, reads int) {
		t.Helper()
		c.reads = 0
		if a, err := Open(t.Context(), cfg); err != nil || len(a.Sealed()) != ranges || c.reads != reads {
			t.Fatalf("%v: %d manifests were read, not %d", err, c.reads, reads)
		}
	}
	grows := func(n int64) {
		t.Helper()
		if err := p.grow(n).archive(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	grows(300)
	opens(2, 2)
	opens(2, 0)
	grows(600)
	opens(4, 2)
	opens(4, 0)
	key := cfg.manifestKey(1)
	whole := c.blobs[key]
	c.blobs[key], c.times[key] = whole[:len(whole)-1], time.Unix(1, 0)
	var wrong *Error
	if _, err := Open(t.Context(), cfg); !errors.As(err, &wrong) || wrong.Key != key {
		t.Errorf("a manifest that was replaced: %v", err)
	}
	delete(c.blobs, key)
	if _, err := Open(t.Context(), cfg); !errors.As(err, &wrong) || wrong.Key != key || wrong.Damage != Missing {
		t.Errorf("a manifest that is missing: %v", err)
	}
	c.blobs[key] = whole
	opens(4, 3)
}

// TestTornWrites: a writer goes on after what a full disk or a power cut left of the last object or manifest. Readers name the manifest.
func TestTornWrites(t *testing.T) {
	ctx := t.Context()
	p := newTopic(t, 44).grow(300)
	whole := newMemory()
	if err := p.archive(ctx, testConfig(t, whole)); err != nil {
		t.Fatal(err)
	}
	want := testConfig(t, whole)
	manifest, object, tail := want.manifestKey(1), want.folderOf(whole.keys(), rangeName+"-")[1], want.folderOf(whole.keys(), tailName+"-")[0]
	for _, kept := range []int{0, 200} {
		for _, torn := range []string{manifest, object, tail} {
			s := newMemory()
			cfg := testConfig(t, s)
			part := *p
			part.records = p.records[:slices.IndexFunc(p.records, func(r *kgo.Record) bool { return r.Offset > lastOf(t, want) })]
			if torn == tail {
				part.records = p.records
			}
			if err := part.archive(ctx, cfg); err != nil {
				t.Fatal(err)
			}
			s.blobs[torn] = s.blobs[torn][:kept]
			if torn == manifest {
				var wrong *Error
				if _, err := Open(ctx, cfg); !errors.As(err, &wrong) || wrong.Key != manifest || wrong.Damage != Cut {
					t.Errorf("a reader: %v", err)
				}
			} else {
				delete(s.blobs, cfg.tailKey())
			}
			if torn == object {
				delete(s.blobs, manifest)
			}
			if err := p.archive(ctx, cfg); err != nil {
				t.Fatalf("%d bytes of %s: %v", kept, torn, err)
			}
			sound(t, cfg)
			checkEqual(t, read(t, cfg, 0, math.MaxInt64), p.records)
		}
	}
}

// TestALargeRecord archives a record that is larger than a topic takes. A client may have sent it in a compressed batch. It is the last
// one of its chunk, whatever its size.
func TestALargeRecord(t *testing.T) {
	p, s := newTopic(t, 60).grow(20), newMemory()
	p.append(&kgo.Record{Value: bytes.Repeat([]byte("large "), 6<<20), Timestamp: time.UnixMilli(1)})
	p.grow(30)
	cfg := testConfig(t, s)
	cfg.sizes.chunkBytes = 0 // that of the form
	if err := p.archive(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	checkEqual(t, read(t, cfg, 0, math.MaxInt64), p.records)
}
