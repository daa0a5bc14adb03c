package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAuditVerify verifies the journals of a running venue against its signed checkpoint, an archive and a file of them, and finds
// a row that was changed, also when the venue has stopped.
func TestAuditVerify(t *testing.T) {
	t.Parallel()
	v := startVenue(t)
	v.fund("10000", "ANNA")
	v.signedTree(5)
	dir := t.TempDir()
	write := func(name, path string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, v.must(200, "", http.MethodGet, path, nil).Body, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	key, checkpoint := write("key", "/tlog/trading/0/key"), write("checkpoint", "/tlog/trading/0/checkpoint")
	verify := func(args ...string) string {
		t.Helper()
		out, err := v.command(append([]string{"audit", "verify"}, args...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "decided again as the same bytes") {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := verify("--rules", "--checkpoint", checkpoint, "--key", key); !strings.Contains(out, "records of the signed checkpoint") ||
		!strings.Contains(out, "follow the independent model") || !strings.Contains(out, "the read models equal the log") {
		t.Errorf("topics: %s", out)
	}
	bucket, file := "file://"+filepath.Join(dir, "archive"), filepath.Join(dir, "log.jsonl.zst")
	for _, args := range [][]string{{"log", "archive", "--to", bucket}, {"log", "copy", "--from", v.dir, "--to", file}} {
		if out, err := v.command(args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	if out := verify("--archive", bucket, "--checkpoint", checkpoint, "--key", key); !strings.Contains(out, "records of the signed checkpoint") {
		t.Errorf("archive: %s", out)
	}
	verify("--file", file)

	db := v.database()
	_, err := db.Exec(context.Background(), `UPDATE balances SET balance = 1 WHERE customer_code = 'ANNA'`)
	db.Close(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"while the venue runs", "after it has stopped"} {
		if out, err := v.command("audit", "verify").CombinedOutput(); err == nil || !strings.Contains(string(out), "ANNA, currency USDC): balance is 1, ") {
			t.Errorf("a row was changed, %s: %v\n%s", when, err, out)
		}
		verify("--rows=false")
		v.stop()
	}
}
