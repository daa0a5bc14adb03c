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

// The headers of a delivery. The last three are those of Standard Webhooks.
const (
	HeaderSignature         = "X-SERVICE-Signature"
	HeaderID                = "webhook-id"
	HeaderTimestamp         = "webhook-timestamp"
	HeaderStandardSignature = "webhook-signature"
)

// sign puts the signatures of a body into a request's headers. X-SERVICE-Signature is by the first key alone, of the body as it
// is: padded standard base64. webhook-signature is by all keys, of the event's id, the time in seconds and the body: while a
// key is being replaced, a receiver verifies with the old or the new.
func sign(h http.Header, keys []ed25519.PrivateKey, event scalar.ID, at time.Time, body []byte) {
	seconds := strconv.FormatInt(at.Unix(), 10)
	signed := append([]byte(event.String()+"."+seconds+"."), body...)
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(key, signed))
	}
	h[HeaderSignature] = []string{base64.StdEncoding.EncodeToString(ed25519.Sign(keys[0], body))} // in the document's own letters
	h[HeaderID] = []string{event.String()}
	h[HeaderTimestamp] = []string{seconds}
	h[HeaderStandardSignature] = []string{strings.Join(all, " ")}
}
