// Package packtest compares the snapshot encoding of a state, and the fields of the state's type, with golden files.
// Neither may change without a new codec version.
package packtest

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// Update is the environment variable that makes the tests rewrite the golden files.
const Update = "PERPETUA_UPDATE_GOLDEN"

// Held fails the test if now differs from the golden file of a codec version. The name selects the file: the encoding of
// a certain state, or "shape" for the result of Shape.
func Held(t *testing.T, version int, name string, now []byte) {
	t.Helper()
	path := fmt.Sprintf("testdata/saved/v%d.%s", version, name)
	if os.Getenv(Update) != "" {
		if err := os.WriteFile(path, now, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	then, err := os.ReadFile(path)
	if err == nil && bytes.Equal(then, now) {
		return
	}
	t.Errorf("version %d of the saved form is not what it was (%s): if that is meant, see that the codec writes and reads what is new, "+
		"raise codecVersion, and run this test once with %s=1 (%v)", version, path, Update, err)
	if name == "shape" {
		t.Logf("then:\n%s\nnow:\n%s", then, now)
	}
}

// Shape lists the fields of a type and of the types in domain/ that it contains. Of package book it lists only the
// exported fields of orders, since books are rebuilt from the orders.
func Shape(of reflect.Type) []byte {
	var out bytes.Buffer
	seen := make(map[reflect.Type]bool)
	var walk func(reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(t.Elem())
		case reflect.Map:
			walk(t.Key())
			walk(t.Elem())
		case reflect.Struct:
			if seen[t] || !strings.Contains(t.PkgPath(), "/domain/") {
				return
			}
			seen[t] = true
			inBook := strings.HasSuffix(t.PkgPath(), "/domain/book")
			shown := !inBook || strings.HasPrefix(t.Name(), "Order[")
			if shown {
				fmt.Fprintf(&out, "%s\n", t)
			}
			for i := range t.NumField() {
				if f := t.Field(i); shown && (!inBook || f.IsExported()) && !isView(f) {
					fmt.Fprintf(&out, "\t%s %s\n", f.Name, f.Type)
				}
			}
			for i := range t.NumField() {
				walk(t.Field(i).Type)
			}
		}
	}
	walk(of)
	return out.Bytes()
}
