package pack_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/pack"
)

// form has a field of every kind that a Coder visits.
type form struct {
	Numbers []int64
	Near    [3]int64
	Small   int
	Byte    uint8
	Uint    uint64
	Bool    bool
	Raw     [3]byte
	Text    string
	Words   []string
	Bytes   []byte
	Items   []*item
	Order   []string
	Ordered map[string]*item
	Map     map[string]item
	None    *item
	Some    *item
	Chosen  *item
	Last    *item
	Nobody  *item
	Index   int
}

type item struct{ Name string }

func (i *item) visit(c *pack.Coder) { pack.String(c, &i.Name) }

func (f *form) visit(c *pack.Coder) {
	var table pack.Table[item]
	pack.Slice(c, &f.Numbers, func(n *int64, c *pack.Coder) { pack.Int(c, n) })
	for i := range f.Near {
		near := int64(0)
		if i > 0 {
			near = f.Near[i-1]
		}
		pack.Delta(c, &f.Near[i], near)
	}
	pack.Small(c, &f.Small)
	pack.Byte(c, &f.Byte)
	c.Uint(&f.Uint)
	c.Bool(&f.Bool)
	c.Raw(f.Raw[:])
	pack.String(c, &f.Text)
	pack.Slice(c, &f.Words, func(w *string, c *pack.Coder) { pack.Word(c, w) })
	pack.Bytes(c, &f.Bytes)
	pack.List(c, &f.Items, func(i *item) {
		i.visit(c)
		table.Add(c, i)
	})
	if c.Reading() {
		f.Ordered = make(map[string]*item)
	}
	pack.Ordered(c, &f.Order, f.Ordered, func(i *item) string { i.visit(c); return i.Name })
	pack.Map(c, &f.Map, strings.Compare, func(k string, i item) (string, item) {
		pack.Word(c, &k)
		i.visit(c)
		return k, i
	})
	pack.Optional(c, &f.None, (*item).visit)
	pack.Optional(c, &f.Some, (*item).visit)
	pack.Ref(c, &f.Chosen, &table)
	pack.OptionalRef(c, &f.Last, &table)
	pack.OptionalRef(c, &f.Nobody, &table)
	f.Index = c.Index(f.Index, 4)
}

func example() *form {
	a, b := &item{"a"}, &item{"b"}
	return &form{
		Numbers: []int64{0, 1, -1, 63, -64, 64, 1 << 40, -1 << 40, math.MaxInt64, math.MinInt64},
		Near:    [3]int64{1 << 40, 1<<40 + 1, math.MinInt64}, Small: math.MinInt32, Byte: 0xff, Uint: math.MaxUint64, Bool: true,
		Raw: [3]byte{1, 2, 3}, Text: "text", Words: []string{"alpha", "", "beta", "alpha", "", "beta"}, Bytes: []byte{8},
		Items: []*item{a, b}, Order: []string{"z", "y"}, Ordered: map[string]*item{"z": {"z"}, "y": {"y"}},
		Map: map[string]item{"x": {"1"}, "y": {"2"}}, Some: &item{"some"}, Chosen: a, Last: b, Index: 3,
	}
}

func TestAFormIsReadAsItWasWritten(t *testing.T) {
	was, now := example(), new(form)
	saved := pack.Append([]byte("before"), was.visit)
	if !bytes.HasPrefix(saved, []byte("before")) {
		t.Fatalf("it begins with %x", saved)
	}
	saved = saved[len("before"):]
	if err := pack.Read(saved, now.visit); err != nil || !reflect.DeepEqual(was, now) {
		t.Errorf("%+v was read as %+v (%v)", was, now, err)
	}
	if now.Chosen != now.Items[0] || now.Last != now.Items[1] {
		t.Error("what refers to an item refers to another one")
	}
	for n := range saved {
		if err := pack.Read(saved[:n], new(form).visit); !errors.Is(err, pack.ErrForm) {
			t.Errorf("cut off after %d of %d bytes: %v", n, len(saved), err)
		}
	}
	if err := pack.Read(append(saved, 0), new(form).visit); !errors.Is(err, pack.ErrForm) {
		t.Errorf("with a byte too many: %v", err)
	}
}

func TestInvalidValuesFail(t *testing.T) {
	full := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	var table pack.Table[item]
	var twice map[string]int
	for name, test := range map[string]struct {
		bytes []byte
		visit func(*pack.Coder)
	}{
		"a list longer than what is left": {[]byte{3, 0, 0}, func(c *pack.Coder) { c.Len(0) }},
		"a word that was not written":     {[]byte{3}, func(c *pack.Coder) { pack.Word(c, new(string)) }},
		"a boolean of 2":                  {[]byte{2}, func(c *pack.Coder) { c.Bool(new(bool)) }},
		"an index beyond the end":         {[]byte{3}, func(c *pack.Coder) { c.Index(0, 3) }},
		"an index of nothing":             {[]byte{0}, func(c *pack.Coder) { c.Index(0, 0) }},
		"a reference to nothing":          {[]byte{0}, func(c *pack.Coder) { p := new(item); pack.Ref(c, &p, &table) }},
		"more than 64 bits":               {full, func(c *pack.Coder) { pack.Int(c, new(int64)) }},
		"more than 32 bits":               {full[:9], func(c *pack.Coder) { pack.Small(c, new(int)) }},
		"a failed check":                  {nil, func(c *pack.Coder) { c.Check(false) }},
		"a name that comes twice": {[]byte{2, 1, 'a', 1, 'a'}, func(c *pack.Coder) {
			pack.Ordered(c, new([]string), make(map[string]*item), func(i *item) string { i.visit(c); return i.Name })
		}},
		"a key that comes twice": {[]byte{2, 1, 'a', 1, 'a'}, func(c *pack.Coder) {
			pack.Map(c, &twice, strings.Compare, func(k string, n int) (string, int) { pack.String(c, &k); return k, n })
		}},
	} {
		err := pack.Read(test.bytes, func(c *pack.Coder) {
			test.visit(c)
			if c.Err() == nil {
				t.Errorf("%s was read", name)
			}
		})
		if !errors.Is(err, pack.ErrForm) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheSizeOfALongListIsEstimated checks that Size visits few elements, and is right where they are alike.
func TestTheSizeOfALongListIsEstimated(t *testing.T) {
	lists, visited := make([][]int64, 1000), 0
	for i := range lists {
		lists[i] = make([]int64, 500)
	}
	visit := func(c *pack.Coder) {
		pack.Slice(c, &lists, func(l *[]int64, c *pack.Coder) {
			pack.Slice(c, l, func(n *int64, c *pack.Coder) { visited++; pack.Int(c, n) })
		})
	}
	size, looked := pack.Size(visit), visited
	if saved := len(pack.Append(nil, visit)); size < saved || size > saved*9/8 {
		t.Errorf("%d bytes were estimated as %d", saved, size)
	}
	if looked > 5000 {
		t.Errorf("%d elements were visited", looked)
	}
}

// lists are a list of each kind, of n elements of one byte each.
func lists(n int) map[string]struct {
	bytes []byte
	visit func(*pack.Coder, func())
} {
	type list = struct {
		bytes []byte
		visit func(*pack.Coder, func())
	}
	head := binary.AppendUvarint(nil, uint64(n))
	zeros := append(slices.Clip(head), make([]byte, n)...)
	keys := slices.Clone(zeros) // keys must differ
	for i := range n {
		keys[len(head)+i] = byte(i % 0x80)
	}
	return map[string]list{
		"Slice": {zeros, func(c *pack.Coder, each func()) {
			pack.Slice(c, new([]int64), func(n *int64, c *pack.Coder) { each(); pack.Int(c, n) })
		}},
		"List": {zeros, func(c *pack.Coder, each func()) {
			pack.List(c, new([]*int64), func(n *int64) { each(); pack.Int(c, n) })
		}},
		"Ordered": {keys, func(c *pack.Coder, each func()) {
			pack.Ordered(c, new([]int64), make(map[int64]*int64), func(n *int64) int64 { each(); pack.Int(c, n); return *n })
		}},
		"Map": {keys, func(c *pack.Coder, each func()) {
			pack.Map(c, new(map[int64]int64), cmp.Compare[int64], func(k, v int64) (int64, int64) { each(); pack.Int(c, &k); return k, v })
		}},
		"Bytes": {zeros, func(c *pack.Coder, each func()) {
			b := []byte(nil)
			if pack.Bytes(c, &b); len(b) > 0 {
				each()
			}
		}},
	}
}

// TestElementsOfOneByteAreRead reads lists the elements of which are as short as an element can be.
func TestElementsOfOneByteAreRead(t *testing.T) {
	for name, list := range lists(100) {
		n := 0
		if err := pack.Read(list.bytes, func(c *pack.Coder) { list.visit(c, func() { n++ }) }); err != nil || n == 0 {
			t.Errorf("%s of 100 elements: %d were read (%v)", name, n, err)
		}
	}
}

// TestADamagedLengthAllocatesLittle reads lists of a million elements, the first of which is damaged. What is allocated
// is in proportion to the bytes, not to the size of the elements that the list claims to have.
func TestADamagedLengthAllocatesLittle(t *testing.T) {
	const n = 1 << 20
	for name, list := range lists(n) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := pack.Read(list.bytes, func(c *pack.Coder) {
			list.visit(c, func() { c.Check(false) })
		})
		runtime.ReadMemStats(&after)
		if !errors.Is(err, pack.ErrForm) {
			t.Errorf("%s: %v", name, err)
		}
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 6*n {
			t.Errorf("%s: %d bytes were allocated for %d", name, bytes, n)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(pack.Append(nil, example().visit))
	f.Fuzz(func(t *testing.T, saved []byte) {
		read, again := new(form), new(form)
		if pack.Read(saved, read.visit) != nil {
			return
		}
		if err := pack.Read(pack.Append(nil, read.visit), again.visit); err != nil || !reflect.DeepEqual(read, again) {
			t.Errorf("%+v was read again as %+v (%v)", read, again, err)
		}
	})
}
