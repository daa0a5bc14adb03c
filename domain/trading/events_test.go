package trading

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestEveryEventIsRegistered reads the package's own files: whatever has an event type must be in the registry, or logs
// that hold it could not be read.
func TestEveryEventIsRegistered(t *testing.T) {
	registered := make(map[string]bool)
	for _, s := range Rules().Registry().Shapes() {
		registered[reflect.TypeOf(s.New()).Elem().Name()] = true
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "EventType" {
				continue
			}
			found++
			if name := f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name; !registered[name] {
				t.Errorf("%s is not registered", name)
			}
		}
	}
	if found != len(registered) {
		t.Errorf("%d types of event, %d registered", found, len(registered))
	}
}
