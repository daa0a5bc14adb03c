package columns

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestMembersOfObjects compares the members of objects with those that each row sets one by one.
func TestMembersOfObjects(t *testing.T) {
	const objects, names, pieces = 3, 6, maxChanges + 4
	rapid.Check(t, func(r *rapid.T) {
		m := newModel(journal)
		for n := range pieces {
			p := &piece{number: uint32(n + 2)}
			for range rapid.IntRange(1, 4).Draw(r, "holes") {
				m.addColumn(p, rapid.IntRange(0, names-1).Draw(r, "name"), false, nil)
			}
			p.index()
			m.pieces = append(m.pieces, p)
		}
		for n := range uint32(objects) {
			m.objects.lookup(nil, []byte{byte(n)}, key{long: true})
		}
		var want [objects + 1][names]ref
		first := ref(1)
		for range rapid.IntRange(0, 40).Draw(r, "rows") {
			o, p := rapid.IntRange(1, objects).Draw(r, "object"), m.pieces[rapid.IntRange(2, pieces+1).Draw(r, "piece")]
			m.beginRow(first)
			m.changed(uint32(o), p, 0)
			for i, c := range p.columns {
				want[o][c.name] = first + ref(i)
			}
			first += ref(len(p.columns))
			for o := range want {
				for name, r0 := range want[o] {
					if got := m.member(uint32(o), name); got != r0 {
						r.Fatalf("member %d of object %d is value %d, want %d", name, o, got, r0)
					}
				}
			}
		}
	})
}

// TestKeysOfObjects compares the objects of texts, alone and joined, with the keys that README.md of streams defines.
func TestKeysOfObjects(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := newModel(journal)
		keys := make(map[string]uint32)
		for range rapid.IntRange(1, 60).Draw(r, "rows") {
			p, key, at := &piece{}, "", ref(len(m.values))
			n := rapid.IntRange(1, 4).Draw(r, "texts")
			for h := range n {
				text := rapid.StringOfN(rapid.SampledFrom([]rune("ab\x00")), 0, 3, -1).Draw(r, "text")
				from := len(m.buf)
				m.buf = append(m.buf, text...)
				m.values = append(m.values, value{span: spanOf(from, len(m.buf))})
				p.joined = append(p.joined, h)
				key += text + "\x00"
			}
			alone := rapid.Bool().Draw(r, "alone")
			if alone {
				p.anchors, p.joined, key = []int{0}, nil, string(m.values[at].of(m.buf))
			}
			m.beginRow(at)
			got := m.object(p, 0, n)
			if want, known := keys[key]; known && got != want || got == 0 {
				r.Fatalf("key %q has the objects %d and %d", key, want, got)
			}
			keys[key] = got
		}
		var all []uint32
		for _, o := range keys {
			all = append(all, o)
		}
		if slices.Sort(all); len(slices.Compact(all)) != len(keys) {
			r.Fatal("two keys have one object")
		}
	})
}
