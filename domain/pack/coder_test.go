package pack_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
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
	pack.Slice(c, &f.Numbers, 1, func(n *int64, c *pack.Coder) { pack.Int(c, n) })
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
	pack.Slice(c, &f.Words, 1, func(w *string, c *pack.Coder) { pack.Word(c, w) })
	pack.Bytes(c, &f.Bytes)
	pack.List(c, &f.Items, 1, func(i *item) {
		i.visit(c)
		table.Add(c, i)
	})
	if c.Reading() {
		f.Ordered = make(map[string]*item)
	}
	pack.Ordered(c, &f.Order, f.Ordered, 1, func(i *item) string { i.visit(c); return i.Name })
	pack.Map(c, &f.Map, strings.Compare, 2, func(k string, i item) (string, item) {
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
		"a list longer than what is left": {[]byte{3, 0, 0}, func(c *pack.Coder) { c.Len(0, 2) }},
		"a word that was not written":     {[]byte{3}, func(c *pack.Coder) { pack.Word(c, new(string)) }},
		"a boolean of 2":                  {[]byte{2}, func(c *pack.Coder) { c.Bool(new(bool)) }},
		"an index beyond the end":         {[]byte{3}, func(c *pack.Coder) { c.Index(0, 3) }},
		"an index of nothing":             {[]byte{0}, func(c *pack.Coder) { c.Index(0, 0) }},
		"a reference to nothing":          {[]byte{0}, func(c *pack.Coder) { p := new(item); pack.Ref(c, &p, &table) }},
		"more than 64 bits":               {full, func(c *pack.Coder) { pack.Int(c, new(int64)) }},
		"more than 32 bits":               {full[:9], func(c *pack.Coder) { pack.Small(c, new(int)) }},
		"a failed check":                  {nil, func(c *pack.Coder) { c.Check(false) }},
		"a name that comes twice": {[]byte{2, 1, 'a', 1, 'a'}, func(c *pack.Coder) {
			pack.Ordered(c, new([]string), make(map[string]*item), 1, func(i *item) string { i.visit(c); return i.Name })
		}},
		"a key that comes twice": {[]byte{2, 1, 'a', 1, 'a'}, func(c *pack.Coder) {
			pack.Map(c, &twice, strings.Compare, 1, func(k string, n int) (string, int) { pack.String(c, &k); return k, n })
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
		pack.Slice(c, &lists, 1, func(l *[]int64, c *pack.Coder) {
			pack.Slice(c, l, 1, func(n *int64, c *pack.Coder) { visited++; pack.Int(c, n) })
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
