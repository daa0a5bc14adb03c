package archive

import (
	"bytes"
	"testing"
)

// FuzzFacts parses damaged facts of a chunk: there is an error, or every record has a sequence and an offset.
func FuzzFacts(f *testing.F) {
	p := newTopic(f, 12).grow(20)
	p.odd()
	var entries []entry
	for i, r := range p.records {
		e := entry{kafka: r, sequence: int64(i), plain: i%3 > 0}
		if i%7 == 0 {
			e.sequence = -1
		}
		entries = append(entries, e)
	}
	next := int64(0)
	for i := range entries {
		if entries[i].sequence >= 0 {
			entries[i].sequence = next
			next++
		}
	}
	head := chunkHead{Records: len(entries), Offset: p.records[0].Offset}
	facts := appendFacts(nil, entries)
	if c, err := parseFacts(head, facts); err != nil || c.offsets[len(entries)-1] != entries[len(entries)-1].kafka.Offset {
		f.Fatal(err)
	}
	f.Add(facts)
	for i := range facts {
		damaged := bytes.Clone(facts)
		damaged[i] ^= 1 << (i % 8)
		f.Add(damaged)
		f.Add(facts[:i])
	}
	f.Fuzz(func(t *testing.T, facts []byte) {
		c, err := parseFacts(head, facts)
		if err != nil {
			return
		}
		if len(c.sequences) != head.Records || len(c.offsets) != head.Records || len(c.prefixes) != hashBytes*head.Records {
			t.Errorf("%d sequences, %d offsets", len(c.sequences), len(c.offsets))
		}
		for i, o := range c.offsets[1:] {
			if o <= c.offsets[i] {
				t.Errorf("offset %d comes after %d", o, c.offsets[i])
			}
		}
	})
}

// FuzzManifest parses damaged manifests. Only the bytes that a writer makes are accepted. Another process that fuzzes has another
// archive with the same keys, so its manifest is accepted too.
func FuzzManifest(f *testing.F) {
	s := newMemory()
	if err := newTopic(f, 13).grow(140).archive(f.Context(), testConfig(f, s)); err != nil {
		f.Fatal(err)
	}
	cfg := testConfig(f, s)
	key := cfg.manifestKey(0)
	whole := s.blobs[key]
	f.Add(whole)
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 1 << (i % 8)
		f.Add(damaged)
		f.Add(whole[:i])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseManifest(key, cfg.macKey(), manifestMagic, b)
		if err != nil {
			if bytes.Equal(b, whole) {
				t.Error(err)
			}
			return
		}
		if again, err := m.encode(cfg.macKey(), manifestMagic); err != nil || !bytes.Equal(b, again) {
			t.Errorf("%q is written as %q: %v", b, again, err)
		}
	})
}
