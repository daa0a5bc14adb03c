package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// writesParquet writes the Parquet files of the journal trading from the topic and from other sources, which arguments name. The files
// must be the same.
func (v *venue) writesParquet(t *testing.T, others ...[]string) {
	t.Helper()
	files := func(source ...string) map[string]string {
		to := t.TempDir()
		v.tool(append([]string{"log", "parquet", "--journal", "trading", "--to", to}, source...)...)
		paths, err := filepath.Glob(filepath.Join(to, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[string]string)
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, _ := filepath.Rel(to, path)
			all[name] = string(content)
		}
		return all
	}
	want := files()
	if len(want) < 16 { // several ranges of eight tables
		t.Errorf("the topic gives the files %v", slices.Sorted(maps.Keys(want)))
	}
	for _, source := range others {
		if got := files(source...); !maps.Equal(got, want) {
			t.Errorf("%v gives the files %v, and the topic %v", source, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}
