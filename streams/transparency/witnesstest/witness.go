// Package witnesstest runs a witness (c2sp.org/tlog-witness) for tests.
package witnesstest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// Witness cosigns the checkpoints of logs, as the specification says: only what extends the tree that it cosigned last.
type Witness struct {
	Name string
	URL  string
	seed [ed25519.SeedSize]byte

	mu       sync.Mutex
	logs     map[string]note.Verifier
	last     map[string]tlog.Tree
	away     bool
	requests int
}

// Start runs a witness on loopback until the end of the test.
func Start(t testing.TB, name string) *Witness {
	t.Helper()
	w := &Witness{Name: name, seed: sha256.Sum256([]byte(name)), logs: make(map[string]note.Verifier), last: make(map[string]tlog.Tree)}
	s := httptest.NewServer(w)
	t.Cleanup(s.Close)
	w.URL = s.URL
	return w
}

// Key returns the key of the witness.
func (w *Witness) Key() transparency.WitnessKey {
	return transparency.NewWitnessKey(w.Name, w.private().Public().(ed25519.PublicKey))
}

func (w *Witness) private() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(w.seed[:]) }

// Knows has the witness cosign a log.
func (w *Witness) Knows(key string) error {
	v, err := note.NewVerifier(key)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs[v.Name()] = v
	return nil
}

// Away makes the witness answer 503 to every request, until it is called with false.
func (w *Witness) Away(away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = away
}

// Forget has the witness forget what it cosigned.
func (w *Witness) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.last)
}

// Last returns the last tree of a log that the witness cosigned, and the number of requests so far.
func (w *Witness) Last(origin string) (last tlog.Tree, requests int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[origin], w.requests
}

// Cosign returns the line of a cosignature of a checkpoint with a text.
func (w *Witness) Cosign(text string) string { return w.CosignAt(text, time.Now()) }

// CosignAt returns the line of a cosignature with the given time.
func (w *Witness) CosignAt(text string, when time.Time) string {
	at := when.Unix()
	sig := binary.BigEndian.AppendUint32(nil, w.Key().KeyHash())
	sig = binary.BigEndian.AppendUint64(sig, uint64(at))
	sig = append(sig, ed25519.Sign(w.private(), transparency.CosignedMessage(at, []byte(text)))...)
	return "— " + w.Name + " " + base64.StdEncoding.EncodeToString(sig) + "\n"
}

// ServeHTTP implements http.Handler.
func (w *Witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	if w.away {
		http.Error(out, "away", http.StatusServiceUnavailable)
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/add-checkpoint" {
		http.NotFound(out, r)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	status, answer := w.add(string(body))
	if status == http.StatusConflict && answer != "" {
		out.Header().Set("Content-Type", "text/x.tlog.size")
	}
	out.WriteHeader(status)
	fmt.Fprint(out, answer)
}

func (w *Witness) add(body string) (status int, answer string) {
	head, signed, found := strings.Cut(body, "\n\n")
	lines := strings.Split(head, "\n")
	text, isOld := strings.CutPrefix(lines[0], "old ")
	old, err := strconv.ParseInt(text, 10, 64)
	if !found || !isOld || err != nil || old < 0 {
		return http.StatusBadRequest, "the old size"
	}
	origin, _, _ := strings.Cut(signed, "\n")
	v := w.logs[origin]
	if v == nil {
		return http.StatusNotFound, "an unknown log"
	}
	opened, err := transparency.NewPolicy(v).Open([]byte(signed))
	if err != nil {
		return http.StatusForbidden, err.Error()
	}
	if old > opened.Size {
		return http.StatusBadRequest, "the old size is larger"
	}
	last := w.last[origin]
	if old != last.N {
		return http.StatusConflict, fmt.Sprintf("%d\n", last.N)
	}
	var proof tlog.TreeProof
	for _, line := range lines[1:] {
		h, err := tlog.ParseHash(line)
		if err != nil {
			return http.StatusBadRequest, "a hash of the proof"
		}
		proof = append(proof, h)
	}
	switch {
	case old == 0 && len(proof) > 0:
		return http.StatusUnprocessableEntity, ""
	case old == opened.Size && old > 0 && opened.Root != last.Hash:
		return http.StatusConflict, ""
	case old > 0 && tlog.CheckTree(proof, opened.Size, opened.Root, old, last.Hash) != nil:
		return http.StatusUnprocessableEntity, ""
	}
	w.last[origin] = opened.Tree()
	return http.StatusOK, w.Cosign(opened.Text)
}
