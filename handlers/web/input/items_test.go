package input

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// FuzzSplitItems holds what cuts a batch up against what reads it whole: it takes nothing in which that finds a fault
// outside of the items, and each item comes out as it was sent.
func FuzzSplitItems(f *testing.F) {
	for _, text := range []string{`{"orders":[]}`, `{"orders":[{"a":1},{"a":[1,{"b":"]}"}]} , 7]}`, ` { "orders" : [ "x" ] } `, `{"orders":[1,]}`, `{"orders":[1]}x`,
		`{"ord\u0065rs":[{}]}`, `{"orders":[{"a":1,"a":2},"\ud800"]}`, `{"orders":[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}`, `{"orders":[1],"orders":[2]}`, "{\"orders\":[\"\xff\"]}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		kept := bytes.Clone(raw)
		items, ok := splitItems(raw, "orders")
		if !bytes.Equal(raw, kept) {
			t.Fatalf("%q was changed into %q", kept, raw)
		}
		if !ok {
			return
		}
		var again []byte
		again = append(again, `{"orders":[`...)
		for i, item := range items {
			if i > 0 {
				again = append(again, ',')
			}
			if again = append(again, item...); item.Kind() == 0 {
				t.Fatalf("%q is no item", item)
			}
		}
		again = append(again, `]}`...)
		allow := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
		one, two := jsontext.Value(bytes.Clone(raw)), jsontext.Value(again)
		if one.Compact(allow...) != nil || two.Compact(allow...) != nil {
			t.Fatalf("%q is cut up and no JSON", raw)
		}
		if root, _ := parse(raw, validation.MaxErrors); len(root.members) > 0 { // else too deep for a body, which an item's reader finds as well
			if len(root.names) != 1 || root.members["orders"] == nil || len(root.members["orders"].items) != len(items) {
				t.Fatalf("%q has %d items, read whole %d", raw, len(items), len(root.members["orders"].items))
			}
		}
	})
}
