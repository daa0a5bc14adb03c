package rest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem/problemtest"
)

// post makes a context of a request with a JSON body.
func post(body string) echo.Context {
	r := httptest.NewRequest(http.MethodPost, "/v1/things", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return echo.New().NewContext(r, httptest.NewRecorder())
}

// get makes a context of a request with a query.
func get(query string) echo.Context {
	r := httptest.NewRequest(http.MethodGet, "/v1/things?"+query, nil)
	return echo.New().NewContext(r, httptest.NewRecorder())
}

func TestBodyTypeAndSize(t *testing.T) {
	tests := []struct {
		contentType, body, want string
	}{
		{"application/json", `{}`, ""},
		{"application/json; charset=UTF-8", `{}`, ""},
		{"Application/JSON", `{}`, ""},
		{"application/json; charset=latin1", `{}`, "UNSUPPORTED_MEDIA_TYPE"},
		{"", `{}`, "UNSUPPORTED_MEDIA_TYPE"},
		{"text/plain", `{}`, "UNSUPPORTED_MEDIA_TYPE"},
		{"application/x-www-form-urlencoded", `a=b`, "UNSUPPORTED_MEDIA_TYPE"},
		{"application/json", `{` + strings.Repeat(" ", input.MaxBody-2) + `}`, ""},
		{"application/json", `{` + strings.Repeat(" ", input.MaxBody-1) + `}`, "BODY_TOO_LARGE"},
	}
	for _, test := range tests {
		for _, chunked := range []bool{false, true} {
			c := post(test.body)
			c.Request().Header.Set("Content-Type", test.contentType)
			if chunked {
				c.Request().ContentLength = -1
			}
			if got := strings.Join(problemtest.Found(t, BodyOnly(c).Done()), ", "); got != test.want {
				t.Errorf("%s, %d bytes: got %q, want %q", test.contentType, len(test.body), got, test.want)
			}
		}
	}
}

func TestCompressedBody(t *testing.T) {
	c := post(`{}`)
	c.Request().Header.Set("Content-Encoding", "gzip")
	if got := strings.Join(problemtest.Found(t, BodyOnly(c).Done()), ", "); got != "UNSUPPORTED_CONTENT_ENCODING" {
		t.Errorf("got %q", got)
	}
}

// Two headers that contradict each other must not depend on which of them comes first.
func TestBodyHeadersGivenTwice(t *testing.T) {
	for name, values := range map[string][]string{
		"Content-Type": {"application/json", "text/plain"}, "Content-Encoding": {"identity", "gzip"},
	} {
		c := post(`{}`)
		c.Request().Header[name] = values
		if got := strings.Join(problemtest.Found(t, BodyOnly(c).Done()), ", "); got != name+" DUPLICATE_FIELD" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestNoBody(t *testing.T) {
	for body, want := range map[string]string{"": "", "{}": "", `{"a":1}`: "a UNKNOWN_FIELD", "x": "MALFORMED_JSON"} {
		if got := strings.Join(problemtest.Found(t, NoBody(post(body))), ", "); got != want {
			t.Errorf("body %q: got %q, want %q", body, got, want)
		}
	}
}

func TestFingerprint(t *testing.T) {
	of := func(c echo.Context, f ...*input.Form) string {
		c.Request().Header.Set("Idempotency-Key", "k")
		cmd, err := RequestOf(c).NewCommand(named("thing.make"), f...)
		if err != nil {
			t.Fatal(err)
		}
		return cmd.Metadata.Fingerprint
	}
	a, b, other := post(`{"a":"1","b":2}`), post(` { "b" : 2, "a": "\u0031" }`), post(`{"a":"1","b":3}`)
	if of(a, BodyOnly(a)) != of(b, BodyOnly(b)) {
		t.Error("the same content in another spelling has another fingerprint")
	}
	if of(a) == of(a, BodyOnly(post(`{}`))) || of(b, BodyOnly(post(`{"a":"1","b":2}`))) == of(other, BodyOnly(other)) {
		t.Error("other content has the same fingerprint")
	}
	method := post(`{}`)
	method.Request().Method = http.MethodPatch
	if of(method, BodyOnly(method)) == of(a, BodyOnly(post(`{}`))) {
		t.Error("another method has the same fingerprint")
	}
	params := func(values ...string) string {
		c := post(`{}`)
		c.SetParamNames("x", "y")
		c.SetParamValues(values...)
		return of(c)
	}
	if params("a", "bc") == params("ab", "c") {
		t.Error("the parameters run into one another")
	}
	mac := func(key byte) func([]byte) []byte {
		return func(b []byte) []byte { return append([]byte{key}, b...) }
	}
	sealed := func(key byte) string { return of(a, input.Body([]byte("{}"), nil).Seal(mac(key))) }
	if sealed(1) == sealed(2) {
		t.Error("the sealed fingerprint does not depend on the key")
	}
}
