package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/transparency"
	"github.com/perpetua-exchange/perpetua/streams/transparency/witnesstest"
)

// TestOmniwitness checks that omniwitness, which this project did not write, cosigns the log of a venue and its growth. Then the data
// folder is restored from an older copy, and other records follow: the same key signs a fork. The witness refuses it, and the node and
// the monitor report that.
func TestOmniwitness(t *testing.T) {
	w := witnesstest.NewOmniwitness(t, "witness.example/omni")
	t.Setenv("KAFKA_BROKERS", "") // the log is in the folder
	policy, state := filepath.Join(t.TempDir(), "policy"), filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(policy, []byte(w.Policy()), 0o600); err != nil {
		t.Fatal(err)
	}
	v := newWholeVenue(t, "--witness-policy", policy)
	backup := filepath.Join(v.dir, "backup")
	v.dir = filepath.Join(v.dir, "venue") // the folder above is locked against other tests, and must stay
	v.start()
	t.Cleanup(v.stop)
	key := strings.TrimSpace(string(v.must(200, "", http.MethodGet, "/tlog/trading/0/key", nil).Body))
	w.Start(t, key)
	v.fund("10000", "ANNA", "BEN")
	first := v.cosignedTree(w.Policy(), key, len(v.records("trading")))
	v.stop()
	copyFolder(t, v.dir, backup)

	v.start()
	sell := func(amount string) {
		t.Helper()
		v.must(201, "broker-a", http.MethodPost, annasOrders,
			`{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"`+amount+`","limit_price":"65000.0"}`)
	}
	sell("0.010")
	second := v.cosignedTree(w.Policy(), key, len(v.records("trading")))
	monitor := []string{"monitor", "--url", v.REST + "/tlog/trading/0", "--key", key, "--policy", policy, "--state", state}
	if code, said := v.outcome(nil, monitor...); code != exitDone || second.Size <= first.Size {
		t.Errorf("monitor of the log of %d and then %d records: %d\n%s", first.Size, second.Size, code, said)
	}
	v.stop()

	if err := os.RemoveAll(v.dir); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, backup, v.dir)
	v.start()
	if code, said := v.outcome(nil, "admin", "take-over"); code != exitDone { // a copy starts fenced, and signs nothing
		t.Fatalf("take-over: %d\n%s", code, said)
	}
	v.tokens = make(map[string]string) // from before the take-over
	for range second.Size - first.Size + 10 {
		sell("0.020")
	}
	v.signedTree(int(second.Size) + 1)
	waitFor(t, "the report of the refusal", func() bool {
		said := v.output.said()
		return strings.Contains(said, "a witness contradicts the log") && strings.Contains(said, "it answered 422")
	})
	if up := v.scrape().value("perpetua_tlog_witness_up", "journal", "trading", "witness", "omni"); up != 0 {
		t.Errorf("perpetua_tlog_witness_up is %v", up)
	}
	if last := v.cosignedTree(w.Policy(), key, 0); last.Size >= second.Size {
		t.Errorf("the fork is cosigned: %d records", last.Size)
	}
	monitor[2] = v.REST + "/tlog/trading/0"
	if code, said := v.outcome(nil, monitor...); code != exitFailed || !strings.Contains(said, "ALARM fork") {
		t.Errorf("monitor of the fork: %d\n%s", code, said)
	}
}

// cosignedTree waits until the cosigned checkpoint of the trading journal covers a number of records. It verifies the cosignature.
func (v *venue) cosignedTree(policy, key string, records int) (last *transparency.Opened) {
	v.t.Helper()
	p, err := transparency.ParsePolicy([]byte(policy))
	if err == nil {
		p, err = p.ForLog(key)
	}
	if err != nil {
		v.t.Fatal(err)
	}
	waitFor(v.t, "a cosigned checkpoint", func() bool {
		a := v.do("", http.MethodGet, "/tlog/trading/0/cosigned-checkpoint", nil)
		if a.Status == http.StatusNotFound {
			return false
		}
		if last, err = p.Open(a.Body); err != nil {
			v.t.Fatalf("%d, %v\n%s", a.Status, err, a.Body)
		}
		return last.Size >= int64(records)
	})
	return last
}

// copyFolder copies a folder with the owners and modes of its files, which Postgres checks.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if said, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
}
