package codec

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// FuzzString holds the writer and the reader of strings against the generic ones. (Whole events are held against them in
// package trading.)
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "abc", "\"", "\\", "\x00", "\x7f", "\u2028", "<&>", "é", "\xff", "a\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := json.Marshal(s)
		w := Writer{Bytes: []byte("x")}
		w.String(s)
		if (w.Err == nil) != (err == nil) || err == nil && string(w.Bytes) != "x"+string(want) {
			t.Fatalf("%q is written as %s (%v) and not as %s (%v)", s, w.Bytes, w.Err, want, err)
		}
		r := NewReader(want)
		if got := r.String(); r.Done() && got != s {
			t.Fatalf("%s is read as %q", want, got)
		}
		var generic string
		err = json.Unmarshal([]byte(s), &generic)
		r = NewReader([]byte(s))
		if got := r.String(); r.Done() && (err != nil || got != generic) {
			t.Fatalf("%s is read as %q, and not as %q (%v)", s, got, generic, err)
		}
	})
}

func TestFailureStays(t *testing.T) {
	for _, text := range []string{``, `{`, `{"a":1}`, `{"a":"1"`, `{"a":"1"}x`, `{"a":"x"}`, `{"a":"\u0031"}`, `{"a":"1`, `{"b":"1"}`} {
		var d fixed.Decimal
		r := NewReader([]byte(text))
		r.Raw(`{"a":`)
		ReadText(&r, &d)
		r.Raw(`}`)
		if r.Done() {
			t.Errorf("%s is read", text)
		}
	}
	var d fixed.Decimal
	r := NewReader([]byte(`{"a":"1.50","b":false}`))
	r.Raw(`{"a":`)
	ReadText(&r, &d)
	r.Raw(`,"b":`)
	if b := r.Bool(); b || r.Failed() || r.Done() {
		t.Error("not read to the brace")
	}
	r.Raw(`}`)
	if !r.Done() || d != (fixed.Decimal{Coef: 150, Scale: 2}) {
		t.Errorf("read %v", d)
	}
}
