package webhooks

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// These are the headers of a delivery. The last three are defined by Standard Webhooks.
const (
	HeaderSignature         = "X-SERVICE-Signature"
	HeaderID                = "webhook-id"
	HeaderTimestamp         = "webhook-timestamp"
	HeaderStandardSignature = "webhook-signature"
)

// sign adds the signatures of a body to the headers. X-SERVICE-Signature is the signature of the body by the first
// key, in padded standard base64. webhook-signature has signatures of the event ID, the time in seconds and the body
// by all keys, so that during a rotation a receiver can verify with the old or the new key.
func sign(h http.Header, keys []ed25519.PrivateKey, event scalar.ID, at time.Time, body []byte) {
	seconds := strconv.FormatInt(at.Unix(), 10)
	signed := append([]byte(event.String()+"."+seconds+"."), body...)
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(key, signed))
	}
	// Assigned directly to keep the documented case.
	h[HeaderSignature] = []string{base64.StdEncoding.EncodeToString(ed25519.Sign(keys[0], body))}
	h[HeaderID] = []string{event.String()}
	h[HeaderTimestamp] = []string{seconds}
	h[HeaderStandardSignature] = []string{strings.Join(all, " ")}
}
