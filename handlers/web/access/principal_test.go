package access

import (
	"strings"
	"testing"
)

func TestSees(t *testing.T) {
	tests := []struct {
		p    Principal
		want string
	}{
		{Principal{Broker: "alpha", Scopes: []string{"read"}}, "yes yes no"},
		{Principal{Broker: "alpha", Customer: "C1", Scopes: []string{"read"}}, "yes no no"},
		{Principal{Broker: "venue", Scopes: []string{"operator"}}, "yes yes yes"},
		{Principal{Broker: "venue", Scopes: []string{"auditor"}}, "yes yes yes"},
		{Principal{Broker: "venue", Scopes: []string{"read"}}, "no no no"},
		{Principal{Broker: "venue", Customer: "C1", Scopes: []string{"auditor"}}, "no no no"},
	}
	for _, test := range tests {
		var got []string
		for _, x := range [][2]string{{"alpha", "C1"}, {"alpha", "C2"}, {"beta", "C3"}} {
			word := "no"
			if test.p.Sees(x[0], x[1]) {
				word = "yes"
			}
			got = append(got, word)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%+v sees %v, want %s", test.p, got, test.want)
		}
	}
}

// TestChangesThatMayReturnScopes: only a change of the user to an account with a scope that the principal lacks.
func TestChangesThatMayReturnScopes(t *testing.T) {
	p := &Principal{Username: "u", Scopes: []string{ScopeRead}}
	for name, test := range map[string]struct {
		change Change
		want   bool
	}{
		"a scope more":     {Change{Username: "u", Account: Account{Active: true, Scopes: []string{ScopeRead, ScopeTrade}}}, true},
		"another scope":    {Change{Username: "u", Account: Account{Active: true, Scopes: []string{ScopeTrade}}}, true},
		"the same scopes":  {Change{Username: "u", Account: Account{Active: true, Scopes: []string{ScopeRead}}}, false},
		"no scope":         {Change{Username: "u", Account: Account{Active: true}}, false},
		"an inactive user": {Change{Username: "u", Account: Account{Scopes: []string{ScopeTrade}}}, false},
		"another user":     {Change{Username: "v", Account: Account{Active: true, Scopes: []string{ScopeTrade}}}, false},
		"a retired key":    {Change{KID: "k"}, false},
	} {
		if got := test.change.MayReturn(p); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
