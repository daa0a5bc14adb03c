package fixed

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoFloats: the rules know neither the types of floating point, nor numbers of it, nor the functions of package math that
// take or return them. They would round where nobody sees it, and not the same on every machine.
func TestNoFloats(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		for _, n := range floats(file) {
			t.Errorf("%s is floating point", set.Position(n.Pos()))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("only %d files were found", files)
	}
}

// floats returns the places of a file where there is floating point. A constant like 1e8 is none where an integer is meant.
func floats(file *ast.File) (found []ast.Node) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			switch n.Name {
			case "float32", "float64", "complex64", "complex128":
				found = append(found, n)
			}
		case *ast.BasicLit:
			if n.Kind == token.IMAG || n.Kind == token.FLOAT && constant.ToInt(constant.MakeFromLiteral(n.Value, n.Kind, 0)).Kind() != constant.Int {
				found = append(found, n)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				found = append(found, ofFloatType(n.Rhs)...)
			}
		case *ast.GenDecl:
			for _, spec := range n.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && n.Tok == token.VAR && v.Type == nil {
					found = append(found, ofFloatType(v.Values)...)
				}
			}
		case *ast.SelectorExpr:
			name := n.Sel.Name
			exact := name == "FloatPrec" || name == "FloatString" // of a big.Rat, which is none
			if strings.Contains(name, "Float") && !exact || ofMath(n) {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

// ofFloatType returns those of the values of new variables that make them floats although they are integers: constants like 1e8.
func ofFloatType(values []ast.Expr) (found []ast.Node) {
	for _, value := range values {
		literals, others := 0, 0
		ast.Inspect(value, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if n.Kind == token.FLOAT {
					literals++
				}
			case *ast.BinaryExpr, *ast.UnaryExpr, *ast.ParenExpr, nil:
			default:
				others++
			}
			return true
		})
		if literals > 0 && others == 0 {
			found = append(found, value)
		}
	}
	return found
}

// ofMath reports whether a name is one of package math that isn't an integer constant.
func ofMath(s *ast.SelectorExpr) bool {
	x, ok := s.X.(*ast.Ident)
	name := s.Sel.Name
	return ok && x.Name == "math" && !strings.HasPrefix(name, "MaxInt") && !strings.HasPrefix(name, "MinInt") && !strings.HasPrefix(name, "MaxUint")
}

// TestFloatsAreFound looks at code that has some.
func TestFloatsAreFound(t *testing.T) {
	for code, want := range map[string]int{
		"var x int64 = 1 << 40": 0, "var x float64": 1, "const x = 0.5": 1, "var x = 1e3": 1, "var x int64 = 1e3": 0, "const x = 1e3": 0, "var x = y * 1e3": 0, "func f() { x := 2 * 1e3 }": 1, "var x = []float32{}": 1, "func f(x complex128) {}": 1,
		"var x = math.MaxInt64": 0, "var x = math.Sqrt(2)": 1, "var x = d.InexactFloat64()": 1, "// 0.5 and float64\nvar x = \"0.5\"": 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(floats(file)); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
}
