package admin_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

const imports = base + "/imports"

// openingHeader is the first line of a file.
const openingHeader = `{"type":"perpetua-opening","version":1,"source":"books of the old venue"}`

// openingFile returns a file with an end line that fits.
func openingFile(balances int, balanceTotal string, positions int, positionTotal string, lines ...string) string {
	body := openingHeader + "\n" + strings.Join(lines, "\n") + "\n"
	return body + fmt.Sprintf(`{"type":"end","balances":%d,"balance_total":"%s","positions":%d,"position_total":"%s","sha256":"%x"}`, balances, balanceTotal, positions, positionTotal,
		sha256.Sum256([]byte(body))) + "\n"
}

func shaOf(file string) string {
	sum := sha256.Sum256([]byte(file))
	return hex.EncodeToString(sum[:])
}

// goodFile takes over the accounts of.
var goodFile = openingFile(2, "3000.5", 2, "0.02",
	`{"type":"balance","customer_code":"A-1","currency":"USDC","amount":"1000.5"}`,
	`{"type":"balance","customer_code":"A-2","currency":"USDC","amount":"2000"}`,
	`{"type":"position","customer_code":"A-1","symbol":"BTCUSDC_PERP","amount":"0.01","entry_price":"64000.12345678"}`,
	`{"type":"position","customer_code":"A-2","symbol":"BTCUSDC_PERP","amount":"-0.01","entry_price":"65000","lot":1}`)

// openingVenue is a venue with two customers and an index price.
func openingVenue(t *testing.T) *tradingtest.Venue {
	v := tradingtest.New(t)
	for _, code := range []string{"A-1", "A-2"} {
		v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"`+code+`"}`).Want(201)
	}
	v.Send("operator", "POST", base+"/index-prices/BTCUSDC_PERP", `{"price":"65000"}`).Want(200)
	return v
}

func sendFile(v *tradingtest.Venue, user, path, file string, headers ...string) *tradingtest.Reply {
	return v.Send(user, "POST", path, file, append([]string{"Content-Type", "application/x-ndjson"}, headers...)...)
}

// TestImports imports a file once, whoever sends it how often, and shows it.
func TestImports(t *testing.T) {
	v := openingVenue(t)
	sendFile(v, "broker-a", imports, goodFile).Code(403, "FORBIDDEN")
	sendFile(v, "auditor", imports, goodFile).Code(403, "FORBIDDEN")
	v.Send("operator", "POST", imports, goodFile, "Content-Type", "application/json").Code(415, "UNSUPPORTED_MEDIA_TYPE")
	sendFile(v, "operator", imports+"?dry_run=perhaps", goodFile).Code(400, "VALIDATION_FAILED")
	before := len(v.Trading.Entries())
	want(t, sendFile(v, "operator", imports+"?dry_run=true", goodFile).Want(200), "dry_run", "true", "balances", "2", "balance_total", "3000.5", "positions", "2",
		"clearing", `[{"amount":"9.99876543","symbol":"BTCUSDC_PERP"}]`, "imported_sequence", "", "sha256", shaOf(goodFile))
	if now := len(v.Trading.Entries()); now != before {
		t.Errorf("a dry run left %d records", now-before)
	}
	v.Send("auditor", "GET", imports+"/"+shaOf(goodFile), "").Code(404, "UNKNOWN_IMPORT")

	made := sendFile(v, "operator", imports, goodFile, "Idempotency-Key", "k").Want(201)
	want(t, made, "source", "books of the old venue", "balances", "2", "balance_total", "3000.5", "positions", "2", "imported_by", "operator")
	for _, headers := range [][]string{{"Idempotency-Key", "k"}, {"Idempotency-Key", "other"}, nil} {
		if again := sendFile(v, "operator", imports, goodFile, headers...); again.Status != 200 && again.Status != 201 || again.Body != made.Body {
			t.Errorf("the same file again gets %d %s", again.Status, again.Body)
		}
	}
	sendFile(v, "operator", imports, openingFile(1, "1", 0, "0", `{"type":"balance","customer_code":"A-1","currency":"USDC","amount":"1"}`), "Idempotency-Key", "k").Code(409, "IDEMPOTENCY_KEY_REUSED")
	if now := len(v.Trading.Entries()); now != before+1 {
		t.Errorf("one import left %d records", now-before)
	}
	want(t, sendFile(v, "operator", imports+"?dry_run=true", goodFile).Want(200), "imported_sequence", made.Text("sequence"))
	if shown := v.Send("auditor", "GET", imports+"/"+shaOf(goodFile), "").Want(200); shown.Body != made.Body {
		t.Errorf("shown as %s", shown.Body)
	}
	if listed := v.Send("auditor", "GET", imports, "").Want(200); !ordered(listed.Body, strings.TrimSpace(made.Body), `"total":1`) {
		t.Errorf("listed as %s", listed.Body)
	}
	if summary := v.Send("broker-a", "GET", "/v1/customers/A-1/account-summary", "").Want(200); !ordered(summary.Body, `"balance":"1000.5"`, `"unrealised_pnl":"9.99876543"`) {
		t.Errorf("the account is %s", summary.Body)
	}
}

// TestRefusedImports gets all errors of a file in one answer, and changes nothing.
func TestRefusedImports(t *testing.T) {
	v := openingVenue(t)
	before := len(v.Trading.Entries())
	balance := `{"type":"balance","customer_code":"A-1","currency":"USDC","amount":"1"}`
	good := openingFile(1, "1", 0, "0", balance)
	for name, c := range map[string]struct {
		file   string
		status int
		want   []string
	}{
		"empty":            {"", 400, []string{"line[1].type", "NOT_AN_OPENING_FILE"}},
		"another file":     {`{"customers":[]}`, 400, []string{"line[1].type", "NOT_AN_OPENING_FILE"}},
		"another version":  {strings.Replace(good, `"version":1`, `"version":2`, 1), 400, []string{"line[1].version", "UNKNOWN_VERSION"}},
		"another journal":  {strings.Replace(good, `"version":1`, `"version":1,"journal":"x"`, 1), 400, []string{"line[1].journal"}},
		"cut after a line": {openingHeader + "\n" + balance + "\n", 400, []string{"line[2]", "FILE_INCOMPLETE"}},
		"cut in a line":    {good[:len(good)-90], 400, []string{"line[3]", "MALFORMED_JSON", "FILE_INCOMPLETE"}},
		"more after it":    {good + balance, 400, []string{"line[4]", "TRAILING_DATA"}},
		"a changed amount": {strings.Replace(good, `"amount":"1"`, `"amount":"2"`, 1), 400, []string{"line[3].sha256", "CHECKSUM_MISMATCH"}},
		"another count":    {openingFile(2, "1", 0, "0", balance), 400, []string{"line[3]", "COUNT_MISMATCH"}},
		"other sums":       {openingFile(1, "2", 0, "1", balance), 400, []string{"line[3].balance_total", "SUM_MISMATCH", "line[3].position_total"}},
		"no lines":         {openingHeader + "\n" + good[strings.LastIndex(good, `{"type":"end"`):], 400, []string{"CHECKSUM_MISMATCH"}},
		"all errors of the lines": {openingFile(9, "1", 0, "0", `{"type":"loan"}`, `{"type":"balance","customer_code":7,"currency":"EUR","amount":"x","more":1}`, balance, balance, "", "[]"), 400,
			[]string{"line[2].type", "line[3].customer_code", "line[3].currency", "line[3].amount", "line[3].more", "line[6]", "line[7]"}},
		"a bad source": {strings.Replace(openingFile(1, "1", 0, "0", balance), "books of the old venue", strings.Repeat("x", 65), 1), 400, []string{"CHECKSUM_MISMATCH"}},
		"a long code": {openingFile(1, "1", 0, "0", `{"type":"balance","customer_code":"`+strings.Repeat("x", 33)+`","currency":"USDC","amount":"1"}`), 400,
			[]string{"line[2].customer_code", "INVALID_VALUE"}},
		"an amount without a price": {openingFile(0, "0", 1, "1", `{"type":"position","customer_code":"A-1","symbol":"BTCUSDC_PERP","amount":"1","lot":63}`), 400,
			[]string{"line[2].entry_price", "REQUIRED", "line[2].lot", "OUT_OF_RANGE"}},
		"zero": {openingFile(1, "0", 1, "0", `{"type":"balance","customer_code":"A-1","currency":"USDC","amount":"0"}`,
			`{"type":"position","customer_code":"A-1","symbol":"BTCUSDC_PERP","amount":"0","entry_price":"0"}`), 400, []string{"line[2].amount", "line[3].amount", "line[3].entry_price"}},
		"unknown customers": {openingFile(3, "3", 0, "0", `{"type":"balance","customer_code":"B-1","currency":"USDC","amount":"1"}`, balance,
			`{"type":"balance","customer_code":"B-2","currency":"USDC","amount":"1"}`), 422, []string{"IMPORT_REFUSED", "line[2].customer_code", "UNKNOWN_CUSTOMER", "line[4].customer_code"}},
		"one side": {openingFile(1, "1000", 1, "0.01", `{"type":"balance","customer_code":"A-1","currency":"USDC","amount":"1000"}`,
			`{"type":"position","customer_code":"A-1","symbol":"BTCUSDC_PERP","amount":"0.01","entry_price":"65000"}`), 422, []string{"line[3].symbol", "POSITIONS_UNBALANCED"}},
		"another venue": {func() string {
			header := strings.Replace(openingHeader, `"version":1`, `"version":1,"journal":"00000000-0000-0000-0000-000000000009"`, 1)
			return strings.Replace(reheaded(header, balance), "", "", 1)
		}(), 422, []string{"line[1].journal", "FOREIGN_JOURNAL"}},
	} {
		for _, path := range []string{imports, imports + "?dry_run=true"} {
			r := sendFile(v, "operator", path, c.file).Want(c.status)
			if !ordered(r.Body, c.want...) {
				t.Errorf("%s: %s", name, r.Body)
			}
		}
	}
	many := make([]string, 301)
	for i := range many {
		many[i] = balance
	}
	if r := sendFile(v, "operator", imports, openingFile(300, "300", 0, "0", many...)).Want(400); !ordered(r.Body, "line[303]", "TOO_MANY_LINES") {
		t.Errorf("too many lines: %s", r.Body)
	}
	if r := sendFile(v, "operator", imports, openingFile(300, "300", 0, "0", many[:300]...)).Want(422); strings.Count(r.Body, "LINE_REPEATED") != 100 {
		t.Errorf("the errors are not limited: %s", r.Body)
	}
	sendFile(v, "operator", imports, strings.Repeat(" ", 2<<20)).Code(413, "BODY_TOO_LARGE")
	if now := len(v.Trading.Entries()); now != before {
		t.Errorf("refused files left %d records", now-before)
	}
}

// reheaded returns a file of one balance of 1 with another header.
func reheaded(header, line string) string {
	body := header + "\n" + line + "\n"
	return body + fmt.Sprintf(`{"type":"end","balances":1,"balance_total":"1","positions":0,"position_total":"0","sha256":"%x"}`, sha256.Sum256([]byte(body)))
}

// TestImportsWithTwoPersons: under a policy, a file is proposed by one person and confirmed by another.
func TestImportsWithTwoPersons(t *testing.T) {
	v := openingVenue(t)
	v.Send("operator", "POST", base+"/users", `{"username":"olga","password":"a good password","broker":"venue","scopes":["operator","read"]}`).Want(201)
	v.Send("operator", "PUT", base+"/four-eyes/trading", `{"rules":[{"action":"opening.import","threshold":"3000"}]}`).Want(200)
	made := sendFile(v, "operator", imports, goodFile).Want(202)
	want(t, made, "action", "opening.import", "status", "open")
	if again := sendFile(v, "operator", imports, goodFile, "Idempotency-Key", "k").Want(202); again.Text("id") != made.Text("id") {
		t.Errorf("the file is proposed again: %s", again.Body)
	}
	v.Send("auditor", "GET", imports+"/"+shaOf(goodFile), "").Code(404, "UNKNOWN_IMPORT")
	want(t, v.Send("olga", "POST", proposals+"/"+made.Text("id")+"/confirm", "").Want(200), "status", "confirmed")
	want(t, v.Send("auditor", "GET", imports+"/"+shaOf(goodFile), "").Want(200), "imported_by", "operator")
	sendFile(v, "olga", imports, goodFile).Want(200)
}
