package term_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestATermKnowsNoKafka: neither this package nor anything that it imports reaches a network.
func TestATermKnowsNoKafka(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for path := range strings.Lines(string(out)) {
		path = strings.TrimSpace(path)
		if strings.Contains(path, "franz-go") || path == "net" || strings.HasSuffix(path, "streams/journal") {
			t.Errorf("it imports %s", path)
		}
	}
}
