package web

import (
	stdjson "encoding/json"
	"net/url"
	"strings"
	"testing"
)

func TestPageQuery(t *testing.T) {
	tests := []struct {
		query string
		page  Page
		want  string
	}{
		{"", Page{Size: 100, Ascending: false}, ""},
		{"page_size=1000&sort=asc", Page{Size: 1000, Ascending: true}, ""},
		{"after=" + Cursor("17/3"), Page{Size: 100, After: "17/3"}, ""},
		{"before=" + url.QueryEscape(Cursor("ü")), Page{Size: 100, Before: "ü"}, ""},
		{"page_size=0", Page{Size: 100}, "page_size OUT_OF_RANGE"},
		{"page_size=1001&sort=up", Page{Size: 100}, "page_size OUT_OF_RANGE, sort INVALID_VALUE"},
		{"after=17", Page{Size: 100}, "after INVALID_VALUE"},
		{"after=" + Cursor(""), Page{Size: 100}, "after INVALID_VALUE"},
		{"after=" + Cursor("a\x00"), Page{Size: 100}, "after INVALID_VALUE"},
		{"after=" + Cursor("\xff"), Page{Size: 100}, "after INVALID_VALUE"},
		{"after=" + Cursor(strings.Repeat("x", 300)), Page{Size: 100}, "after INVALID_VALUE"},
		{"after=%00", Page{Size: 100}, "after CONTROL_CHARACTER"},
		{"after=" + Cursor("1") + "&before=" + Cursor("2"), Page{Size: 100, After: "1", Before: "2"}, "before INVALID_VALUE"},
	}
	for _, test := range tests {
		q := Query(get(test.query))
		page := q.Page(false)
		if got := strings.Join(found(t, q.Done()), ", "); got != test.want || page != test.page {
			t.Errorf("%q: got %+v %q, want %+v %q", test.query, page, got, test.page, test.want)
		}
	}
	if !Query(get("")).Page(true).Ascending {
		t.Error("the default order is lost")
	}
}

func TestNewRecords(t *testing.T) {
	tests := []struct {
		page    Page
		records []string
		more    bool
		want    string
	}{
		{Page{}, nil, false, `{"records":[],"response_metadata":{"has_next":false,"has_previous":false,"start_cursor":null,"end_cursor":null}}`},
		{Page{}, []string{"a", "b"}, true, `{"records":["a","b"],"response_metadata":{"has_next":true,"has_previous":false,"start_cursor":"` + Cursor("a") + `","end_cursor":"` + Cursor("b") + `"}}`},
		{Page{After: "a"}, []string{"b"}, false, `{"records":["b"],"response_metadata":{"has_next":false,"has_previous":true,"start_cursor":"` + Cursor("b") + `","end_cursor":"` + Cursor("b") + `"}}`},
		{Page{Before: "c"}, []string{"b"}, true, `{"records":["b"],"response_metadata":{"has_next":true,"has_previous":true,"start_cursor":"` + Cursor("b") + `","end_cursor":"` + Cursor("b") + `"}}`},
	}
	for _, test := range tests {
		got, err := stdjson.Marshal(NewRecords(test.page, test.records, test.more, func(s string) string { return s }))
		if err != nil || string(got) != test.want {
			t.Errorf("got %s, %v\nwant %s", got, err, test.want)
		}
	}
}

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
		n := q.Numbered()
		if got := strings.Join(found(t, q.Done()), ", "); got != test.want {
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
