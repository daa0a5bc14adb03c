package input

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem/problemtest"
)

// readAll asks for one field of every kind.
func readAll(f *Form) {
	f.String("text", MaxLength(5))
	f.Decimal("price", form.Positive)
	f.OptionalDecimal("fee", form.MaxDecimals(2))
	f.OptionalEnum("side", "buy", "sell")
	f.OptionalBool("flag")
	f.OptionalInteger("count", 1, 10)
	f.OptionalLeverage("leverage", 13)
	f.OptionalTime("time")
	f.OptionalID("id")
	f.OptionalStrings("scopes", OneOf("a", "b"))
	f.OptionalObject("limit", func(f *Form) {
		f.Integer("burst", 1, 5)
	})
	f.OptionalObjects("tiers", 1, 2, func(_ int, f *Form) {
		f.Decimal("rate", form.NotNegative)
	})
}

func TestBodyFaults(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"good", `{"text":"x","price":"1.50"}`, ""},
		{"all good", `{"text":"x","price":"0.1","fee":"-2.25","side":"buy","flag":false,"count":10,"leverage":"13","time":"2024-02-29T00:00:00.000000Z","id":"0198c1e5-0000-7000-8000-000000000000","scopes":["a"],"limit":{"burst":5},"tiers":[{"rate":"0"}]}`, ""},
		{"null is absent where optional", `{"text":"x","price":"1","fee":null,"limit":null,"tiers":null,"count":null}`, ""},
		{"all at once", `{"price":1,"fee":"0.125","side":"BUY","flag":"true","count":11,"leverage":0,"time":"2024-02-30T00:00:00.000000Z","id":"x","scopes":["a","c",1],"limit":{"burst":0,"more":1},"tiers":[{"rate":"-1"},{}],"extra":1}`,
			"text REQUIRED, price WRONG_TYPE, fee TOO_MANY_DIGITS, side INVALID_VALUE, flag WRONG_TYPE, count OUT_OF_RANGE, leverage INVALID_VALUE, time INVALID_VALUE, id INVALID_VALUE, scopes[1] INVALID_VALUE, scopes[2] WRONG_TYPE, limit.burst OUT_OF_RANGE, tiers[0].rate OUT_OF_RANGE, tiers[1].rate REQUIRED, extra UNKNOWN_FIELD, limit.more UNKNOWN_FIELD"},
		{"required and null", `{"text":null,"price":null}`, "text NULL_NOT_ALLOWED, price NULL_NOT_ALLOWED"},
		{"duplicate", `{"text":"x","price":"1","text":"y"}`, "text DUPLICATE_FIELD"},
		{"duplicate by escape", `{"text":"x","price":"1","te\u0078t":"x"}`, "text DUPLICATE_FIELD"},
		{"duplicate inside", `{"text":"x","price":"1","limit":{"burst":1,"burst":2}}`, "limit.burst DUPLICATE_FIELD"},
		{"another case is another name", `{"Text":"x","price":"1"}`, "text REQUIRED, Text UNKNOWN_FIELD"},
		{"empty", ``, "MALFORMED_JSON"},
		{"blank", " \n", "MALFORMED_JSON"},
		{"cut", `{"text":"x"`, "MALFORMED_JSON"},
		{"comma at the end", `{"text":"x",}`, "MALFORMED_JSON"},
		{"comment", `{"text":"x"/*y*/}`, "MALFORMED_JSON"},
		{"single quotes", `{'text':'x'}`, "MALFORMED_JSON"},
		{"byte order mark", "\ufeff{}", "MALFORMED_JSON"},
		{"NaN", `{"text":"x","price":NaN}`, "MALFORMED_JSON"},
		{"leading zero", `{"text":"x","price":"1","count":01}`, "MALFORMED_JSON"},
		{"raw control character", "{\"text\":\"a\x01\"}", "MALFORMED_JSON"},
		{"trailing object", `{"text":"x","price":"1"}{}`, "TRAILING_DATA"},
		{"trailing word", `{"text":"x","price":"1"} x`, "TRAILING_DATA"},
		{"trailing brace", `{"text":"x","price":"1"}}`, "TRAILING_DATA"},
		{"an array", `[]`, "WRONG_TYPE"},
		{"a string", `"x"`, "WRONG_TYPE"},
		{"null", `null`, "WRONG_TYPE"},
		{"invalid UTF-8", "{\"text\":\"\xff\",\"price\":\"1\"}", "text INVALID_UTF8"},
		{"invalid UTF-8 in a name", "{\"text\":\"x\",\"price\":\"1\",\"\xff\":1}", "INVALID_UTF8, \ufffd UNKNOWN_FIELD"},
		{"half a surrogate pair", `{"text":"\ud800","price":"1"}`, "text LONE_SURROGATE"},
		{"the other half", `{"text":"\udc00","price":"1"}`, "text LONE_SURROGATE"},
		{"a whole surrogate pair", `{"text":"\ud83d\ude00","price":"1"}`, ""},
		{"escaped NUL", `{"text":"\u0000","price":"1"}`, "text CONTROL_CHARACTER"},
		{"newline", `{"text":"a\nb","price":"1"}`, "text CONTROL_CHARACTER"},
		{"delete", `{"text":"\u007f","price":"1"}`, "text CONTROL_CHARACTER"},
		{"C1 control", `{"text":"\u0085","price":"1"}`, "text CONTROL_CHARACTER"},
		{"empty text", `{"text":"","price":"1"}`, "text INVALID_VALUE"},
		{"long text", `{"text":"äöüäöü","price":"1"}`, "text TOO_LONG"},
		{"long enough", `{"text":"äöüäö","price":"1"}`, ""},
		{"exponent", `{"text":"x","price":"1e5"}`, "price INVALID_DECIMAL"},
		{"capital exponent", `{"text":"x","price":"1E5"}`, "price INVALID_DECIMAL"},
		{"plus", `{"text":"x","price":"+1"}`, "price INVALID_DECIMAL"},
		{"needless zero", `{"text":"x","price":"01"}`, "price INVALID_DECIMAL"},
		{"no whole part", `{"text":"x","price":".5"}`, "price INVALID_DECIMAL"},
		{"no fraction", `{"text":"x","price":"5."}`, "price INVALID_DECIMAL"},
		{"space", `{"text":"x","price":" 5"}`, "price INVALID_DECIMAL"},
		{"hexadecimal", `{"text":"x","price":"0x5"}`, "price INVALID_DECIMAL"},
		{"infinity", `{"text":"x","price":"Inf"}`, "price INVALID_DECIMAL"},
		{"thousands", `{"text":"x","price":"1,000"}`, "price INVALID_DECIMAL"},
		{"other digits", `{"text":"x","price":"١"}`, "price INVALID_DECIMAL"},
		{"zero with a sign", `{"text":"x","price":"1","fee":"-0.00"}`, "fee INVALID_DECIMAL"},
		{"too many digits", `{"text":"x","price":"1234567890123456789"}`, "price TOO_MANY_DIGITS"},
		{"far too many", `{"text":"x","price":"` + strings.Repeat("9", 1000) + `"}`, "price TOO_MANY_DIGITS"},
		{"zero price", `{"text":"x","price":"0.00"}`, "price OUT_OF_RANGE"},
		{"negative price", `{"text":"x","price":"-1"}`, "price OUT_OF_RANGE"},
		{"number for a decimal", `{"text":"x","price":1.5}`, "price WRONG_TYPE"},
		{"an integer with a point", `{"text":"x","price":"1","count":1.0}`, "count INVALID_VALUE"},
		{"an integer with an exponent", `{"text":"x","price":"1","count":1e0}`, "count INVALID_VALUE"},
		{"an integer in a string", `{"text":"x","price":"1","count":"1"}`, "count WRONG_TYPE"},
		{"an integer beyond 64 bits", `{"text":"x","price":"1","count":99999999999999999999}`, "count OUT_OF_RANGE"},
		{"leverage 14", `{"text":"x","price":"1","leverage":14}`, "leverage OUT_OF_RANGE"},
		{"leverage 1.5", `{"text":"x","price":"1","leverage":1.5}`, "leverage INVALID_VALUE"},
		{"leverage 01", `{"text":"x","price":"1","leverage":"01"}`, "leverage INVALID_VALUE"},
		{"leverage +3", `{"text":"x","price":"1","leverage":"+3"}`, "leverage INVALID_VALUE"},
		{"leverage -3", `{"text":"x","price":"1","leverage":-3}`, "leverage INVALID_VALUE"},
		{"leverage true", `{"text":"x","price":"1","leverage":true}`, "leverage WRONG_TYPE"},
		{"leverage 1e1", `{"text":"x","price":"1","leverage":1e1}`, "leverage INVALID_VALUE"},
		{"time without microseconds", `{"text":"x","price":"1","time":"2024-01-01T00:00Z"}`, "time INVALID_VALUE"},
		{"time with an offset", `{"text":"x","price":"1","time":"2024-01-01T00:00:00.000000+01"}`, "time INVALID_VALUE"},
		{"time too early", `{"text":"x","price":"1","time":"1999-12-31T23:59:59.999999Z"}`, "time OUT_OF_RANGE"},
		{"last time", `{"text":"x","price":"1","time":"2100-12-31T23:59:59.999999Z"}`, ""},
		{"time too late", `{"text":"x","price":"1","time":"2101-01-01T00:00:00.000000Z"}`, "time OUT_OF_RANGE"},
		{"no items", `{"text":"x","price":"1","tiers":[]}`, "tiers OUT_OF_RANGE"},
		{"too many items", `{"text":"x","price":"1","tiers":[{},{},{}]}`, "tiers OUT_OF_RANGE"},
		{"items of another kind", `{"text":"x","price":"1","tiers":[1],"limit":[],"scopes":{}}`, "scopes WRONG_TYPE, limit WRONG_TYPE, tiers[0] WRONG_TYPE"},
		{"deep", `{"text":` + strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100) + `}`, "TOO_DEEP"},
		{"very deep", strings.Repeat(`{"a":`, 100000), "TOO_DEEP"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := Body([]byte(test.body), nil)
			readAll(f)
			if got := strings.Join(problemtest.Found(t, f.Done()), ", "); got != test.want {
				t.Errorf("body %.200s\n got  %s\n want %s", test.body, got, test.want)
			}
		})
	}
}

func TestBodyValues(t *testing.T) {
	f := Body([]byte(`{"a":"10.50","b":null,"c":"x","n":7}`), nil)
	if d := f.Decimal("a"); d.String() != "10.50" {
		t.Errorf("the decimal is %v, want 10.50", d)
	}
	if f.Has("b") || !f.Null("b") || f.Has("zz") || !f.Has("c") {
		t.Error("Has or Null is wrong")
	}
	if f.OptionalDecimal("b").Set || f.OptionalString("zz").Or("d") != "d" || f.OptionalString("c").Or("d") != "x" {
		t.Error("an optional value is wrong")
	}
	if p := f.OptionalInteger("n", 0, 9).Pointer(); p == nil || *p != 7 {
		t.Error("the integer is wrong")
	}
	if err := f.Done(); err != nil {
		t.Error(err)
	}
	f.Fault("c", "TAKEN", "the code is taken")
	if !f.Faulty("c") || f.Faulty("a") || f.Done() == nil {
		t.Error("a handler's own fault is lost")
	}
}

func TestManyFaultsAreCut(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"x":1`)
	for i := range 5000 {
		fmt.Fprintf(&b, `,"f%d":1`, i)
	}
	f := Body([]byte(b.String()+"}"), nil)
	if n := len(problemtest.Found(t, f.Done())); n != validation.MaxErrors {
		t.Errorf("%d faults are listed, want %d", n, validation.MaxErrors)
	}
}

// Each fault below a long name names it; the answer must not grow with the product of the two.
func TestLongNamesAreCut(t *testing.T) {
	body := `{"` + strings.Repeat("é", 400_000) + `":{` + strings.Repeat(`"a":1,`, 500) + `"a":1}}`
	f := Body([]byte(body), nil)
	var p *problem.Problem
	if !errors.As(f.Done(), &p) || len(p.Errors) != validation.MaxErrors {
		t.Fatalf("got %v, want a problem with %d faults", f.Done(), validation.MaxErrors)
	}
	for _, fault := range p.Errors {
		if len(fault.Path.String()) > maxName+16 || !utf8.ValidString(fault.Path.String()) {
			t.Fatalf("a field of %d bytes in the answer: %.40q…", len(fault.Path), fault.Path)
		}
	}
}

func TestQuery(t *testing.T) {
	tests := []struct{ query, want string }{
		{"", ""},
		{"symbol=BTC%2A&live=true&count=3", ""},
		{"symbol=", "symbol INVALID_VALUE"},
		{"symbol=a&symbol=b", "symbol DUPLICATE_FIELD"},
		{"symbl=a", "symbl UNKNOWN_PARAMETER"},
		{"Symbol=a&other=b", "Symbol UNKNOWN_PARAMETER, other UNKNOWN_PARAMETER"},
		{"live=yes&count=1.0", "live WRONG_TYPE, count INVALID_VALUE"},
		{"count=01", "count INVALID_VALUE"},
		{"count=%2B1", "count INVALID_VALUE"},
		{"count=1001", "count OUT_OF_RANGE"},
		{"symbol=%00", "symbol CONTROL_CHARACTER"},
		{"symbol=%ff", "symbol INVALID_UTF8"},
		{"symbol=%zz", "MALFORMED_QUERY"},
		{"symbol=a;b", "MALFORMED_QUERY"},
	}
	for _, test := range tests {
		q := Query(test.query)
		q.OptionalString("symbol")
		q.OptionalBool("live")
		q.OptionalInteger("count", 1, 1000)
		if got := strings.Join(problemtest.Found(t, q.Done()), ", "); got != test.want {
			t.Errorf("query %q: got %q, want %q", test.query, got, test.want)
		}
	}
}

// decimalRule applies a rule of decimals to a text.
func decimalRule(rule form.DecimalRule) form.Rule {
	return func(text string) (code, message string) {
		d, err := fixed.ParseDecimal(text)
		if err != nil {
			return err.Error(), ""
		}
		return rule(d)
	}
}

func TestRules(t *testing.T) {
	tests := []struct {
		rule form.Rule
		good []string
		bad  []string
	}{
		{form.Reference.Rule, []string{"a", "A.b_c:d-9", strings.Repeat("x", 64)}, []string{"", "a b", "ä", strings.Repeat("x", 65), "a/b"}},
		{CustomerCode, []string{"C0123456789ab", "a.b_c-d", "..."}, []string{"", ".", "..", "a:b", strings.Repeat("x", 33)}},
		{decimalRule(form.Positive), []string{"1", "0.001"}, []string{"0", "0.00", "-1"}},
		{decimalRule(form.NotNegative), []string{"0", "1"}, []string{"-0.1"}},
		{decimalRule(form.MaxDecimals(2)), []string{"0", "1.00", "-1.25"}, []string{"1.000", "0.001"}},
	}
	for i, test := range tests {
		for _, s := range test.good {
			if code, _ := test.rule(s); code != "" {
				t.Errorf("rule %d refuses %q", i, s)
			}
		}
		for _, s := range test.bad {
			if code, _ := test.rule(s); code == "" {
				t.Errorf("rule %d allows %q", i, s)
			}
		}
	}
}

// FuzzBody holds the strict reader against the standard library's: what the strict one accepts, the other reads, and
// to the same value.
func FuzzBody(f *testing.F) {
	for _, s := range []string{`{}`, `{"text":"x","price":"1"}`, `{"text":"\ud800"}`, `{"a":[1,{"b":null}],"a":2}`, "{\"t\":\"\xff\"}",
		`{"text":"x","price":"1","tiers":[{"rate":"0.5"}]} `, `{"count":1e5}`, `[]`, `{"a":"b"}x`, "\ufeff{}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		form := Body(body, nil)
		readAll(form)
		err := form.Done()
		if err != nil {
			for _, s := range problemtest.Found(t, err) {
				if s == "" {
					t.Fatal("a fault without a code")
				}
			}
			return
		}
		var loose struct {
			Text  string `json:"text"`
			Price string `json:"price"`
			Count *int64 `json:"count"`
		}
		if err := stdjson.Unmarshal(body, &loose); err != nil {
			t.Fatalf("accepted %q, which encoding/json refuses: %v", body, err)
		}
		again := Body(body, nil)
		if got := again.String("text"); got != loose.Text {
			t.Fatalf("read the text %q, encoding/json %q", got, loose.Text)
		}
		if got := again.Decimal("price"); got.String() != loose.Price {
			t.Fatalf("read the price %v, encoding/json %q", got, loose.Price)
		}
		if n := again.OptionalInteger("count", 1, 10).Pointer(); (n == nil) != (loose.Count == nil) || n != nil && *n != *loose.Count {
			t.Fatalf("read the count %v, encoding/json %v", n, loose.Count)
		}
		if f := again.Canonical(); !stdjson.Valid(f) {
			t.Fatalf("the canonical form %q is not JSON", f)
		}
	})
}

func TestWithoutNulls(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{`{"a":1}`, `{"a":1}`},
		{`{"a":null}`, `{}`},
		{`{"a":null,"b":"null","c":{"d":null,"e":{"kept":null}},"f":[null,{"g":null,"h":1}]}`, `{"b":"null","c":{"e":{}},"f":[null,{"h":1}]}`},
		{`{"kept":null,"a":1.50,"n":null}`, `{"kept":null,"a":1.50}`},
		{`{"\u006bept":null}`, `{"kept":null}`},
		{`[null]`, `[null]`},
		{`{"a":null`, `{"a":null`},
		{`{"null":1,"null":2}`, `{"null":1,"null":2}`},
	} {
		if got := string(WithoutNulls([]byte(test.body), "kept")); got != test.want {
			t.Errorf("%s gives %s, want %s", test.body, got, test.want)
		}
	}
}

// FuzzQuery looks for a query that is read with something in it that no reader may let through.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{"", "symbol=a", "symbol=%00", "symbol=%ff&x=1", "after=MTox", "symbol=a&symbol=b", "sort=asc;", "=1&="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q := Query(query)
		symbol := q.OptionalString("symbol")
		if err := q.Done(); err != nil {
			problemtest.Found(t, err)
			return
		}
		if s := symbol.Value; !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			t.Fatalf("%q gives %q", query, s)
		}
	})
}
