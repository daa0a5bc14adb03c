package e2e

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/transparency"
	"github.com/perpetua-exchange/perpetua/streams/transparency/witnesstest"
)

// checks has the page check a file, and wants a text in its result.
func (b *browser) checks(content []byte, want string) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "proof.json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.keys("#check [name=proof]", file)
	b.click("#check [type=submit]")
	b.sees("#check-result", want)
}

// TestCheckPage checks a receipt of a venue, and the proofs of liabilities in the test vectors. Each change is found.
func TestCheckPage(t *testing.T) {
	t.Parallel()
	b := startAuditBrowser(t)
	w, file := startWitness(t)
	policy, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v := startVenue(t, "--witness-policy", file)
	v.fund("1000", "ANNA")
	key := strings.TrimSpace(string(v.must(200, "", http.MethodGet, "/tlog/trading/0/key", nil).Body))
	if err := w.Knows(key); err != nil {
		t.Fatal(err)
	}
	var rows struct {
		Records []struct {
			Code     string
			Sequence int64
		}
	}
	if err := json.Unmarshal(v.must(200, "broker-a", http.MethodGet, "/v1/customers/ANNA/transactions", nil).Body, &rows); err != nil {
		t.Fatal(err)
	}
	var receipt []byte
	waitFor(t, "a checkpoint that the witness has cosigned", func() bool {
		got := v.do("broker-a", http.MethodGet, fmt.Sprintf("/v1/customers/ANNA/transactions/%s/receipt?sequence=%d", rows.Records[0].Code, rows.Records[0].Sequence), nil)
		receipt = got.Body
		return got.Status == 200
	})
	b.open(v.REST + "/check")
	b.click("#check [type=submit]")
	b.sees("#check .fault", "Choose a file")
	b.checks(receipt, "needs attention")
	b.sees("#check .fault", "the key of the log")
	b.paste("#check [name=key]", key)
	b.checks(receipt, fmt.Sprintf("Valid. Record %d of", rows.Records[0].Sequence))
	b.sees("#check-result", "deposit.make, accepted")
	b.sees("#check-shown", "ANNA", "1000")
	b.seesNot("#check-result", "cosigned")
	b.accessible("/check receipt")
	line := strings.Join(strings.Fields(strings.Split(string(policy), "\n")[0])[:3], " ")
	other := "witness w2 " + witnesstest.Start(t, "witness.example/w2").Key().String()
	for text, want := range map[string]string{
		line + "\nquorum w1\n": "have cosigned it",
		string(policy):         "have cosigned it",
		line + "\n" + other + "\ngroup g any w1 w2\nquorum g":                  "have cosigned it",
		line + "\n" + other + "\ngroup g all w1 w2\nquorum g":                  "Not valid: proof: cosignatures are missing",
		line + "\n" + other + "\ngroup g 2 w1 w1\nquorum g":                    "Not valid: policy: w1 is a member twice",
		line + "\n" + line + "\nquorum w1":                                     "Not valid: policy: w1 is no new name",
		strings.Replace(line, " w1 ", " w3 ", 1) + "\n" + line + "\nquorum w1": "Not valid: policy: the key of w1 is used twice",
		other + "\nquorum w2":                                                  "Not valid: proof: cosignatures are missing",
		line:                                                                   "Not valid: policy: it names no quorum",
		line + "\nquorum none":                                                 "The checkpoint covers",
	} {
		b.paste("#check [name=policy]", text)
		b.checks(receipt, want)
	}
	next, err := transparency.NewKey(transparency.Origin{Host: "localhost", Journal: "trading"}, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ keys, policy, want string }{
		{transparency.KeyLine(key, time.Now().Add(time.Hour)), "", "Valid. Record"},
		{transparency.KeyLine(key, time.Now()), string(policy), "have cosigned it"}, // before it retired
		{transparency.KeyLine(key, time.Now()), "", "Not valid: proof: only a retired key"},
		{transparency.KeyLine(key, time.Now()), "quorum none\n", "Not valid: proof: only a retired key"},
		{transparency.KeyLine(key, time.Now().Add(-time.Hour)), string(policy), "Not valid: proof: only a retired key"},
		{key + "\n" + key, "", "Not valid: key of the log: a key is of another log, or occurs twice"},
		{key + "\n" + next.Verifier(), "", "Not valid: key of the log: a key is of another log, or occurs twice"},
		{key + " until tomorrow", "", "Not valid: key of the log: a line is"},
	} {
		b.paste("#check [name=key]", tt.keys)
		b.paste("#check [name=policy]", tt.policy)
		b.checks(receipt, tt.want)
	}
	b.paste("#check [name=key]", key)
	b.paste("#check [name=policy]", "")

	change := func(from []byte, member func(receipt map[string]any)) []byte {
		t.Helper()
		var r map[string]any
		if err := json.Unmarshal(from, &r); err != nil {
			t.Fatal(err)
		}
		member(r)
		changed, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	unit := func(r map[string]any, i int) map[string]any { return r["units"].([]any)[i].(map[string]any) }
	b.checks(change(receipt, func(r map[string]any) {
		unit(r, 1)["unit"] = strings.Replace(unit(r, 1)["unit"].(string), "1000", "9000", 1)
	}), "Not valid: units[1]: it is not a part of this record")
	b.checks(change(receipt, func(r map[string]any) {
		proof := r["proof"].(string)
		r["proof"] = strings.Replace(proof, "index ", "index 1", 1)
	}), "Not valid: proof")
	b.checks(change(receipt, func(r map[string]any) {
		unit(r, 1)["salt"] = strings.TrimSuffix(unit(r, 1)["salt"].(string), "=") + "A" // a zero byte more
	}), "Not valid: units[1]")
	b.checks(change(receipt, func(r map[string]any) { unit(r, 1)["owner"] = "customer/BEN" }), "Not valid: units[1]: the member owner is unknown")
	b.checks(change(receipt, func(r map[string]any) { r["time"] = "today" }), "Not valid: receipt: the member time is unknown")
	b.checks(change(receipt, func(r map[string]any) { r["format"] = "perpetua-receipt@v2" }), "format")
	b.fill("#check [name=key]", "other+"+strings.SplitN(key, "+", 2)[1])
	b.checks(receipt, "Not valid: key of the log")
	b.checks([]byte("{"), "needs attention")

	text, err := os.ReadFile("../../../streams/liabilities/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Trees []struct{ Proofs []json.RawMessage }
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, tree := range vectors.Trees {
		b.checks(tree.Proofs[len(tree.Proofs)-1], "Valid. The balance")
	}
	last := vectors.Trees[len(vectors.Trees)-1].Proofs[0]
	statement := func(p map[string]any) map[string]any { return p["recorded"].(map[string]any) }
	write := func(content []byte) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "statement.json")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	var recorded struct{ Recorded json.RawMessage }
	if err := json.Unmarshal(last, &recorded); err != nil {
		t.Fatal(err)
	}
	for _, nothing := range []string{"null", "false", "0", `""`, "[]"} {
		b.keys("#check [name=statement]", write([]byte(nothing)))
		b.checks(last, "needs attention")
		b.sees("#check .fault", "not a JSON object")
	}
	b.keys("#check [name=statement]", write(recorded.Recorded))
	b.checks(last, "The recorded statement has the same root")
	b.checks(change(last, func(p map[string]any) { p["customer_code"] = "SOMEBODY" }), "Not valid: parts[0]: the path leads to another root")
	b.checks(change(last, func(p map[string]any) { statement(p)["timestamp"] = "2020-01-01T00:00:00.000000Z" }), "Not valid: timestamp: the recorded statement has")
	b.checks(change(last, func(p map[string]any) { statement(p)["deficits"] = "7" }), "is not what was paid in")
	b.checks(change(last, func(p map[string]any) { p["note"] = "" }), "Not valid: proof of liabilities: the member note is unknown")
	b.checks(change(last, func(p map[string]any) { p["parts"].([]any)[0].(map[string]any)["note"] = "" }), "Not valid: parts[0]: the member note is unknown")
	b.checks(change(last, func(p map[string]any) { // a part that is left out, also of the value
		parts := p["parts"].([]any)[1:]
		sum := new(big.Int)
		for _, part := range parts {
			value, _ := new(big.Int).SetString(part.(map[string]any)["value"].(string), 10)
			sum.Add(sum, value)
		}
		p["parts"], p["value"] = parts, sum.String()
	}), "Not valid: parts: the nonce splits the value into others")
	b.wantNoComplaints()
}
