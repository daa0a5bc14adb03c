package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// managed is a cluster whose process managers are on nodes of their own, of which one lives. Their commands go to the owner of the
// journals through a gate.
type managed struct {
	*intake
	cluster     *cluster
	gate        *peerGate
	living      int // the node that has them
	entitlement string
	registered  int
}

// TestKilledProcessManagers kills the node with the process managers at each of their steps, while the owner of the journals goes
// on: when a trading account is about to be opened, or is open and they do not know it yet; when an owner is erased and the
// key is there still, when the key is destroyed and the files are there still, when both are gone and it is not recorded, or it is
// and they do not know it yet. Then another node takes over, or the same one comes back. Each account is opened once, by a
// command that names the record that it follows from, and each destruction is recorded once, after it.
func TestKilledProcessManagers(t *testing.T) {
	t.Parallel()
	v := newVenue(t)
	v.env = append(v.env, "PERPETUA_BLOB_URL="+blob.URLOf(filepath.Join(v.dir, blob.Folder)), "PERPETUA_SNAPSHOT_RECORDS=1", "PERPETUA_SNAPSHOT_INTERVAL=100ms")
	c := newClusterOn(t, v, brokersIn(t, v.dir))
	gate := c.joinBehind(t, "engine,api,projector")
	c.join(t, "process")
	k := &managed{intake: &intake{reading: &reading{desk: &desk{venue: c.node(0)}}}, cluster: c, gate: gate, living: 1}
	k.must(200, "operator", http.MethodPut, "/admin/v1/retention", `{"seconds":0}`)
	k.entitlement = k.intake.entitlement("Trading", "person", "automatic", `,"opens_trading_account":true`)
	var erased []string
	for range max(kills(t)/5, 1) {
		k.killedOpening(t, false)
		k.killedOpening(t, true)
		erased = append(erased, k.killedBeforeTheKey(t), k.killedBeforeTheFiles(t), k.killedConfirming(t, false), k.killedConfirming(t, true))
	}
	log := foldAdmitted(t, c.records("onboarding"))
	records := c.records("trading")
	foldLines(t, records) // no command is there twice
	checkOpened(t, log, records)
	k.checkErased(t, log, erased)
}

// person registers one, with a file.
func (k *managed) person(t *testing.T) (id string) {
	t.Helper()
	k.registered++
	of, made := k.register("persons", `{"external_id":"`+strings.Repeat("p", k.registered)+`","first_name":"A","last_name":"B"}`)
	k.upload(of, "passport.pdf", pdf())
	return made.text("id")
}

// finish has a new person finish the entitlement.
func (k *managed) finish(t *testing.T) (id string) {
	t.Helper()
	id = k.person(t)
	k.trigger("/api/v1/persons/"+id, k.entitlement)
	return id
}

// takeOver kills the node with the managers, and what it has at the gate with it. The other node comes then, or the same one again.
// It starts from a snapshot of all that has happened: what is open it does not learn from any record that it reads.
func (k *managed) takeOver(t *testing.T, other bool) {
	t.Helper()
	k.cluster.node(k.living).kill()
	k.gate.held(t, 0)
	k.gate.open()
	last, saved := int64(k.scrape().value("perpetua_journal_acknowledged_sequence", "journal", "onboarding")), int64(-1)
	waitFor(t, "a snapshot of all", func() bool {
		if saved = k.measureOf("onboarding", "sequence"); saved < last {
			<-time.After(100 * time.Millisecond) // it comes once in a second, and an answer with all measures costs something
		}
		return saved >= last
	})
	if other {
		k.living = 3 - k.living
	}
	if k.living == len(k.cluster.nodes) {
		k.cluster.join(t, "process")
	} else {
		k.cluster.again(k.living)
	}
	if at := k.cluster.node(k.living).measureOf("onboarding", "loaded_sequence"); at < saved {
		t.Errorf("the onboarding journal was folded from %d on; there is a snapshot at %d", at, saved)
	}
}

// opened waits until there is a person's account.
func (k *managed) opened(id string) {
	k.t.Helper()
	waitFor(k.t, "the account of "+id, func() bool { return k.isOpen(id) })
}

func (k *managed) isOpen(id string) bool {
	k.t.Helper()
	code := `"customer_code":"` + strings.ReplaceAll(id, "-", "") + `","name":null,"broker":"alpha"`
	return strings.Contains(string(k.must(200, "broker-a", http.MethodGet, "/v1/customers?page_size=100", nil).Body), code)
}

// killedOpening kills the managers when they have asked for an account, before the owner has got that or after it has answered.
// Somebody else finishes meanwhile, whose account has to wait.
func (k *managed) killedOpening(t *testing.T, answered bool) {
	t.Helper()
	k.gate.closeFor("customer.register", answered)
	first := k.finish(t)
	k.gate.held(t, 1)
	next := k.finish(t)
	if answered {
		k.opened(first)
	} else if k.isOpen(first) {
		t.Errorf("the account of %s is open before anybody was asked", first)
	}
	if k.isOpen(next) {
		t.Errorf("the account of %s did not wait for the one before it", next)
	}
	k.takeOver(t, !answered)
	k.opened(first)
	k.opened(next)
}

// erase has a person erased, and returns once that is so.
func (k *managed) erase(id string) {
	k.t.Helper()
	k.must(200, "operator", http.MethodPost, "/admin/v1/persons/"+id+"/erase", `{"reason":"as was asked"}`)
	waitFor(k.t, "the erasure of "+id, func() bool { return k.certificate(id).get("erased_at") != "" })
}

func (k *managed) certificate(id string) answer {
	k.t.Helper()
	return k.must(200, "operator", http.MethodGet, "/admin/v1/persons/"+id+"/erasure", nil)
}

// destroyed waits until the destruction of a person's key is recorded.
func (k *managed) destroyed(id string) {
	k.t.Helper()
	waitFor(k.t, "the end of the key of "+id, func() bool { return k.certificate(id).get("key_id") != "" })
}

// key is the file of a person's key.
func (k *managed) key(id string) string {
	return filepath.Join(k.cluster.dir, "keys", "owners", "person", id)
}

// keyOf reads the file of a person's key.
func (k *managed) keyOf(id string) (key struct {
	KeyID     string    `json:"key_id"`
	Destroyed time.Time `json:"destroyed_at"`
	Key       []byte
}) {
	k.t.Helper()
	content, err := os.ReadFile(k.key(id))
	if err == nil {
		err = json.Unmarshal(content, &key)
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return key
}

// killedBeforeTheKey kills the managers when they look for the key of who is erased.
func (k *managed) killedBeforeTheKey(t *testing.T) (id string) {
	t.Helper()
	id = k.person(t)
	k.cluster.node(k.living).kill() // or they would be done before the pipe is there
	k.erase(id)
	restore := k.pipe(t, id)
	k.cluster.again(k.living)
	pipe := k.reads(t, id)
	k.cluster.node(k.living).kill()
	pipe.Close()
	restore()
	if key := k.keyOf(id); key.Key == nil || !key.Destroyed.IsZero() || k.certificate(id).get("key_id") != "" {
		t.Errorf("the key of %s is %+v, the certificate %s", id, key, k.certificate(id).Body)
	}
	k.takeOver(t, true)
	k.destroyed(id)
	return id
}

// pipe puts a pipe in the place of a person's key: whoever reads it waits. What it returns puts the key back.
func (k *managed) pipe(t *testing.T, id string) (restore func()) {
	t.Helper()
	aside := filepath.Join(k.cluster.dir, "aside")
	if err := os.Rename(k.key(id), aside); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(k.key(id), 0o600); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.Rename(aside, k.key(id)); err != nil {
			t.Fatal(err)
		}
	}
}

// reads waits until somebody reads the pipe in the place of a person's key, who goes on to wait until the pipe is closed.
func (k *managed) reads(t *testing.T, id string) (pipe *os.File) {
	t.Helper()
	waitFor(t, "a reader of the key", func() bool {
		var err error
		pipe, err = os.OpenFile(k.key(id), os.O_WRONLY|syscall.O_NONBLOCK, 0) // refused while nobody reads
		return err == nil
	})
	return pipe
}

// killedBeforeTheFiles kills the managers when they have destroyed the key of who is erased, and can't remove the file yet: a
// folder that is not empty is in its place.
func (k *managed) killedBeforeTheFiles(t *testing.T) (id string) {
	t.Helper()
	before := k.cluster.uploaded()
	id = k.person(t)
	var file string
	for _, path := range k.cluster.uploaded() {
		if !slices.Contains(before, path) {
			file = path
		}
	}
	aside := filepath.Join(k.cluster.dir, "aside")
	if err := os.Rename(file, aside); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(file, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	k.erase(id)
	waitFor(t, "the end of the key", func() bool { return !k.keyOf(id).Destroyed.IsZero() })
	k.cluster.node(k.living).kill()
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, file); err != nil {
		t.Fatal(err)
	}
	k.takeOver(t, false)
	k.destroyed(id)
	return id
}

// killedConfirming kills the managers when they have told the journal that a key is destroyed, before its owner has got that or
// after it has answered.
func (k *managed) killedConfirming(t *testing.T, answered bool) (id string) {
	t.Helper()
	id = k.person(t)
	k.gate.closeFor("owner.confirm_key_destroyed", answered)
	k.erase(id)
	k.gate.held(t, 1)
	if k.keyOf(id).Key != nil {
		t.Errorf("it is confirmed that the key of %s is destroyed, which is there", id)
	}
	if answered {
		k.destroyed(id)
	} else if k.certificate(id).get("key_id") != "" {
		t.Errorf("the destruction of the key of %s is recorded before anybody was told", id)
	}
	k.opened(k.finish(t)) // the owner goes on, and so does the other manager
	k.takeOver(t, !answered)
	k.destroyed(id)
	return id
}

// checkErased wants the keys of these persons to be destroyed and their files gone, and each destruction to be recorded once: when
// no node could hold the key any more. It wants no others.
func (k *managed) checkErased(t *testing.T, log *admitted, erased []string) {
	t.Helper()
	if len(log.destroyed) != len(erased) {
		t.Errorf("the keys of %d persons are recorded to be destroyed, not of %d", len(log.destroyed), len(erased))
	}
	for _, id := range erased {
		key, records := k.keyOf(id), log.destroyed[id]
		if len(records) != 1 {
			t.Errorf("the destruction of the key of %s is recorded %d times", id, len(records))
			continue
		}
		if key.Key != nil || records[0].keyID != key.KeyID || records[0].at.Before(key.Destroyed.Add(seal.KeyLifetime)) {
			t.Errorf("the key of %s is %+v, and was recorded to be destroyed as %+v", id, key, records[0])
		}
	}
	left := k.cluster.uploaded()
	if files := len(log.made["document.added"]) - len(erased); len(left) != files {
		t.Errorf("there are %d files, not %d: %v", len(left), files, left)
	}
}
