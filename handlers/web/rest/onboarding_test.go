package rest

import (
	stdjson "encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const someID = "0b6ab0c5-2a6b-8a55-9f2a-7d1e9f1c5a11"

// readThing reads a body as handlers of the onboarding interface do.
func readThing(c echo.Context) error {
	b := BodyOnly(c)
	if len(c.ParamNames()) > 0 {
		path := Path(c)
		path.ID("code")
		b.Merge(path)
	}
	b.AnyText("name")
	b.OptionalID("id")
	b.OptionalIDs("ids", 2)
	b.OptionalBool("flag")
	b.OptionalWhole("count")
	b.OptionalInteger("few", 1, 3)
	b.OptionalEnum("kind", "a", "b", "c")
	b.OptionalStrings("words")
	b.OptionalEnums("kinds", "a", "b", "c")
	b.OptionalObject("at", func(f *input.Form) { f.AnyText("city") })
	b.OptionalObjects("list", 0, 2, func(_ int, f *input.Form) { f.ID("id") })
	if err := b.Done(); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, struct{}{})
}

// TestWholeNumbers: an integer may be written in any way that JSON has for one, and nothing is rounded.
func TestWholeNumbers(t *testing.T) {
	for text, want := range map[string]int64{"-0": 0, "-0.0": 0, "0e5": 0, "5.0": 5, "1E2": 100, "1e+2": 100, "100e-2": 1, "0.1e1": 1, "-12.50e1": -125,
		"9.223372036854775807e18": 9223372036854775807, "9007199254740993.0": 9007199254740993, "-9223372036854775808e0": -9223372036854775808} {
		f := BodyOnly(post(`{"n":` + text + `}`))
		if got := f.OptionalWhole("n"); !got.Set || got.Value != want || f.Done() != nil {
			t.Errorf("%s is read as %d, %v (%v)", text, got.Value, got.Set, f.Done())
		}
	}
	for _, text := range []string{"5.5", "1e-1", "1e-400", "-1e-400", "9007199254740991.4", "1e19", "9.223372036854775808e18", "1e400", "1e99999999999999999999", "-1e-99999999999999999999"} {
		f := BodyOnly(post(`{"n":` + text + `}`))
		if got := f.OptionalWhole("n"); got.Set || f.Done() == nil {
			t.Errorf("%s is read as %d", text, got.Value)
		}
	}
}

// TestFaultsInPydanticsWords: each fault has the type, the place, the words and the input that FastAPI with pydantic 2
// would tell it with, where the two have such a fault.
func TestFaultsInPydanticsWords(t *testing.T) {
	long := strings.Repeat("x", 4<<10)
	for _, test := range []struct{ path, body, want string }{
		{"", `{"name":"","id":"` + someID + `","ids":[],"count":5.0,"kind":"a","at":{},"list":[]}`, ``},
		{"", `{"name":null,"id":null,"at":null,"list":null}`, ``},
		{"", `{"name":5}`, `string_type|body,name|Input should be a valid string|5`},
		{"", `{"name":"a\ud800"}`, `string_unicode|body,name|Input should be a valid string, unable to parse raw data as a unicode string|"a�"`},
		{"", "{\"name\":\"a\xff\"}", `string_unicode|body,name|Input should be a valid string, unable to parse raw data as a unicode string|"a�"`},
		{"", `{"id":5}`, `uuid_type|body,id|UUID input should be a string, bytes or UUID object|5`},
		{"", `{"id":"x"}`, "uuid_parsing|body,id|Input should be a valid UUID, invalid character: expected [0-9a-fA-F-], found `x` at 1|\"x\""},
		{"", `{"id":""}`, `uuid_parsing|body,id|Input should be a valid UUID, invalid length: expected 36 characters with four hyphens, found 0|""`},
		{"", `{"id":"\u0000"}`, "uuid_parsing|body,id|Input should be a valid UUID, invalid character: expected [0-9a-fA-F-], found `\\x00` at 1|\"\\u0000\""},
		{"", `{"ids":{}}`, `list_type|body,ids|Input should be a valid list|{}`},
		{"", `{"ids":["` + someID + `",true]}`, `uuid_type|body,ids,1|UUID input should be a string, bytes or UUID object|true`},
		{"", `{"ids":[1,2,3]}`, `too_long|body,ids|List should have at most 2 items after validation, not 3|[1,2,3]`},
		{"", `{"flag":"true"}`, `bool_type|body,flag|Input should be a valid boolean|"true"`},
		{"", `{"count":"5"}`, `int_type|body,count|Input should be a valid integer|"5"`},
		{"", `{"count":5.5}`, `int_from_float|body,count|Input should be a valid integer, got a number with a fractional part|5.5`},
		{"", `{"count":1e-400}`, `int_from_float|body,count|Input should be a valid integer, got a number with a fractional part|1e-400`},
		{"", `{"count":5.000000000000000000000001}`, `int_from_float|body,count|Input should be a valid integer, got a number with a fractional part|5.000000000000000000000001`},
		{"", `{"count":-9.223372036854775808e18}`, ``},
		{"", `{"count":0.0e99999999999999999999}`, ``},
		{"", `{"count":0.00001e5}`, ``},
		{"", `{"count":1e-99999999999999999999}`, `int_from_float|body,count|Input should be a valid integer, got a number with a fractional part|1e-99999999999999999999`},
		{"", `{"count":0.00001e4}`, `int_from_float|body,count|Input should be a valid integer, got a number with a fractional part|0.00001e4`},
		{"", `{"count":9223372036854775808.0}`, `less_than_equal|body,count|Input should be less than or equal to 9223372036854775807|9223372036854775808.0`},
		{"", `{"count":1e19}`, `less_than_equal|body,count|Input should be less than or equal to 9223372036854775807|1e19`},
		{"", `{"count":0.00001e400}`, `less_than_equal|body,count|Input should be less than or equal to 9223372036854775807|0.00001e400`},
		{"", `{"count":1e99999999999999999999}`, `less_than_equal|body,count|Input should be less than or equal to 9223372036854775807|1e99999999999999999999`},
		{"", `{"count":-1e19}`, `greater_than_equal|body,count|Input should be greater than or equal to -9223372036854775808|-1e19`},
		{"", `{"count":9223372036854775808}`, `less_than_equal|body,count|Input should be less than or equal to 9223372036854775807|9223372036854775808`},
		{"", `{"few":0}`, `greater_than_equal|body,few|Input should be greater than or equal to 1|0`},
		{"", `{"few":4}`, `less_than_equal|body,few|Input should be less than or equal to 3|4`},
		{"", `{"kind":"d"}`, `enum|body,kind|Input should be 'a', 'b' or 'c'|"d"`},
		{"", `{"kind":""}`, `string_too_short|body,kind|String should have at least 1 character|""`},
		{"", `{"words":["a",1]}`, `string_type|body,words,1|Input should be a valid string|1`},
		{"", `{"words":["a\u0007"]}`, `value_error|body,words,0|Value error, the text holds a control character|"a\u0007"`},
		{"", `{"kinds":["a","d",""]}`, `string_too_short|body,kinds,2|String should have at least 1 character|""`},
		{"", `{"kinds":["a","d"]}`, `enum|body,kinds,1|Input should be 'a', 'b' or 'c'|"d"`},
		{"", `{"at":[]}`, `model_attributes_type|body,at|Input should be a valid dictionary or object to extract fields from|[]`},
		{"", `{"list":[1]}`, `model_attributes_type|body,list,0|Input should be a valid dictionary or object to extract fields from|1`},
		{"", `{"list":[{}]}`, `missing|body,list,0,id|Field required|{}`},
		{"", `{"list":[{"id":null}]}`, `missing|body,list,0,id|Field required|null`},
		{"", `{"at":{"x":{"y":1}}}`, `extra_forbidden|body,at,x|Extra inputs are not permitted|{"y":1}`},
		{"", `{"x":"` + long + `"}`, `extra_forbidden|body,x|Extra inputs are not permitted|"` + long + `"`},
		{"", `{"x":["` + long + `"]}`, `extra_forbidden|body,x|Extra inputs are not permitted|null`},
		{"", `{"name":1,"name":"b"}`, `value_error|body,name|Value error, the field is given more than once|1 & string_type|body,name|Input should be a valid string|1`},
		{"", `{"name":1,"id":"x y","flag":0}`, "string_type|body,name|Input should be a valid string|1 & " +
			"uuid_parsing|body,id|Input should be a valid UUID, invalid character: expected [0-9a-fA-F-], found `x` at 1|\"x y\" & bool_type|body,flag|Input should be a valid boolean|0"},
		{"", `[]`, `model_attributes_type|body|Input should be a valid dictionary or object to extract fields from|[]`},
		{"", `{"name":"a",}`, `json_invalid|body,11|JSON decode error|{}`},
		{"", `{"name"`, `json_invalid|body,7|JSON decode error|{}`},
		{"", `{} 5`, `json_invalid|body,2|JSON decode error|{}`},
		{"", strings.Repeat("[", 20), `json_invalid|body,16|JSON decode error|{}`},
		{"?x=1&y=2", `{"few":9}`, `extra_forbidden|query,x|Extra inputs are not permitted|"1" & extra_forbidden|query,y|Extra inputs are not permitted|"2" & ` +
			`less_than_equal|body,few|Input should be less than or equal to 3|9`},
		{"?%zz", `{}`, `value_error|query|Value error, the query string is not valid|null`},
		{"/none", `{"few":9}`, "uuid_parsing|path,code|Input should be a valid UUID, invalid character: expected [0-9a-fA-F-], found `n` at 1|\"none\" & " +
			"less_than_equal|body,few|Input should be less than or equal to 3|9"},
	} {
		e := serve(t, Options{}, readThing)
		e.POST("/api/v1/things/:code", readThing)
		w := ask(e, "POST", "/api/v1/things"+test.path, test.body)
		if got := told(t, w.Code, w.Body.Bytes()); got != test.want {
			t.Errorf("%s %s\ngot  %s\nwant %s", test.path, test.body, got, test.want)
		}
	}
}

// told writes the faults of an answer as "type|place|message|input", joined by " & "; nothing of a 200.
func told(t *testing.T, status int, body []byte) string {
	t.Helper()
	if status == http.StatusOK {
		return ""
	}
	var answer struct {
		Detail []struct {
			Type  string             `json:"type"`
			Loc   []any              `json:"loc"`
			Msg   string             `json:"msg"`
			Input stdjson.RawMessage `json:"input"`
		} `json:"detail"`
	}
	if err := stdjson.Unmarshal(body, &answer); err != nil || status != http.StatusUnprocessableEntity {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	var all []string
	for _, d := range answer.Detail {
		var at []string
		for _, s := range d.Loc {
			switch s := s.(type) {
			case string:
				at = append(at, s)
			case float64:
				at = append(at, strconv.Itoa(int(s)))
			}
		}
		all = append(all, strings.Join([]string{d.Type, strings.Join(at, ","), d.Msg, string(d.Input)}, "|"))
	}
	return strings.Join(all, " & ")
}

// TestAMissingBody is a fault of the whole.
func TestAMissingBody(t *testing.T) {
	w := ask(serve(t, Options{}, readThing), "POST", "/api/v1/things", "", "Content-Type", "application/json")
	if got, want := told(t, w.Code, w.Body.Bytes()), `missing|body|Field required|null`; got != want || w.Body.Len() == 0 {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

// TestQueriesInPydanticsWords does the same with the parameters of a list.
func TestQueriesInPydanticsWords(t *testing.T) {
	for query, want := range map[string]string{
		"page=2&size=100": ``,
		"size=101":        `less_than_equal|query,size|Input should be less than or equal to 100|"101"`,
		"page=0":          `greater_than_equal|query,page|Input should be greater than or equal to 1|"0"`,
		"page=x":          `int_parsing|query,page|Input should be a valid integer, unable to parse string as an integer|"x"`,
		"page=":           `int_parsing|query,page|Input should be a valid integer, unable to parse string as an integer|""`,
		"page=1&page=2":   `value_error|query,page|Value error, the parameter is given more than once|"1"`,
		"all=yes":         `bool_parsing|query,all|Input should be a valid boolean, unable to interpret input|"yes"`,
		"order=up":        `extra_forbidden|query,order|Extra inputs are not permitted|"up"`,
	} {
		e := serve(t, Options{}, func(c echo.Context) error {
			q := Query(c)
			ReadNumbered(q)
			q.OptionalBool("all")
			if err := q.Done(); err != nil {
				return err
			}
			return c.JSON(http.StatusOK, struct{}{})
		})
		w := ask(e, "GET", "/api/v1/things?"+query, "")
		if got := told(t, w.Code, w.Body.Bytes()); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", query, got, want)
		}
	}
}

// TestAllFaultsAreTold: as many answers as a response may have can each have a fault of their own, and all are listed.
// What is shown of inputs has a bound.
func TestAllFaultsAreTold(t *testing.T) {
	read := func(c echo.Context) error {
		b := BodyOnly(c)
		b.Objects("list", 0, 1000, func(_ int, f *input.Form) { f.ID("id"); f.ID("other") })
		return b.Done()
	}
	body := `{"list":[` + strings.TrimSuffix(strings.Repeat(`{"id":1,"pad":"`+strings.Repeat("x", 1000)+`"},`, 900), ",") + `]}`
	w := ask(serve(t, Options{}, read), "POST", "/api/v1/things", body)
	got := told(t, w.Code, w.Body.Bytes())
	for what, want := range map[string]int{"uuid_type|body,list,": 900, "missing|body,list,": 900, "extra_forbidden|body,list,": 900} {
		if n := strings.Count(got, what); n != want {
			t.Errorf("%d of %s, want %d", n, what, want)
		}
	}
	if w.Body.Len() > 2<<20 {
		t.Errorf("%d bytes answer a body of %d", w.Body.Len(), len(body))
	}
	if w := ask(serve(t, Options{}, read), "POST", "/v1/things", body); w.Body.Len() > 64<<10 {
		t.Errorf("the trading interface: %d bytes answer a body of %d", w.Body.Len(), len(body))
	}
}

// TestACommandThatIsNotValid is told as a fault of the body.
func TestACommandThatIsNotValid(t *testing.T) {
	refusal := &decide.Refusal{Kind: decide.Invalid, Code: "INVALID_ANSWERS", Field: "answers", Message: "answer 1 is empty"}
	e := serve(t, Options{}, func(echo.Context) error { return &submit.RefusedError{Refusal: refusal} })
	w := ask(e, "POST", "/api/v1/things", "{}")
	if got, want := told(t, w.Code, w.Body.Bytes()), `value_error|body,answers|Value error, answer 1 is empty|null`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzBodies: whatever is sent, the answer is one that clients can read.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{`{"name":"a","list":[{"id":"` + someID + `"}]}`, `{"name":"\ud800","at":{"city":1}}`, "{\"a\xff\":1}", `{"count":1e999,"ids":[{}]}`, `{`, ``, `{"a":1,"a":{"b":[`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		headers := []string{}
		if body == "" {
			headers = []string{"Content-Type", "application/json"}
		}
		w := ask(serve(t, Options{}, readThing), "POST", "/api/v1/things", body, headers...)
		if w.Code != http.StatusUnprocessableEntity && (w.Code != http.StatusOK || w.Body.String() != "{}") {
			t.Fatalf("%d %q", w.Code, w.Body)
		}
		if w.Code != http.StatusOK && told(t, w.Code, w.Body.Bytes()) == "" {
			t.Fatalf("no fault is told: %s", w.Body)
		}
	})
}

// TestWhatACommandMakesHasOneName: what a command makes has one id, and the request's next command makes something else.
func TestWhatACommandMakesHasOneName(t *testing.T) {
	here := RequestOf(post("{}"))
	made := here.IDFor("owner")
	if made != here.IDFor("owner") || made == here.IDFor("document") {
		t.Errorf("it is called %s, then %s; something else %s", made, here.IDFor("owner"), here.IDFor("document"))
	}
	if _, err := here.BareCommand(named("thing.make")); err != nil {
		t.Fatal(err)
	}
	if next := here.IDFor("owner"); next == made {
		t.Errorf("the next is called %s, too", next)
	}
}
