package projectiontest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// AnalystsVariable names the environment variable with the folder of the tools that Analysts returns.
const AnalystsVariable = "PERPETUA_TEST_ANALYSTS"

// DBT is the folder of the dbt project, relative to a package two levels below the root of the repository.
const DBT = "../../schemas/dbt"

// Analysts is a Python environment with dbt and DuckDB, which has the extensions ducklake and postgres_scanner.
type Analysts struct{ dir string }

// NewAnalysts returns the environment in the folder of AnalystsVariable, and creates it from a package index if it is missing. It
// skips the test if it can't, or if no folder is named.
func NewAnalysts(t testing.TB) Analysts {
	t.Helper()
	a := Analysts{os.Getenv(AnalystsVariable)}
	if a.dir == "" {
		t.Skip(AnalystsVariable + " names no folder for DuckDB and dbt: make analysts")
	}
	var wanted []byte
	var install []string
	for _, name := range []string{"requirements.txt", "duckdb.txt"} {
		text, err := os.ReadFile(filepath.Join(DBT, name))
		if err != nil {
			t.Fatal(err)
		}
		wanted, install = append(wanted, text...), append(install, "--requirement", filepath.Join(DBT, name))
	}
	stamp := filepath.Join(a.dir, "installed.txt")
	if have, err := os.ReadFile(stamp); err == nil && bytes.Equal(have, wanted) {
		return a
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	if out, err := exec.CommandContext(t.Context(), python, "-m", "venv", a.dir).CombinedOutput(); err != nil {
		t.Skipf("no Python environment can be made: %v\n%s", err, out)
	}
	args := append([]string{"install", "--quiet", "--disable-pip-version-check"}, install...)
	if out, err := exec.CommandContext(t.Context(), a.Tool("pip"), args...).CombinedOutput(); err != nil {
		t.Skipf("the package index can't be reached: %v\n%s", err, out)
	}
	if err := os.WriteFile(stamp, wanted, 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// Tool returns the path of a program in the environment.
func (a Analysts) Tool(name string) string { return filepath.Join(a.dir, "bin", name) }

// runSQL loads the extensions, runs the statements on standard input, and prints the rows of the last one.
const runSQL = `import decimal, duckdb, glob, os, sys
db, packages = duckdb.connect(), os.path.dirname(os.path.dirname(duckdb.__file__))
for name in ("ducklake", "postgres_scanner"):
    db.execute("LOAD '" + glob.glob(packages + "/duckdb_extension_" + name + "/extensions/*/" + name + ".duckdb_extension")[0] + "'")
for row in db.sql(sys.stdin.read()).fetchall():
    print("\t".join(format(value, "f") if isinstance(value, decimal.Decimal) else str(value) for value in row))`

// Duck runs statements in DuckDB and returns the rows of the last one.
func (a Analysts) Duck(t testing.TB, sql string) (rows [][]string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), a.Tool("python"), "-c", runSQL)
	var failed bytes.Buffer
	c.Stdin, c.Stderr = strings.NewReader(sql), &failed
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v in %s\n%s", err, sql, &failed)
	}
	for line := range strings.Lines(string(out)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows
}
