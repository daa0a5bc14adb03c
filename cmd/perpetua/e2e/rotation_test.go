package e2e

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/altered"
	"github.com/perpetua-exchange/perpetua/streams/receipt"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// rotating is a venue with a witness, whose checkpoint key is rotated.
type rotating struct {
	*venue
	policy string // file
}

// key returns the newest key, and list the list of all.
func (v *rotating) key() string  { return v.text("/tlog/trading/0/key") }
func (v *rotating) list() string { return v.text("/tlog/trading/0/keys") }

func (v *rotating) text(path string) string {
	v.t.Helper()
	return strings.TrimSpace(string(v.must(200, "", http.MethodGet, path, nil).Body))
}

// signedBy waits until a checkpoint covers a number of records, which each of the keys alone verifies, and no other of the list.
func (v *rotating) signedBy(records int, keys ...string) {
	v.t.Helper()
	var note []byte
	waitFor(v.t, "a checkpoint", func() bool {
		a := v.do("", http.MethodGet, "/tlog/trading/0/checkpoint", nil)
		o, err := policyOf(v.t, keys[0]).Open(a.Body)
		note = a.Body
		return a.Status == 200 && err == nil && o.Size >= int64(records)
	})
	for line := range strings.Lines(v.list()) {
		key := strings.Fields(line)[0]
		if _, err := policyOf(v.t, key).Open(note); (err == nil) != slices.Contains(keys, key) {
			v.t.Errorf("%s: %v\n%s", key, err, note)
		}
	}
}

func policyOf(t testing.TB, keys string) *transparency.Policy {
	t.Helper()
	p, err := transparency.NewPolicy().ForLog(keys)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// verifies runs perpetua receipt verify on a file.
func (v *rotating) verifies(file, keys string, want int, parts ...string) {
	v.t.Helper()
	code, said := v.outcome(nil, "receipt", "verify", file, "--key", keys, "--policy", v.policy)
	if code != want || slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(said, p) }) {
		v.t.Errorf("receipt verify: %d, want %d and %q\n%s", code, want, parts, said)
	}
	if python, err := exec.LookPath("python3"); err == nil {
		said, err := exec.CommandContext(v.t.Context(), python, "../../../streams/receipt/testdata/verify_receipt.py", file, keys, v.policy).CombinedOutput()
		if (err == nil) != (want == exitDone) {
			v.t.Errorf("in Python: %v\n%s", err, said)
		}
	}
}

// save writes the response to a request into a file, once it has one.
func (v *rotating) save(user, path string) string {
	v.t.Helper()
	file := filepath.Join(v.t.TempDir(), "receipt.json")
	waitFor(v.t, path, func() bool {
		a := v.do(user, http.MethodGet, path, nil)
		return a.Status == 200 && os.WriteFile(file, a.Body, 0o600) == nil
	})
	return file
}

// TestCheckpointKeyIsRotated rotates the key that signs checkpoints. The venue is killed right after that, and loses the signed trees in
// Postgres. After the 30 days it lacks the new key for a while, and the proof of the rotation.
func TestCheckpointKeyIsRotated(t *testing.T) {
	t.Parallel()
	w, policy := startWitness(t)
	v := &rotating{startVenue(t, "--witness-policy", policy, "--accept-clock"), policy}
	v.trades()
	v.signedTree(len(v.records("trading")))
	old := v.key()
	if err := w.Knows(old); err != nil {
		t.Fatal(err)
	}
	r := v.firstTrade()
	before := v.save("broker-a", r.receipt())

	if code, said := v.outcome(nil, "admin", "checkpoint-keys", "rotate", "trading"); code != exitDone || !strings.Contains(said, old) {
		t.Fatalf("rotate: %d\n%s", code, said)
	}
	v.kill()
	v.empty("signed_trees", "cosigned_trees")
	v.start()
	next := strings.Fields(strings.Split(v.list(), "\n")[1])[0]
	v.signedBy(len(v.records("trading")), next, old)
	if got := v.key(); got != next {
		t.Errorf("the key is %s, and the list has %s", got, next)
	}
	if code, said := v.outcome(nil, "admin", "checkpoint-keys", "rotate", "trading"); code == exitDone || !strings.Contains(said, "CHECKPOINT_KEYS_OVERLAP") {
		t.Errorf("rotate again: %d\n%s", code, said)
	}
	if early := v.files("keys", "tlog", "localhost", "tlog", "trading", "0", "*", "3"); len(early) > 0 {
		t.Errorf("a rotation that is refused makes %v", early)
	}
	rotation := v.save("", "/tlog/trading/0/keys/2")
	v.must(404, "", http.MethodGet, "/tlog/trading/0/keys/3", nil)
	v.verifies(rotation, v.list(), exitDone)
	v.isSignedBy(rotation, old, next)
	if _, said := v.outcome(nil, "receipt", "verify", rotation, "--key", old); !strings.Contains(said, "checkpoint_key.rotate") || !strings.Contains(said, next) {
		t.Errorf("the rotation does not show the next key:\n%s", said)
	}
	v.knowsRetirement(before, old, next)
	v.stop()
	w.Away(true) // it would cosign the tree that both keys have signed
	v.outlives(next, old)
	v.isMonitored(old)
}

// isSignedBy verifies a receipt with each of the keys alone.
func (v *rotating) isSignedBy(file string, keys ...string) (last *receipt.Verified) {
	v.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, key := range keys {
		if last, err = receipt.Verify(text, policyOf(v.t, key)); err != nil {
			v.t.Fatalf("%s, with %s: %v", file, key, err)
		}
	}
	return last
}

// knowsRetirement verifies a receipt that only the old key signed, and that was cosigned just now.
func (v *rotating) knowsRetirement(file, old, next string) {
	v.t.Helper()
	retiring := func(at time.Time) string { return transparency.KeyLine(old, at) + next }
	v.isSignedBy(file, old, retiring(time.Now().Add(time.Hour)))
	v.verifies(file, retiring(time.Now().Add(-time.Hour)), exitFailed)
	v.verifies(file, retiring(time.Now()), exitDone)
}

// files returns the files below the data folder with a path.
func (v *rotating) files(path ...string) []string {
	v.t.Helper()
	found, err := filepath.Glob(filepath.Join(append([]string{v.dir}, path...)...))
	if err != nil {
		v.t.Fatal(err)
	}
	return found
}

// empty empties tables.
func (v *rotating) empty(tables ...string) {
	v.t.Helper()
	c, err := pgx.Connect(v.t.Context(), v.postgres)
	if err != nil {
		v.t.Fatal(err)
	}
	defer c.Close(v.t.Context())
	for _, table := range tables {
		if _, err := c.Exec(v.t.Context(), "DELETE FROM "+table); err != nil {
			v.t.Fatal(err)
		}
	}
}

// outlives starts the venue 31 days later, without the proof of the rotation and without the new key. Nothing is signed until the key is
// back. Then only that key signs. The proof is made again, with a tree of the past, because no cosigned one has the old key's signature.
func (v *rotating) outlives(next, old string) {
	v.t.Helper()
	v.empty("cosigned_trees")
	seeds, proofs := v.files("keys", "tlog", "localhost", "tlog", "trading", "0", "*", "2"), v.files("blob", "tlog", "localhost", "trading", "0", "*", "keys", "2")
	if len(seeds) != 1 || len(proofs) != 1 {
		v.t.Fatalf("%v, %v", seeds, proofs)
	}
	if err := errors.Join(os.Rename(seeds[0], seeds[0]+".lost"), os.Remove(proofs[0])); err != nil {
		v.t.Fatal(err)
	}
	v.env = append(v.env, altered.ClockAhead+"=744h")
	v.start()
	waitFor(v.t, "the error", func() bool { return strings.Contains(v.output.said(), "holds no secret of this generation") })
	if o, err := policyOf(v.t, old).Open([]byte(v.text("/tlog/trading/0/checkpoint") + "\n")); err != nil || o.Size >= int64(len(v.records("trading"))) {
		v.t.Errorf("without the key, %+v is signed: %v", o, err)
	}
	if err := os.Rename(seeds[0]+".lost", seeds[0]); err != nil {
		v.t.Fatal(err)
	}
	v.signedBy(len(v.records("trading")), next)
	if r := v.isSignedBy(v.save("", "/tlog/trading/0/keys/2"), old, next); r.Checkpoint.Size != r.Sequence+1 {
		v.t.Errorf("record %d is proven in a tree of size %d", r.Sequence, r.Checkpoint.Size)
	}
}

// isMonitored checks that a monitor follows the list of keys, and that one with the old key only says that it cannot.
func (v *rotating) isMonitored(old string) {
	v.t.Helper()
	file := filepath.Join(v.t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(v.list()+"\n"), 0o600); err != nil {
		v.t.Fatal(err)
	}
	if code, said := v.outcome(nil, "monitor", "--url", v.REST+"/tlog/trading/0", "--key", file); code != exitDone {
		v.t.Errorf("monitor: %d\n%s", code, said)
	}
	if code, said := v.outcome(nil, "monitor", "--url", v.REST+"/tlog/trading/0", "--key", old); code != exitFailed || !strings.Contains(said, "ALARM signature") {
		v.t.Errorf("monitor with the old key: %d\n%s", code, said)
	}
}
