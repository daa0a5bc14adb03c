package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/program"
)

// parcel is a request that came to a receiver, its body byte for byte.
type parcel struct {
	Method string
	Path   string
	Header http.Header
	Body   []byte
	At     time.Time
	Status int // of the answer
}

// event reads the body.
func (p parcel) event(t testing.TB) (o object) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(p.Body))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		t.Fatalf("%v: %s", err, p.Body)
	}
	return o
}

// webhookReceiver is an HTTPS server as a tenant has one: its certificate is by an authority of its own. It verifies each request
// from the raw bytes, refuses with 401 what is not signed by a key of the registration with that path, and keeps all that came.
type webhookReceiver struct {
	*httptest.Server
	t  testing.TB
	CA string // the file of its authority's certificate, in PEM

	mu      sync.Mutex
	keys    map[string][]string // public keys by the registration's path, in base64; none: the path is of no registration
	parcels []parcel
	// answer says what a parcel that is signed well is answered; nil: 200. It knows how often the same event came to the path before.
	answer func(p parcel, before int) int
	// answers holds what has come, before it is answered, while it is shut.
	answers barrier
}

func newWebhookReceiver(t testing.TB) *webhookReceiver {
	t.Helper()
	r := &webhookReceiver{t: t, CA: filepath.Join(t.TempDir(), "ca.pem"), keys: make(map[string][]string)}
	certificate := certified(t, r.CA)
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(r.take))
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	r.StartTLS()
	t.Cleanup(func() {
		r.answers.open() // or the server would wait for what it holds
		r.Close()
	})
	return r
}

// certified returns a certificate for 127.0.0.1 by an authority whose own is written to a file.
func certified(t testing.TB, file string) tls.Certificate {
	t.Helper()
	fatal := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal(err)
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a tenant's authority"}, NotBefore: time.Now().Add(-48 * time.Hour),
		NotAfter: time.Now().Add(48 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: root.NotBefore, NotAfter: root.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	self, err := x509.CreateCertificate(rand.Reader, root, root, &authority.PublicKey, authority)
	fatal(err)
	signed, err := x509.CreateCertificate(rand.Reader, leaf, root, &key.PublicKey, authority)
	fatal(err)
	fatal(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: self}), 0o600))
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}
}

// knows has the receiver verify what comes to a path with a public key, and with those that it was told before.
func (r *webhookReceiver) knows(path, publicKey string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys[path] = append(r.keys[path], publicKey)
}

// take is the receiver's handler.
func (r *webhookReceiver) take(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	p := parcel{Method: request.Method, Path: request.URL.Path, Header: request.Header.Clone(), Body: body, At: time.Now(), Status: http.StatusOK}
	r.mu.Lock()
	before := 0
	for _, other := range r.parcels {
		if other.Path == p.Path && other.Header.Get("webhook-id") == p.Header.Get("webhook-id") {
			before++
		}
	}
	switch {
	case err != nil:
		p.Status = http.StatusBadRequest
	case !signedByOne(r.keys[p.Path], p):
		p.Status = http.StatusUnauthorized
	case r.answer != nil:
		p.Status = r.answer(p, before)
	}
	r.parcels = append(r.parcels, p)
	r.mu.Unlock()
	if !r.answers.pass(request.Context(), 1) {
		return
	}
	w.WriteHeader(p.Status)
	io.WriteString(w, "thank you")
}

// signedByOne reports whether one of the keys signed a request in both ways: the raw body, and as Standard Webhooks has it.
func signedByOne(keys []string, p parcel) bool {
	for _, key := range keys {
		public, err := base64.StdEncoding.DecodeString(key)
		if err == nil && signsBody(public, p) && signsStandard(public, p) {
			return true
		}
	}
	return false
}

func signsBody(public []byte, p parcel) bool {
	signature, err := base64.StdEncoding.DecodeString(p.Header.Get("X-SERVICE-Signature"))
	return err == nil && len(public) == ed25519.PublicKeySize && ed25519.Verify(public, p.Body, signature)
}

// standard is what Standard Webhooks has signed: the id, the time in seconds and the raw body, with full stops between.
func (p parcel) standard() []byte {
	return []byte(p.Header.Get("webhook-id") + "." + p.Header.Get("webhook-timestamp") + "." + string(p.Body))
}

// signsStandard verifies webhook-signature by the text of the Standard Webhooks specification, and by nothing of the venue's: a
// list with spaces between, in which v1a, marks the base64 of an Ed25519 signature. The time may be off by five minutes.
func signsStandard(public []byte, p parcel) bool {
	at, err := strconv.ParseInt(p.Header.Get("webhook-timestamp"), 10, 64)
	if off := p.At.Sub(time.Unix(at, 0)); err != nil || off.Abs() > 5*time.Minute {
		return false
	}
	for entry := range strings.SplitSeq(p.Header.Get("webhook-signature"), " ") {
		version, text, _ := strings.Cut(entry, ",")
		signature, err := base64.StdEncoding.DecodeString(text)
		if version == "v1a" && err == nil && ed25519.Verify(public, p.standard(), signature) {
			return true
		}
	}
	return false
}

// came returns what came to a path and was answered with a status, oldest first; any status for 0.
func (r *webhookReceiver) came(path string, status int) (out []parcel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.parcels {
		if p.Path == path && (status == 0 || p.Status == status) {
			out = append(out, p)
		}
	}
	return out
}

// await waits for a parcel that was acknowledged at a path and whose body is as wanted.
func (r *webhookReceiver) await(path, what string, is func(object) bool) (found parcel) {
	r.t.Helper()
	waitFor(r.t, what+" at "+path, func() bool {
		for _, p := range r.came(path, http.StatusOK) {
			if is(p.event(r.t)) {
				found = p
				return true
			}
		}
		return false
	})
	return found
}

// opensslVerifies has OpenSSL, where it is installed, verify a signature of a message: that is nobody's code here.
func opensslVerifies(t testing.TB, publicKey string, message []byte, signature string) {
	t.Helper()
	tool, ok := program.Find(t, "openssl")
	if !ok {
		return
	}
	public, err := base64.StdEncoding.DecodeString(publicKey)
	if err != nil || len(public) != ed25519.PublicKeySize {
		t.Fatalf("%q is no public key (%v)", publicKey, err)
	}
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	name := func(file string) string { return filepath.Join(folder, file) }
	// RFC 8410: a SubjectPublicKeyInfo of Ed25519 is these twelve bytes and the key.
	der := append([]byte{0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00}, public...)
	for file, content := range map[string][]byte{"key": der, "message": message, "signature": raw} {
		if err := os.WriteFile(name(file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said, err := exec.Command(tool, "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", name("key"), "-rawin", "-in", name("message"),
		"-sigfile", name("signature")).CombinedOutput()
	if err != nil {
		t.Errorf("OpenSSL does not verify it: %v: %s", err, said)
	}
}

// TestWebhookReceiver: the receiver of the other tests takes what is signed, and refuses everything else.
func TestWebhookReceiver(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := newWebhookReceiver(t)
	r.knows("/a", base64.StdEncoding.EncodeToString(public))
	authority, err := os.ReadFile(r.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatal("the authority's certificate is not there")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	t.Cleanup(client.CloseIdleConnections)
	const body = `{"id":"x"}`
	sign := func(text string) string {
		return base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(text)))
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	old := strconv.FormatInt(time.Now().Add(-6*time.Minute).Unix(), 10)
	for _, c := range []struct {
		name, path, raw, at, standard string
		want                          int
	}{
		{"signed", "/a", sign(body), now, "v1a," + sign("m."+now+"."+body), 200},
		{"by two keys", "/a", sign(body), now, "v1a,AAAA v1a," + sign("m."+now+"."+body), 200},
		{"another path", "/b", sign(body), now, "v1a," + sign("m."+now+"."+body), 401},
		{"another body", "/a", sign("{}"), now, "v1a," + sign("m."+now+"."+body), 401},
		{"of another time", "/a", sign(body), now, "v1a," + sign("m."+old+"."+body), 401},
		{"too old", "/a", sign(body), old, "v1a," + sign("m."+old+"."+body), 401},
		{"another scheme", "/a", sign(body), now, "v1," + sign("m."+now+"."+body), 401},
		{"not signed", "/a", "", now, "", 401},
	} {
		request, err := http.NewRequest(http.MethodPost, r.URL+c.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"X-SERVICE-Signature": c.raw, "webhook-id": "m", "webhook-timestamp": c.at, "webhook-signature": c.standard} {
			request.Header.Set(name, value)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", c.name, response.StatusCode, c.want)
		}
	}
	p := r.await("/a", "the first", func(o object) bool { return o.text("id") == "x" })
	opensslVerifies(t, base64.StdEncoding.EncodeToString(public), p.Body, p.Header.Get("X-SERVICE-Signature"))
}
