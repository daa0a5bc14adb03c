package trading_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jwt"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/order"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/login"
	"github.com/perpetua-exchange/perpetua/handlers/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// The benchmarks here are of what an order costs between the socket and Submit, and back: what the journal and the
// rules do is left out. BenchmarkBareEcho is what net/http and Echo cost by themselves.

// orderEntry is the request that is repeated, in the form of a load client: no more headers than it needs.
const orderEntry = `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.005","limit_price":"64999.5","time_in_force":"GTC"}`

const orderPath = "/v1/customers/BENCH-07/orders"

// accepting answers every command with one and the same record, in which an order of the customer is opened.
type accepting struct{ result submit.Result }

func newAccepting() *accepting {
	const sequence = 123_456
	stamp := decide.Stamp{Sequence: sequence, Time: 1_774_944_000_000_000}
	o := order.Order{CustomerCode: "BENCH-07", Broker: "alpha", Symbol: "BTCUSDC_PERP", Action: order.Buy, Type: order.Limit, Status: order.Open,
		Amount: fixed.Decimal{Coef: 5, Scale: 3}, FilledAmount: fixed.Decimal{Scale: 3}, LimitPrice: fixed.Decimal{Coef: 649995, Scale: 1},
		TimeInForce: order.GTC, Created: stamp.Time, Updated: stamp.Time}
	entry := &record.Entry{Record: &record.Record{Sequence: sequence, Time: stamp.Time}}
	o.Code = entry.Stamp().Derive(0)
	entry.Record.Events = []decide.Event{&domain.OrderOpened{Order: o}}
	return &accepting{submit.Result{Position: record.LogPosition{Journal: "trading", Sequence: sequence}, Entry: entry}}
}

func (a *accepting) Submit(context.Context, string, decide.Command) (submit.Result, error) {
	return a.result, nil
}

func (a *accepting) SubmitAll(_ context.Context, _ string, cs []decide.Command) []submit.Outcome {
	out := make([]submit.Outcome, len(cs))
	for i := range out {
		out[i].Result = a.result
	}
	return out
}

// known is an identity state without a journal.
type known struct {
	record.Follower
	state *identity.State
}

func (k known) View(look func(decide.State, record.Position)) { look(k.state, record.Position{}) }

// deaf is a venue that nobody looks at.
type deaf struct{ record.Follower }

// Listen implements record.Follower.
func (deaf) Listen(func(record.Entry, decide.State)) {}

// ListenFrom implements record.Follower.
func (deaf) ListenFrom(func(decide.State, record.Position), func(record.Entry, decide.State)) (stop func()) {
	return func() {}
}

// interfaceUnderLoad is the trading interface in front of a Submitter that accepts everything, and a token for it.
func interfaceUnderLoad(b *testing.B) (e *rest.Server, token string) {
	b.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	state := identity.NewState()
	state.Evolve(decide.Stamp{Sequence: 1}, decide.Recorded{}, decide.Accepted, []decide.Event{
		&identity.SigningKeyAdded{SigningKey: identity.SigningKey{KID: "k", Public: public}},
		&identity.UserRegistered{User: identity.User{Username: "broker-a", Broker: "alpha", Scopes: []string{"trade", "read"}, IsActive: true}},
	})
	claims, err := jwt.NewBuilder().Issuer("bench").Subject("broker-a").IssuedAt(time.Now()).Expiration(time.Now().Add(time.Hour)).
		Claim("broker", "alpha").Claim("scope", "trade read").Build()
	if err != nil {
		b.Fatal(err)
	}
	key, err := jwk.FromRaw(private)
	if err != nil {
		b.Fatal(err)
	}
	if err := key.Set(jwk.KeyIDKey, "k"); err != nil {
		b.Fatal(err)
	}
	signed, err := jwt.Sign(claims, jwt.WithKey(jwa.EdDSA, key))
	if err != nil {
		b.Fatal(err)
	}
	e, err = rest.New(rest.Options{Metrics: prometheus.NewRegistry()})
	if err != nil {
		b.Fatal(err)
	}
	auth := rest.NewAuth(access.NewTokens(login.NewDirectory(known{state: state}), "bench", time.Now))
	trading.New(trading.Config{Auth: auth, Journals: newAccepting(), Venue: deaf{}, Now: time.Now}).Register(e)
	e.LimitRequests(auth, access.NewNetworks(50, 200, time.Now))
	return e, string(signed)
}

// discarded is an answer that nobody reads.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d *discarded) WriteHeader(status int)      { d.status = status }

// entered is the body of a request, which can be read again.
type entered struct{ *bytes.Reader }

func (entered) Close() error { return nil }

// BenchmarkOrderEntry calls the handlers without a connection.
func BenchmarkOrderEntry(b *testing.B) {
	e, token := interfaceUnderLoad(b)
	body := entered{bytes.NewReader([]byte(orderEntry))}
	answer := &discarded{header: http.Header{}}
	header := http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: orderPath}, Header: header, ContentLength: int64(len(orderEntry))}
	b.ReportAllocs()
	for b.Loop() {
		body.Seek(0, io.SeekStart)
		r.Body = body
		delete(header, "X-Request-Id")
		clear(answer.header)
		e.ServeHTTP(answer, r)
		if answer.status != http.StatusCreated {
			b.Fatalf("status %d", answer.status)
		}
	}
}

// BenchmarkOrderWithKey is BenchmarkOrderEntry with an Idempotency-Key, for which a fingerprint is made.
func BenchmarkOrderWithKey(b *testing.B) {
	e, token := interfaceUnderLoad(b)
	body := entered{bytes.NewReader([]byte(orderEntry))}
	answer := &discarded{header: http.Header{}}
	header := http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k-1"}}
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: orderPath}, Header: header, ContentLength: int64(len(orderEntry))}
	b.ReportAllocs()
	for b.Loop() {
		body.Seek(0, io.SeekStart)
		r.Body = body
		clear(answer.header)
		e.ServeHTTP(answer, r)
	}
}

// BenchmarkOrderConnection has orders entered over a TCP connection, by a client that allocates nothing.
func BenchmarkOrderConnection(b *testing.B) {
	e, token := interfaceUnderLoad(b)
	overConnection(b, e, token)
}

// BenchmarkBareEcho is the same request to an Echo without middleware that does nothing but read it and answer.
func BenchmarkBareEcho(b *testing.B) {
	e := echo.New()
	sample := bytes.Repeat([]byte("x"), 620)
	e.POST("/v1/customers/:customer_code/orders", func(c echo.Context) error {
		var o struct {
			Symbol      string `json:"symbol"`
			Action      string `json:"action"`
			Type        string `json:"type"`
			Amount      string `json:"amount"`
			LimitPrice  string `json:"limit_price"`
			TimeInForce string `json:"time_in_force"`
		}
		if err := c.Echo().JSONSerializer.Deserialize(c, &o); err != nil {
			return err
		}
		return c.JSONBlob(http.StatusCreated, sample)
	})
	overConnection(b, e, "none")
}

func overConnection(b *testing.B, handler http.Handler, token string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	defer func() { server.Close(); <-done }()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	request := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		orderPath, token, len(orderEntry), orderEntry)
	in := bufio.NewReader(conn)
	prefix, length := []byte("HTTP/1.1 201"), []byte("Content-Length: ")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		size := -1
		for first := true; ; first = false {
			line, err := in.ReadSlice('\n')
			if err != nil || first && !bytes.HasPrefix(line, prefix) {
				b.Fatalf("%s (%v)", line, err)
			}
			if bytes.HasPrefix(line, length) {
				size = 0
				for _, c := range bytes.TrimSpace(line[len(length):]) {
					size = 10*size + int(c-'0')
				}
			}
			if len(line) == 2 {
				break
			}
		}
		if size <= 0 {
			b.Fatal("an answer without a length")
		}
		if _, err := in.Discard(size); err != nil {
			b.Fatal(err)
		}
	}
}
