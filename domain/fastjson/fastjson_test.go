package fastjson_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// FuzzString holds the writer and the reader of strings against the generic ones. (Whole events are held against them in
// package trading.)
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "abc", "\"", "\\", "\x00", "\x7f", "\u2028", "<&>", "é", "\xff", "a\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := json.Marshal(s)
		w := fastjson.Writer{Bytes: []byte("x")}
		w.String(s)
		if (w.Err == nil) != (err == nil) || err == nil && string(w.Bytes) != "x"+string(want) {
			t.Fatalf("%q is written as %s (%v) and not as %s (%v)", s, w.Bytes, w.Err, want, err)
		}
		r := fastjson.NewReader(want)
		if got := r.String(); r.Done() && got != s {
			t.Fatalf("%s is read as %q", want, got)
		}
		var generic string
		err = json.Unmarshal([]byte(s), &generic)
		r = fastjson.NewReader([]byte(s))
		if got := r.String(); r.Done() && (err != nil || got != generic) {
			t.Fatalf("%s is read as %q, and not as %q (%v)", s, got, generic, err)
		}
	})
}

// readDecimal reads a quoted decimal.
func readDecimal(r *fastjson.Reader, to *fixed.Decimal) {
	if to.UnmarshalText(r.Quoted()) != nil {
		r.Fail()
	}
}

func TestFailureStays(t *testing.T) {
	for _, text := range []string{``, `{`, `{"a":1}`, `{"a":"1"`, `{"a":"1"}x`, `{"a":"x"}`, `{"a":"\u0031"}`, `{"a":"1`, `{"b":"1"}`} {
		var d fixed.Decimal
		r := fastjson.NewReader([]byte(text))
		r.Raw(`{"a":`)
		readDecimal(&r, &d)
		r.Raw(`}`)
		if r.Done() {
			t.Errorf("%s is read", text)
		}
	}
	var d fixed.Decimal
	r := fastjson.NewReader([]byte(`{"a":"1.50","b":false}`))
	r.Raw(`{"a":`)
	readDecimal(&r, &d)
	r.Raw(`,"b":`)
	if b := r.Bool(); b || r.Failed() || r.Done() {
		t.Error("not read to the brace")
	}
	r.Raw(`}`)
	if !r.Done() || d != (fixed.Decimal{Coef: 150, Scale: 2}) {
		t.Errorf("read %v", d)
	}
}

// FuzzNumber holds what is read in quotes against what reads itself: whatever is read must be the same, and what is not
// read must be refused, or be too long or written in another way.
func FuzzNumber(f *testing.F) {
	for _, s := range []string{"", "0", "-0", "1", "-1", "0.10", "-0.5", ".5", "5.", "00", "01", "1.2.3", "123456789012345678", "1234567890123456789",
		"-999999999999999999", "0.000000000000000001", "1e5", "+1", "1.123456789", "2026-03-31T08:00:00.000001Z", "01020304-0506-0708-090a-0b0c0d0e0f10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		check := func(what string, read func(*fastjson.Reader), same func() bool, text func() error) {
			r := fastjson.NewReader([]byte(`"` + s + `"`))
			read(&r)
			if done, err := r.Done(), text(); done && (err != nil || !same()) {
				t.Fatalf("%q is read as another %s (%v)", s, what, err)
			} else if !done && err == nil && len(s) < 18 {
				t.Fatalf("%q is not read as a %s", s, what)
			}
		}
		var d, wantD fixed.Decimal
		check("decimal", d.ReadJSON, func() bool { return d == wantD }, func() error { return wantD.UnmarshalText([]byte(s)) })
		var m, wantM fixed.Money
		check("amount of money", m.ReadJSON, func() bool { return m == wantM }, func() error { return wantM.UnmarshalText([]byte(s)) })
		var at, wantAt scalar.Time
		check("time", at.ReadJSON, func() bool { return at == wantAt }, func() error { return wantAt.UnmarshalText([]byte(s)) })
		var id, wantID scalar.ID
		check("id", id.ReadJSON, func() bool { return id == wantID }, func() error { return wantID.UnmarshalText([]byte(s)) })
	})
}

func TestATimeIsReadOnce(t *testing.T) {
	const one, two = `"2026-03-31T08:00:00.000001Z"`, `"2026-03-31T08:00:00.000002Z"`
	nothing := `"` + string(make([]byte, 27)) + `"`
	var a, b, c scalar.Time
	r := fastjson.NewReader([]byte(one + one + two + nothing))
	for _, to := range []*scalar.Time{&a, &b, &c} {
		to.ReadJSON(&r)
	}
	if r.Failed() || a != b || c != a+1 {
		t.Errorf("%v %v %v", a, b, c)
	}
	if a.ReadJSON(&r); !r.Failed() {
		t.Error("27 zero bytes are a time")
	}
	r = fastjson.NewReader([]byte(nothing))
	if a.ReadJSON(&r); !r.Failed() {
		t.Error("27 zero bytes are a time, at first")
	}
}

func TestWords(t *testing.T) {
	var words fastjson.Words
	var r fastjson.Reader
	for i := range 20_000 {
		for _, s := range []string{"", "a", fmt.Sprint("customer ", i%7), fmt.Sprint(i), strings.Repeat("long", 20)} {
			text := []byte(`"` + s + `"`)
			r.Reset(text, &words)
			got := r.String()
			if clear(text); got != s || !r.Done() {
				t.Fatalf("%q is read as %q", s, got)
			}
		}
	}
}

// TestWordsAlike reads texts that differ in one byte, of each length, with the first and the last bytes alike or not.
func TestWordsAlike(t *testing.T) {
	var words fastjson.Words
	var r fastjson.Reader
	read := func(s string) {
		if r.Reset([]byte(`"`+s+`"`), &words); r.String() != s || !r.Done() {
			t.Fatalf("%q is read as another text", s)
		}
	}
	for length := range 70 {
		text := []byte(strings.Repeat("abcdefgh", 9)[:length])
		for at := range text {
			for range 2 {
				read(string(text))
				text[at]++
			}
			read(string(text[:at]))
			text[at] = ' '
			read(string(text))
			text[at] = "abcdefgh"[at%8]
		}
	}
	for n := range 200_000 {
		read(strings.Repeat("x", n%20) + fmt.Sprint(n%1000) + strings.Repeat("y", n%13))
	}
}

// TestPlain: Plain and Token read scalars between white space, and fail on all other values.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		" \t\r\n,\"ab\"": `"ab`, ",1.5e+3": "01.5e+3", ",true": "t", ",false": "f", ",null": "n", ", null": "n", ",\"a\\u0062\"": "", ",{}": "", ",": "", "": "", ",tru": "", ",\"a": "",
	} {
		r := fastjson.NewReader([]byte(in))
		got := ""
		if r.Token(",") {
			r.Space()
			if kind, text := r.Plain(); !r.Failed() {
				got = string(kind) + string(text)
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzValue compares the extent of a value, and the names of an object's members, with the generic decoder.
func FuzzValue(f *testing.F) {
	for _, s := range []string{`1`, `-1.5e3`, `"a"`, `"a\"b\\"`, `"1234567\""`, `{}`, `[]`, `{"a":[1,{"b":"}]"}],"c\"d":null}`, `[true,false,null]`, `"\u00e9é"`, `{"a"}`, `[`, `"`, ``, `{"":""}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := fastjson.NewReader([]byte(s + `,"next":1`))
		got := string(r.Value())
		text := jsontext.Value(s)
		if text.IsValid() && text.Compact() == nil && string(text) == s && (got != s || r.Failed()) {
			t.Fatalf("of %s the value is %q", s, got)
		}
		if got == s && !r.Failed() {
			if r.Raw(","); string(r.Name()) != "next" {
				t.Fatalf("after %s is no name", s)
			}
		}
	})
}
