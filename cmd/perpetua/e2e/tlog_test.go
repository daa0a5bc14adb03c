package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// signedTree waits until a checkpoint of the trading journal covers a number of records, and verifies it.
func (v *venue) signedTree(records int) tlog.Tree {
	v.t.Helper()
	waitFor(v.t, "the first checkpoint", func() bool { return v.do("", http.MethodGet, "/tlog/trading/0/key", nil).Status == 200 })
	key := strings.TrimSpace(string(v.must(200, "", http.MethodGet, "/tlog/trading/0/key", nil).Body))
	verifier, err := note.NewVerifier(key)
	if err != nil {
		v.t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; {
		n, err := note.Open(v.must(200, "", http.MethodGet, "/tlog/trading/0/checkpoint", nil).Body, note.VerifierList(verifier))
		if err != nil {
			v.t.Fatal(err)
		}
		lines := strings.Split(n.Text, "\n")
		size, err := strconv.Atoi(lines[1])
		if err != nil {
			v.t.Fatal(err)
		}
		root, err := tlog.ParseHash(lines[2])
		if err != nil {
			v.t.Fatal(err)
		}
		if size >= records {
			v.must(200, "", http.MethodGet, strings.TrimPrefix(lines[0], "localhost")+"/checkpoint", nil) // the origin is its URL
			return tlog.Tree{N: int64(size), Hash: root}
		}
		if time.Now().After(deadline) {
			v.t.Fatalf("the checkpoint is of %d records, not of %d\n%s", size, records, v.output)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// tiles reads the tiles of the trading journal's log. It implements tlog.TileReader.
type tiles struct{ base string }

func (tiles) Height() int                     { return 8 }
func (tiles) SaveTiles([]tlog.Tile, [][]byte) {}

func (r tiles) ReadTiles(all []tlog.Tile) (data [][]byte, err error) {
	for _, t := range all {
		a, err := http.Get(r.base + "/tile/" + strings.TrimPrefix(t.Path(), "tile/8/"))
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(a.Body)
		a.Body.Close()
		if err != nil || a.StatusCode != 200 {
			return nil, fmt.Errorf("%s: %s, %v", t.Path(), a.Status, err)
		}
		data = append(data, b)
	}
	return data, nil
}

// TestTransparencyLogs verifies the logs of a venue that is killed and started again, with programs of others. What is signed later
// extends what was signed before.
func TestTransparencyLogs(t *testing.T) {
	t.Parallel()
	v := startVenue(t)
	v.trades()
	before := v.signedTree(len(v.records("trading")))
	v.must(401, "", http.MethodGet, "/tlog/onboarding/0/checkpoint", nil)
	v.kill()
	v.env = append(v.env, "PERPETUA_TLOG_OPEN=onboarding")
	v.start()
	v.must(201, "broker-a", http.MethodPost, annasOrders, `{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.010","limit_price":"65000.0"}`)
	after := v.signedTree(len(v.records("trading")))
	proof, err := tlog.ProveTree(after.N, before.N, tlog.TileHashReader(after, tiles{v.REST + "/tlog/trading/0"}))
	if err == nil {
		err = tlog.CheckTree(proof, after.N, after.Hash, before.N, before.Hash)
	}
	if err != nil || after.N <= before.N {
		t.Errorf("from %d records to %d: %v", before.N, after.N, err)
	}
	v.must(401, "", http.MethodGet, "/tlog/identity/0/checkpoint", nil)
	v.must(401, "", http.MethodGet, "/tlog/identity/0/tile/0/000", nil)
	v.must(200, "", http.MethodGet, "/tlog/onboarding/0/key", nil)
	v.must(404, "", http.MethodGet, "/tlog/trading/1/checkpoint", nil)
	for _, journal := range []string{"trading", "identity", "onboarding"} {
		v.verifiesInPython(journal)
		if halted := v.scrape().value("perpetua_tlog_halted", "journal", journal); halted != 0 {
			t.Errorf("%s: halted is %v", journal, halted)
		}
	}
}

// verifiesInPython has a program that shares no code with this one verify a whole log.
func (v *venue) verifiesInPython(journal string) {
	v.t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			v.t.Fatal(err)
		}
		v.t.Log("there is no python3")
		return
	}
	args := []string{"../../../handlers/tlog/testdata/verify.py", v.REST + "/tlog/" + journal + "/0"}
	if journal == "identity" {
		args = append(args, "", v.token("broker-a"))
	}
	said, err := exec.CommandContext(v.t.Context(), python, args...).CombinedOutput()
	if err != nil {
		v.t.Errorf("%s: %v\n%s", journal, err, said)
	}
	v.t.Logf("%s", said)
}
