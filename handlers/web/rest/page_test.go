package rest

import (
	stdjson "encoding/json"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem/problemtest"
)

func TestNumbered(t *testing.T) {
	tests := []struct{ query, items, want string }{
		{"", `{"items":[1,2,3],"total":3,"page":1,"size":50,"pages":1}`, ""},
		{"page=2&size=2", `{"items":[3],"total":3,"page":2,"size":2,"pages":2}`, ""},
		{"page=9&size=2", `{"items":[],"total":3,"page":9,"size":2,"pages":2}`, ""},
		{"page=1000000000&size=100", `{"items":[],"total":3,"page":1000000000,"size":100,"pages":1}`, ""},
		{"page=0&size=101", `{"items":[1,2,3],"total":3,"page":1,"size":50,"pages":1}`, "page OUT_OF_RANGE, size OUT_OF_RANGE"},
	}
	for _, test := range tests {
		q := Query(get(test.query))
		n := ReadNumbered(q)
		if got := strings.Join(problemtest.Found(t, q.Done()), ", "); got != test.want {
			t.Errorf("%q: got %q, want %q", test.query, got, test.want)
		}
		if got, _ := stdjson.Marshal(Slice(n, []int{1, 2, 3})); string(got) != test.items {
			t.Errorf("%q: got %s, want %s", test.query, got, test.items)
		}
	}
	if got, _ := stdjson.Marshal(Slice(Numbered{1, 50}, []int(nil))); string(got) != `{"items":[],"total":0,"page":1,"size":50,"pages":0}` {
		t.Errorf("no items: %s", got)
	}
}
