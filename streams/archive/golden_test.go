package archive

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/pack/packtest"
)

const goldenFile = "testdata/archive1.json"

// TestGolden reads an archive that an earlier build has written: its blobs by their keys. It must stay readable for ever, so a new
// form gets another file. PERPETUA_UPDATE_GOLDEN=1 writes the file if there is none.
func TestGolden(t *testing.T) {
	p := newTopic(t, 11).grow(140)
	s := newMemory()
	text, err := os.ReadFile(goldenFile)
	switch {
	case err == nil:
		if err := json.Unmarshal(text, &s.blobs); err != nil {
			t.Fatal(err)
		}
	case os.Getenv(packtest.Update) != "":
		if err := p.archive(t.Context(), testConfig(t, s)); err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(s.blobs, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(goldenFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Fatal(err)
	}
	checkEqual(t, read(t, testConfig(t, s), 0, math.MaxInt64), p.records)
	a, err := Open(t.Context(), testConfig(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if sum, err := a.Verify(t.Context(), nil); err != nil || sum.Ranges != 1 || sum.Tail != 12 {
		t.Errorf("%+v, %v", sum, err)
	}
}
