package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpeningIsImported imports balances and positions with the command, kills the venue, and sends the same file again. Then
// the positions trade and close, and the verifiers agree with the log and the rows.
func TestOpeningIsImported(t *testing.T) {
	t.Parallel()
	v := startVenue(t, "--demo=false")
	for _, code := range []string{"EVA", "ADAM"} {
		v.must(201, "broker-a", http.MethodPost, "/v1/customers", `{"customer_code":"`+code+`"}`)
	}
	v.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/BTCUSDC_PERP", `{"price":"65000"}`)
	body := strings.Join([]string{`{"type":"perpetua-opening","version":1,"source":"books of the old venue"}`,
		`{"type":"balance","customer_code":"EVA","currency":"USDC","amount":"1000.5"}`,
		`{"type":"balance","customer_code":"ADAM","currency":"USDC","amount":"2000"}`,
		`{"type":"position","customer_code":"EVA","symbol":"BTCUSDC_PERP","amount":"0.01","entry_price":"64000.12345678"}`,
		`{"type":"position","customer_code":"ADAM","symbol":"BTCUSDC_PERP","amount":"-0.01","entry_price":"65000"}`}, "\n") + "\n"
	file := filepath.Join(t.TempDir(), "opening.ndjson")
	write := func(sum [32]byte) {
		t.Helper()
		end := fmt.Sprintf(`{"type":"end","balances":2,"balance_total":"3000.5","positions":2,"position_total":"0.02","sha256":"%x"}`, sum)
		if err := os.WriteFile(file, []byte(body+end), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write([32]byte{})
	if out, err := v.command("admin", "imports", "make", file).CombinedOutput(); err == nil || !strings.Contains(string(out), "\n  line[6].sha256 CHECKSUM_MISMATCH") {
		t.Errorf("a damaged file is imported: %v\n%s", err, out)
	}
	write(sha256.Sum256([]byte(body)))
	if out, err := v.command("admin", "imports", "make", file, "--dry-run", "true").CombinedOutput(); err != nil || !strings.Contains(string(out), `"9.99876543"`) {
		t.Fatalf("a dry run: %v\n%s", err, out)
	}
	first := v.importFile(file)
	v.kill()
	v.start()
	if again := v.importFile(file); again != first || again.Sequence == 0 {
		t.Errorf("the same file again is %+v, and was %+v", again, first)
	}
	if a := v.must(200, "auditor", http.MethodGet, "/admin/v1/imports/"+first.SHA256, nil); a.get("imported_by") != "operator" {
		t.Errorf("the import is %s", a.Body)
	}

	order := func(customer, action, price string) {
		t.Helper()
		v.must(201, "broker-a", http.MethodPost, "/v1/customers/"+customer+"/orders",
			`{"symbol":"BTCUSDC_PERP","action":"`+action+`","type":"limit","amount":"0.01","limit_price":"`+price+`","reduce_only":true,"time_in_force":"GTC"}`)
	}
	order("ADAM", "buy", "65000")
	order("EVA", "sell", "65000")
	for code, want := range map[string]string{"EVA": "1010.17376543", "ADAM": "1999.87"} { // with the profit, less the fees
		if a := v.must(200, "broker-a", http.MethodGet, "/v1/customers/"+code+"/account-summary", nil); !strings.Contains(string(a.Body), `"balance":"`+want+`"`) ||
			!strings.Contains(string(a.Body), `"used_margin":"0"`) {
			t.Errorf("%s has %s", code, a.Body)
		}
	}
	if a := v.must(200, "broker-a", http.MethodGet, "/v1/customers/EVA/transactions", nil); !strings.Contains(string(a.Body), fmt.Sprintf(`"opening:%d:2"`, first.Sequence)) {
		t.Errorf("the transactions are %s", a.Body)
	}
	if out, err := v.command("audit", "verify", "--rules").CombinedOutput(); err != nil {
		t.Errorf("the log does not verify: %v\n%s", err, out)
	}
}

// imported is the answer to an import.
type imported struct {
	SHA256   string `json:"sha256"`
	Sequence int64  `json:"sequence"`
	Created  string `json:"created"`
}

// importFile imports a file with the command.
func (v *venue) importFile(file string) (out imported) {
	v.t.Helper()
	text, err := v.command("admin", "imports", "make", file).Output()
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		v.t.Fatalf("the file is not imported: %v\n%s", err, text)
	}
	return out
}
