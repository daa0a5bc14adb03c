package rest

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/access"
)

func secured(t *testing.T, scopes ...string) *Server {
	t.Helper()
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.GET("/v1/things", func(c echo.Context) error { return c.String(200, PrincipalOf(c).Username) }, NewAuth(keyHolders()).Require(scopes...))
	return e
}

func TestRequire(t *testing.T) {
	good := "Bearer " + newKey
	tests := []struct {
		name   string
		scopes []string
		header []string
		status int
	}{
		{"any token", nil, []string{good}, 200},
		{"the scope", []string{access.ScopeRead}, []string{good}, 200},
		{"one of the scopes", []string{access.ScopeOperator, access.ScopeTrade}, []string{good}, 200},
		{"scheme in lower case", nil, []string{"bearer " + newKey}, 200},
		{"another scope", []string{access.ScopeOperator}, []string{good}, 403},
		{"part of a scope's name", []string{"tra"}, []string{good}, 403},
		{"nothing", []string{access.ScopeRead}, nil, 401},
		{"an empty header", nil, []string{""}, 401},
		{"no token", nil, []string{"Bearer "}, 401},
		{"another scheme", nil, []string{"Basic dTpw"}, 401},
		{"the token alone", nil, []string{newKey}, 401},
		{"two headers", nil, []string{good, good}, 401},
		{"a bad token", []string{access.ScopeOperator}, []string{good + "x"}, 401},
		{"a token and more", nil, []string{good + " x"}, 401},
	}
	for _, test := range tests {
		var headers []string
		for _, h := range test.header {
			headers = append(headers, "Authorization", h)
		}
		w := ask(secured(t, test.scopes...), "GET", "/v1/things", "", headers...)
		if w.Code != test.status {
			t.Errorf("%s: got %d %s, want %d", test.name, w.Code, w.Body, test.status)
		}
		if challenge := w.Header().Get("WWW-Authenticate"); (challenge != "") != (w.Code == http.StatusUnauthorized) {
			t.Errorf("%s: the challenge is %q", test.name, challenge)
		}
	}
}
