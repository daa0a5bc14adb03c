package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLiabilities runs a venue until an instant of funding has passed, kills it, and checks proofs of customers with the program,
// against what the interface and the log say.
func TestLiabilities(t *testing.T) {
	t.Parallel()
	v := startVenue(t)
	v.trades()
	v.must(200, "operator", http.MethodPatch, "/admin/v1/instruments/BTCUSDC_PERP", `{"funding_interval_seconds":60}`)
	var page struct {
		Records []json.RawMessage `json:"records"`
	}
	waitFor(t, "liabilities are recorded", func() bool {
		if err := json.Unmarshal(v.must(200, "", http.MethodGet, "/v1/liabilities?sort=asc", nil).Body, &page); err != nil {
			t.Fatal(err)
		}
		return len(page.Records) > 0
	})
	v.kill()
	v.start()
	var statement struct {
		Position json.Number `json:"position"`
	}
	if err := json.Unmarshal(page.Records[0], &statement); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	proof := v.must(200, "broker-a", http.MethodGet, strings.TrimSuffix(annasOrders, "/orders")+"/liability-proof?position="+statement.Position.String(), nil).Body
	proven, served := file("proof.json", proof), file("statement.json", page.Records[0])
	logged := file("records", []byte(strings.Join(v.records("trading", "--type", "liabilities.recorded"), "\n")))
	tampered := file("tampered.json", []byte(strings.Replace(string(proof), `"value":"`, `"value":"1`, 1)))
	without := func(name string, text []byte, member string) string { // also the value 0, which an absent member would have
		short := regexp.MustCompile(`"`+member+`":("[^"]*"|\d+),`).ReplaceAll(text, nil)
		if len(short) >= len(text) {
			t.Fatalf("there is no %s in %s", member, text)
		}
		return file(name, short)
	}
	records, err := os.ReadFile(logged)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code int
		said string
	}{
		{[]string{"--recorded", without("one.json", page.Records[0], "deficits"), proven}, 1, "deficits is missing"},
		{[]string{"--recorded", without("two.json", page.Records[0], "funding"), proven}, 1, "venue.funding is missing"},
		{[]string{"--recorded", without("three", records, "deficits"), proven}, 1, "deficits is missing"},
		{[]string{proven}, 0, "Compare the root"},
		{[]string{"--recorded", served, proven}, 0, "The proof is valid"},
		{[]string{"--recorded", logged, proven}, 0, "The proof is valid"},
		{[]string{"--json", "--recorded", logged, proven}, 0, `"compared":true`},
		{[]string{"--recorded", served, tampered}, 1, "value: it is"},
		{[]string{"--recorded", proven, proven}, 1, "it is no statement"},
		{[]string{served}, 1, "can't be read"},
		{[]string{filepath.Join(folder, "none")}, 1, "no such file"},
		{nil, 2, "FILE"},
	} {
		cmd := v.command(append([]string{"liabilities", "verify"}, tt.args...)...)
		said, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(strings.ReplaceAll(string(said), `": `, `":`), tt.said) {
			t.Errorf("%v: %d: %s", tt.args, code, said)
		}
	}
}
