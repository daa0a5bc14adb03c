package webhooks

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// opensslVerifies has OpenSSL, which shares nothing with what signs here, judge a signature.
func opensslVerifies(t *testing.T, key ed25519.PublicKey, signed, signature []byte) bool {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	err = exec.Command("openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", write("key", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		"-in", write("signed", signed), "-sigfile", write("signature", signature)).Run()
	return err == nil
}

// TestSignatures: X-SERVICE-Signature is over the raw body by the key in use, webhook-signature as Standard Webhooks have it, by
// both keys while one takes the other's place.
func TestSignatures(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("openssl is not installed, and CI is set: .ci/run installs it")
		}
		t.Skip("openssl is not installed")
	}
	old, now := ed25519.NewKeyFromSeed(make([]byte, 32)), ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", 32)))
	event, at, body := scalar.ID{1, 2, 3}, time.Unix(1_700_000_000, 5), []byte(`{"id":"…"}`)
	h := make(http.Header)
	sign(h, []ed25519.PrivateKey{old, now}, event, at, body)
	sent := func(name string) string { // by its very letters
		for key, values := range h {
			if key == name {
				return values[0]
			}
		}
		return ""
	}
	if sent(HeaderID) != event.String() || sent(HeaderTimestamp) != "1700000000" {
		t.Errorf("%v", h)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(sent("X-SERVICE-Signature"))
	if err != nil || len(raw) != 64 || !opensslVerifies(t, old.Public().(ed25519.PublicKey), body, raw) {
		t.Errorf("X-SERVICE-Signature %v is not the old key's over the body: %v", sent("X-SERVICE-Signature"), err)
	}
	both := strings.Split(sent(HeaderStandardSignature), " ")
	if len(both) != 2 {
		t.Fatalf("%v", both)
	}
	for i, key := range []ed25519.PrivateKey{old, now} {
		text, version := strings.CutPrefix(both[i], "v1a,")
		raw, err := base64.StdEncoding.Strict().DecodeString(text)
		signed := []byte(event.String() + ".1700000000." + string(body))
		if err != nil || !version || !opensslVerifies(t, key.Public().(ed25519.PublicKey), signed, raw) {
			t.Errorf("webhook-signature %d: %s, %v", i, both[i], err)
		}
		if opensslVerifies(t, key.Public().(ed25519.PublicKey), append(signed, ' '), raw) {
			t.Error("it verifies something else as well")
		}
	}
}
