package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/transparency/witnesstest"
)

// startWitness runs a witness, and returns it with the file of a policy that asks for it.
func startWitness(t *testing.T) (w *witnesstest.Witness, policy string) {
	t.Helper()
	w = witnesstest.Start(t, "witness.example/w1")
	policy = filepath.Join(t.TempDir(), "policy")
	if err := os.WriteFile(policy, []byte("witness w1 "+w.Key().String()+" "+w.URL+"\nquorum w1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w, policy
}

// receipted is a trade that has a receipt.
type receipted struct {
	Code     string
	Customer string `json:"customer_code"`
	Sequence json.Number
}

// firstTrade returns the oldest trade.
func (v *venue) firstTrade() receipted {
	v.t.Helper()
	var trades struct{ Records []receipted }
	body := v.must(http.StatusOK, "broker-a", http.MethodGet, "/v1/trades?sort=asc&page_size=1", nil).Body
	if err := json.Unmarshal(body, &trades); err != nil || len(trades.Records) != 1 {
		v.t.Fatalf("%v: %s", err, body)
	}
	return trades.Records[0]
}

// receipt returns the path of the trade's receipt.
func (r *receipted) receipt() string {
	return "/v1/customers/" + r.Customer + "/trades/" + r.Code + "/receipt?sequence=" + r.Sequence.String()
}

// TestReceipts gets the receipt of a trade from a venue with a witness, and verifies it with the venue stopped. The witness is away at
// first, which delays the receipt and no order.
func TestReceipts(t *testing.T) {
	t.Parallel()
	w, policy := startWitness(t)
	v := startVenue(t, "--witness-policy", policy)
	v.trades()
	trade := v.firstTrade()
	at := trade.receipt()
	v.signedTree(len(v.records("trading"))) // it is signed, and the witness does not know the log yet
	v.must(404, "", http.MethodGet, "/tlog/trading/0/cosigned-checkpoint", nil)
	key := strings.TrimSpace(string(v.must(200, "", http.MethodGet, "/tlog/trading/0/key", nil).Body))
	if err := w.Knows(key); err != nil {
		t.Fatal(err)
	}
	var receipt answer
	for deadline := time.Now().Add(patience); receipt.Status != 200; {
		if receipt = v.do("broker-a", http.MethodGet, at, nil); receipt.Status != 200 && receipt.Status != 503 || time.Now().After(deadline) {
			t.Fatalf("%d %s\n%s", receipt.Status, receipt.Body, v.output)
		}
	}
	file := filepath.Join(t.TempDir(), "receipt.json")
	if err := os.WriteFile(file, receipt.Body, 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "state")
	if code, said := v.outcome(nil, "monitor", "--url", v.REST+"/tlog/trading/0", "--key", key, "--policy", policy, "--state", state); code != 0 {
		t.Errorf("monitor: %d\n%s", code, said)
	}
	if up := v.scrape().value("perpetua_tlog_witness_up", "journal", "trading", "witness", "w1"); up != 1 {
		t.Errorf("perpetua_tlog_witness_up is %v", up)
	}
	v.asOfRoots(trade.Customer, file, key)
	v.stop()
	if code, said := v.outcome(nil, "receipt", "verify", file, "--key", key, "--policy", policy); code != 0 ||
		!strings.Contains(said, "record "+trade.Sequence.String()+" of localhost/tlog/trading/0/") || !strings.Contains(said, "cosigned by w1") || !strings.Contains(said, trade.Code) {
		t.Errorf("receipt verify: %d\n%s", code, said)
	}
	if err := os.WriteFile(file, receipt.Body[:len(receipt.Body)-9], 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := v.outcome(nil, "receipt", "verify", file, "--key", key, "--policy", policy); code != 1 || !strings.Contains(said, file) {
		t.Errorf("of a receipt that is cut off: %d\n%s", code, said)
	}
	if python, err := exec.LookPath("python3"); err == nil {
		if err := os.WriteFile(file, receipt.Body, 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.CommandContext(t.Context(), python, "../../../streams/receipt/testdata/verify_receipt.py", file, key, policy).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, said)
		}
	}
	if code, said := v.outcome(nil, "monitor", "--url", v.REST+"/tlog/trading/0", "--key", key, "--state", state); code != 1 || !strings.Contains(said, "unreachable") {
		t.Errorf("monitor of a venue that has stopped: %d\n%s", code, said)
	}
}

// asOfRoots asks for the balances of a customer as of the record of a receipt, by its root and by another one.
func (v *venue) asOfRoots(customer, file, key string) {
	v.t.Helper()
	out, err := v.command("receipt", "verify", file, "--key", key, "--json").Output()
	var shown struct {
		Sequence json.Number
		Root     string
	}
	if err == nil {
		err = json.Unmarshal(out, &shown)
	}
	if err != nil {
		v.t.Fatalf("%v\n%s", err, out)
	}
	at := "/v1/customers/" + customer + "/balances?as_of=trading/0@"
	v.must(200, "broker-a", http.MethodGet, at+shown.Sequence.String()+":"+url.QueryEscape(shown.Root), nil)
	for _, other := range []string{"0:" + url.QueryEscape(shown.Root), shown.Sequence.String() + ":" + strings.Repeat("A", 43) + "="} {
		if a := v.must(409, "broker-a", http.MethodGet, at+other, nil); a.code() != "ROOT_MISMATCH" {
			v.t.Errorf("as of trading/0@%s: %s", other, a.Body)
		}
	}
}
