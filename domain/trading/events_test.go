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

// TestEverythingIsRegistered reads the package's own files: whatever has an event type must be in the registry, or logs
// that hold it could not be read, and whatever has a command type must be among the payloads, or no other node could send
// it to the owner.
func TestEverythingIsRegistered(t *testing.T) {
	events, commands := make(map[string]bool), make(map[string]bool)
	here := func(of any, registered map[string]bool) {
		if t := reflect.TypeOf(of).Elem(); t.PkgPath() == reflect.TypeFor[State]().PkgPath() { // else it is every journal's
			registered[t.Name()] = true
		}
	}
	for _, s := range Rules().Registry().Shapes() {
		if s.New != nil { // else a version that is written no more
			here(s.New(), events)
		}
	}
	for _, name := range Payloads().Types() {
		p, _ := Payloads().New(name)
		here(p, commands)
	}
	for method, registered := range map[string]map[string]bool{"EventType": events, "CommandType": commands} {
		found := withMethod(t, method)
		for _, name := range found {
			if !registered[name] {
				t.Errorf("%s, which has %s, is not registered", name, method)
			}
		}
		if len(found) == 0 || len(found) != len(registered) {
			t.Errorf("%d types with %s, %d registered", len(found), method, len(registered))
		}
	}
}

// withMethod returns the names of the types that have a method, pointers' methods alone.
func withMethod(t *testing.T, method string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == method {
				names = append(names, f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name)
			}
		}
	}
	return names
}
