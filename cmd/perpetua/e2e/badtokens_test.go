package e2e

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

func badHeaders() (table []bad) {
	add := func(status int, code, method, path string, body any, headers ...string) {
		table = append(table, bad{name: strings.Join(headers, ": "), user: "broker-a", method: method, path: path, body: body, headers: headers, status: status, code: code})
	}
	for _, media := range []string{"text/plain", "", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=iso-8859-1", "application/problem+json", "json", "application/json, text/plain"} {
		add(415, "UNSUPPORTED_MEDIA_TYPE", http.MethodPost, bensOrders, entry(), "Content-Type", media)
	}
	add(415, "UNSUPPORTED_CONTENT_ENCODING", http.MethodPost, bensOrders, entry(), "Content-Encoding", "gzip")
	for _, at := range []string{"x", "trading", "trading@1", "trading/0", "trading/0@", "trading/0@x", "trading/0@01", "trading/-1@1", "trading/0@1.5", "trading/0@99999999999999999999", "/0@1"} {
		add(400, "VALIDATION_FAILED", http.MethodGet, "/v1/tickers", nil, "X-Min-Log-Position", at)
		add(400, "VALIDATION_FAILED", http.MethodGet, "/v1/customers/BEN/transactions", nil, "X-Min-Log-Position", at)
	}
	for _, key := range []string{"a b", strings.Repeat("k", 65), "é", "a/b", "\"a\"", "a,b"} {
		add(400, "VALIDATION_FAILED", http.MethodPost, bensOrders, entry(), "Idempotency-Key", key)
		add(400, "VALIDATION_FAILED", http.MethodDelete, bensOrders, nil, "Idempotency-Key", key)
	}
	return table
}

func badAddresses() (table []bad) {
	for _, path := range []string{
		// The removed routes.
		"/v1/instruments/BTCUSDC_PERP", "/v1/instruments/BTCUSDC_PERP/leverage_brackets", "/v1/customers/BEN/margin-requirements/BTCUSDC_PERP", "/v1/customers/BEN/risk-limits", "/v1/customers/BEN/leverage",
		"/customers/BEN/risk-limits", "/customers/BEN/leverage", "/instruments/BTCUSDC_PERP",
		// Others that are not there.
		"/v1", "/v1/", "/v2/instruments", "/v1/instruments/", "/v1/Instruments", "/v1/customers/BEN", "/v1/customers/BEN/", "/v1/customers/BEN/orders/", "/v1/orderbook", "/v1/orderbook/", "/admin", "/admin/v1",
		"/admin/v1/", "/admin/v1/withdrawals", "/customers/BEN/orders", "/orders/", "/debug/pprof/", "/.env", "/v1/customers/BEN/fee-profile/",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
			var body any
			if method != http.MethodGet {
				body = `{}`
			}
			table = append(table, bad{name: method + " " + path, user: "broker-a", method: method, path: path, body: body, status: 404, code: "NOT_FOUND"})
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} { // an empty customer is none, and not all of them
		b := bad{name: method + " of no customer", user: "broker-b", method: method, path: "/v1/customers//orders", status: 404, code: "NOT_FOUND"}
		if method == http.MethodPost {
			b.body = entry()
		}
		table = append(table, b)
	}
	for _, r := range []struct{ method, path string }{
		{http.MethodPut, bensOrders}, {http.MethodPatch, bensOrders}, {http.MethodPost, "/v1/instruments"}, {http.MethodDelete, "/v1/time"}, {http.MethodPost, "/v1/orders"}, {http.MethodDelete, "/orders"},
		{http.MethodPut, "/v1/customers/BEN/positions"}, {http.MethodPost, "/v1/customers/BEN/transactions"}, {http.MethodDelete, "/v1/customers"}, {http.MethodPatch, "/v1/customers/BEN/fee-profile/BTCUSDC_PERP"},
		{http.MethodGet, "/v1/customers/BEN/cancel-all-after"}, {http.MethodDelete, "/admin/v1/journals"}, {http.MethodGet, "/admin/v1/customers/BEN/deposits"}, {http.MethodGet, "/admin/v1/index-prices/BTCUSDC_PERP"}, {http.MethodDelete, "/admin/v1/users/anna"},
		{"PROPFIND", "/v1/instruments"}, {http.MethodTrace, "/v1/time"},
	} {
		table = append(table, bad{name: r.method + " " + r.path, user: "operator", method: r.method, path: r.path, status: 405, code: "METHOD_NOT_ALLOWED"})
	}
	for _, customer := range []string{"%00", "%ff", "a%0ab", "BEN%20", "ben", "%F0%9F%98%80", strings.Repeat("A", 3000), "BEN'--"} {
		table = append(table, bad{name: "customer " + customer, user: "broker-a", method: http.MethodGet, path: "/v1/customers/" + customer + "/positions", status: 404, code: "UNKNOWN_CUSTOMER"},
			bad{name: "order of customer " + customer, user: "broker-a", method: http.MethodPost, path: "/v1/customers/" + customer + "/orders", body: entry(), status: 404, code: "UNKNOWN_CUSTOMER"},
			bad{name: "order " + customer, user: "broker-a", method: http.MethodDelete, path: bensOrders + "/" + customer, status: 404, code: "UNKNOWN_ORDER"})
	}
	return table
}

// signer makes tokens with the venue's own key, as only the venue can, or with another.
type signer struct {
	kid string
	key ed25519.PrivateKey
}

// venueSigner unseals the signing key from the identity journal with the master key in the data folder.
func venueSigner(t *testing.T, d *desk) signer {
	t.Helper()
	box, err := (&settings.Settings{Data: d.dir}).FindMaster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var record struct {
		Events []struct {
			Data struct {
				KID     string
				Private []byte
			}
		}
	}
	if err := json.Unmarshal([]byte(d.records("identity", "--type", "signing_key.added")[0]), &record); err != nil {
		t.Fatal(err)
	}
	key := record.Events[0].Data
	seed, err := box.Open(key.Private, seal.AssociatedData{Owner: key.KID, Field: "private", Type: "signing_key"})
	if err != nil {
		t.Fatal(err)
	}
	return signer{key.KID, ed25519.NewKeyFromSeed(seed)}
}

func (s signer) sign(header, claims map[string]any) string {
	h, _ := json.Marshal(header)
	c, _ := json.Marshal(claims)
	text := base64.RawURLEncoding.EncodeToString(h) + "." + base64.RawURLEncoding.EncodeToString(c)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(s.key, []byte(text)))
}

// claims are those of a token that the venue issued.
func claims(t *testing.T, token string) map[string]any {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// badTokens are tokens that must open nothing: each is tried on a read, a write and an operator's route. Those that
// the venue's own key signed differ from a good one in one thing each; a copy without a difference must be good.
func badTokens(t *testing.T, d *desk) (table []bad) {
	good := d.token("operator")
	own := venueSigner(t, d)
	header := func(pairs ...any) map[string]any {
		h := map[string]any{"alg": "EdDSA", "kid": own.kid}
		for i := 0; i < len(pairs); i += 2 {
			if h[pairs[i].(string)] = pairs[i+1]; pairs[i+1] == nil {
				delete(h, pairs[i].(string))
			}
		}
		return h
	}
	with := func(pairs ...any) map[string]any {
		c := claims(t, good)
		for i := 0; i < len(pairs); i += 2 {
			if c[pairs[i].(string)] = pairs[i+1]; pairs[i+1] == nil {
				delete(c, pairs[i].(string))
			}
		}
		return c
	}
	if a := d.venue.do("", http.MethodGet, "/admin/v1/journals", nil, "Authorization", "Bearer "+own.sign(header(), with())); a.Status != 200 {
		t.Fatalf("a good token of our own making: %d %s", a.Status, a.Body)
	}
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	parts := strings.Split(good, ".")
	none := func(alg string) string {
		h, _ := json.Marshal(header("alg", alg))
		c, _ := json.Marshal(with())
		return base64.RawURLEncoding.EncodeToString(h) + "." + base64.RawURLEncoding.EncodeToString(c) + "."
	}
	symmetric := func() string {
		h, _ := json.Marshal(header("alg", "HS256"))
		text := base64.RawURLEncoding.EncodeToString(h) + "." + parts[1]
		mac := hmac.New(sha256.New, own.key.Public().(ed25519.PublicKey))
		mac.Write([]byte(text))
		return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	flipped := []byte(good)
	flipped[len(good)-10] ^= 1
	for name, authorization := range map[string]string{
		"none": "", "Basic": "Basic b3BlcmF0b3I6eA==", "no scheme": good, "no token": "Bearer", "an empty token": "Bearer ", "garbage": "Bearer garbage", "dots": "Bearer ..", "two tokens": "Bearer " + good + " " + good,
		"cut off": "Bearer " + good[:len(good)-1], "longer": "Bearer " + good + "A", "padded": "Bearer " + good + "=", "a part too many": "Bearer " + good + ".", "no signature": "Bearer " + parts[0] + "." + parts[1] + ".",
		"flipped": "Bearer " + string(flipped), "huge": "Bearer " + strings.Repeat("A", 100000), "alg none": "Bearer " + none("none"), "alg None": "Bearer " + none("None"), "alg NONE": "Bearer " + none("NONE"), "alg empty": "Bearer " + none(""),
		"alg none, signed": "Bearer " + own.sign(header("alg", "none"), with()), "alg HS256 with the public key": "Bearer " + symmetric(), "another alg": "Bearer " + own.sign(header("alg", "ES256"), with()),
		"another key": "Bearer " + signer{own.kid, stranger}.sign(header(), with()), "an unknown kid": "Bearer " + own.sign(header("kid", "x"), with()), "no kid": "Bearer " + own.sign(header("kid", nil), with()),
		"another key in the header": "Bearer " + signer{"x", stranger}.sign(header("jwk", map[string]any{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(stranger.Public().(ed25519.PublicKey))}), with()),
		"critical":                  "Bearer " + own.sign(header("crit", []string{"x"}, "x", 1), with()), "more scopes": "Bearer " + parts[0] + "." + strings.Split(own.sign(header(), with("scope", "operator auditor trade read")), ".")[1] + "." + parts[2],
		"expired": "Bearer " + own.sign(header(), with("exp", now-1)), "expired long ago": "Bearer " + own.sign(header(), with("exp", 1)), "no exp": "Bearer " + own.sign(header(), with("exp", nil)), "exp as text": "Bearer " + own.sign(header(), with("exp", "never")),
		"issued tomorrow": "Bearer " + own.sign(header(), with("iat", now+86400)), "no iat": "Bearer " + own.sign(header(), with("iat", nil)), "not before tomorrow": "Bearer " + own.sign(header(), with("nbf", now+86400)),
		"another issuer": "Bearer " + own.sign(header(), with("iss", "https://example.com")), "no issuer": "Bearer " + own.sign(header(), with("iss", nil)),
		"an unknown user": "Bearer " + own.sign(header(), with("sub", "nobody")), "no user": "Bearer " + own.sign(header(), with("sub", nil)), "no broker": "Bearer " + own.sign(header(), with("broker", nil)), "a broker that is no text": "Bearer " + own.sign(header(), with("broker", 1)),
		"a customer that is no text": "Bearer " + own.sign(header(), with("customer", true)), "no scope": "Bearer " + own.sign(header(), with("scope", nil)), "scopes in a list": "Bearer " + own.sign(header(), with("scope", []string{"operator"})),
	} {
		headers := []string{"Authorization", authorization}
		if authorization == "" {
			headers = nil
		}
		table = append(table,
			bad{name: name + ", read", method: http.MethodGet, path: "/v1/orders", headers: headers, status: 401, code: "UNAUTHORIZED"},
			bad{name: name + ", write", method: http.MethodPost, path: bensOrders, body: entry(), headers: headers, status: 401, code: "UNAUTHORIZED"},
			bad{name: name + ", operator", method: http.MethodPost, path: "/admin/v1/brokers", body: `{"broker":"gamma","name":"x"}`, headers: headers, status: 401, code: "UNAUTHORIZED"})
	}
	return append(table, bad{name: "a token in the query", method: http.MethodGet, path: "/v1/orders?access_token=" + good, status: 401, code: "UNAUTHORIZED"})
}

// testBadLogin tries to log in with what is wrong. The login's errors have the onboarding interface's shape.
func testBadLogin(t *testing.T, d *desk) {
	login := func(media, body string) (status int, detail any) {
		a := d.venue.do("", http.MethodPost, "/auth/jwt/login", body, "Content-Type", media)
		var answer struct{ Detail any }
		a.decode(t, &answer)
		return a.Status, answer.Detail
	}
	const form = "application/x-www-form-urlencoded"
	right := url.Values{"username": {"auditor"}, "password": {d.password("auditor")}}.Encode()
	for _, c := range []struct {
		media, body string
		status      int
		detail      string
	}{
		{form, "username=auditor&password=wrong-password", 400, "LOGIN_BAD_CREDENTIALS"}, {form, "username=nobody&password=wrong-password", 400, "LOGIN_BAD_CREDENTIALS"},
		{form, "username=AUDITOR&password=" + url.QueryEscape(d.password("auditor")), 400, "LOGIN_BAD_CREDENTIALS"}, {form, "username=auditor'--&password=x", 400, "LOGIN_BAD_CREDENTIALS"},
		{form, "", 422, ""}, {form, "username=auditor", 422, ""}, {form, "password=x", 422, ""}, {form, "username=&password=", 422, ""}, {form, "username=a%00b&password=x", 422, ""}, {form, "username=%ff&password=x", 422, ""},
		{form, "username=auditor&password=" + strings.Repeat("x", 5000), 422, ""}, {form, "grant_type=implicit&" + right, 422, ""}, {form, "username=%zz", 422, ""},
		{"application/json", `{"username":"auditor","password":"` + d.password("auditor") + `"}`, 422, ""}, {"text/plain", right, 422, ""}, {"", right, 422, ""},
	} {
		status, detail := login(c.media, c.body)
		if status != c.status || c.detail != "" && fmt.Sprint(detail) != c.detail || detail == nil {
			t.Errorf("login with %s %.80s: %d %v, want %d %s", c.media, c.body, status, detail, c.status, c.detail)
		}
	}
	if status, _ := login(form, right); status != 200 {
		t.Errorf("the right password: %d", status)
	}
}
