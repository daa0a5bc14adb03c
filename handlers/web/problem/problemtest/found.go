// Package problemtest has helpers for tests of errors.
package problemtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// Found lists the field errors of a problem as "field CODE", or else its code. It returns nil if there is no error. It fails the
// test if the error is not a *problem.Problem, or a field error has no message.
func Found(t testing.TB, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var p *problem.Problem
	if !errors.As(err, &p) {
		t.Fatalf("%v is not a problem", err)
	}
	if len(p.Errors) == 0 {
		return []string{p.Code}
	}
	var out []string
	for _, f := range p.Errors {
		if f.Message == "" {
			t.Errorf("the error %s %s has no message", f.Path, f.Code)
		}
		out = append(out, strings.TrimSpace(f.Path.String()+" "+f.Code))
	}
	return out
}
