package pack_test

import (
	"errors"
	"math"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/pack"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	ints := []int64{0, 1, -1, 63, -64, 64, 1 << 40, -1 << 40, math.MaxInt64, math.MinInt64}
	uints := []uint64{0, 1, 127, 128, math.MaxUint64}
	words := []string{"alpha", "", "beta", "alpha", "", "beta"}
	var w pack.Writer
	for _, n := range ints {
		w.Int(n)
	}
	for _, n := range uints {
		w.Uint(n)
	}
	for _, s := range words {
		w.Word(s)
	}
	w.String("text")
	w.Raw([]byte{1, 2, 3})
	w.Bool(true)
	w.Bool(false)
	w.Byte(7)
	w.Len(2)
	w.Int(-5)
	w.Raw([]byte{8, 9})
	read := func(b []byte) *pack.Reader {
		r := pack.NewReader(b)
		for _, n := range ints {
			if got := r.Int(); got != n && r.Err() == nil {
				t.Errorf("%d instead of %d", got, n)
			}
		}
		for _, n := range uints {
			if got := r.Uint(); got != n && r.Err() == nil {
				t.Errorf("%d instead of %d", got, n)
			}
		}
		for _, s := range words {
			if got := r.Word(); got != s && r.Err() == nil {
				t.Errorf("%q instead of %q", got, s)
			}
		}
		text, raw := r.String(), make([]byte, 3)
		r.Raw(raw)
		yes, no, seven := r.Bool(), r.Bool(), r.Byte()
		n := r.Len(1)
		small := r.Small()
		last := make([]byte, n)
		r.Raw(last)
		if r.Err() == nil && (text != "text" || raw[2] != 3 || !yes || no || seven != 7 || n != 2 || small != -5 || last[1] != 9) {
			t.Errorf("%q %v %t %t %d %d %d %v", text, raw, yes, no, seven, n, small, last)
		}
		return r
	}
	if err := read(w.Bytes).Done(); err != nil {
		t.Error(err)
	}
	for n := range w.Bytes {
		if err := read(w.Bytes[:n]).Done(); !errors.Is(err, pack.ErrForm) {
			t.Errorf("cut off after %d of %d bytes: %v", n, len(w.Bytes), err)
		}
	}
	if err := read(append(w.Bytes, 0)).Done(); !errors.Is(err, pack.ErrForm) {
		t.Errorf("with a byte too much: %v", err)
	}
}

func TestWhatCantBeFails(t *testing.T) {
	for name, read := range map[string]func(*pack.Reader){
		"a count beyond what is left": func(r *pack.Reader) { r.Len(2) },
		"a word that was not":         func(r *pack.Reader) { r.Word() },
		"a boolean of neither kind":   func(r *pack.Reader) { r.Bool() },
		"an index beyond the end":     func(r *pack.Reader) { r.Index(3) },
		"an index of nothing":         func(r *pack.Reader) { r.Index(0) },
	} {
		r := pack.NewReader([]byte{3, 0, 0})
		if read(r); r.Err() == nil {
			t.Errorf("%s was read", name)
		}
		if r.Uint() != 0 || r.String() != "" || r.Word() != "" || r.Byte() != 0 {
			t.Errorf("after %s something is read", name)
		}
	}
	r := pack.NewReader([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	if r.Small(); r.Err() == nil {
		t.Error("a number of more than 64 bits was read")
	}
}
