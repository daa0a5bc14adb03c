package onboarding_test

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/webhooks"
	"github.com/perpetua-exchange/perpetua/projections/jobs"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// posted is a request that came to a receiver.
type posted struct {
	header http.Header
	body   string
}

// telling is a house with a receiver of webhooks. Nothing is sent before start, and each delivery is tried once: the sender goes by
// the machine's clock, which the house's is not.
type telling struct {
	*house
	pool     *pgxpool.Pool
	receiver *httptest.Server

	mu     sync.Mutex
	came   []posted
	status int
	reply  string
}

func newTelling(t *testing.T) *telling {
	t.Helper()
	pool := projectiontest.Open(t, projectiontest.VenueURL(t))
	w := &telling{house: &house{t, tradingtest.On(t, pool, pool)}, pool: pool, status: http.StatusOK}
	w.receiver = httptest.NewUnstartedServer(w)
	w.receiver.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.receiver.StartTLS()
	t.Cleanup(w.receiver.Close)
	return w
}

// ServeHTTP is the receiver.
func (w *telling) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.came = append(w.came, posted{r.Header, string(body)})
	out.WriteHeader(w.status)
	_, _ = io.WriteString(out, w.reply)
}

// answers has the receiver answer otherwise from now on.
func (w *telling) answers(status int, reply string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status, w.reply = status, reply
}

// got returns what has come so far.
func (w *telling) got() []posted {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]posted(nil), w.came...)
}

// verifies reports whether a key signed a request: its raw body, and as Standard Webhooks has it.
func (p posted) verifies(key string) (raw, standard bool) {
	public, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return false, false
	}
	signed := func(message, signature string) bool {
		s, err := base64.StdEncoding.DecodeString(signature)
		return err == nil && ed25519.Verify(public, []byte(message), s)
	}
	for one := range strings.FieldsSeq(p.header.Get("webhook-signature")) {
		text, _ := strings.CutPrefix(one, "v1a,")
		standard = standard || signed(p.header.Get("webhook-id")+"."+p.header.Get("webhook-timestamp")+"."+p.body, text)
	}
	return signed(p.body, p.header.Get("X-SERVICE-Signature")), standard
}

// start starts the sender.
func (w *telling) start() {
	w.T.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(w.receiver.Certificate())
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	client := webhooks.Dialing{Roots: roots, Allowed: loopback}.Client(webhooks.PerReceiver, webhooks.Within)
	s := webhooks.New(webhooks.Config{Node: "test", DB: w.pool, Fold: w.Onboarding, Rows: w.OwnerRows, To: w, Owners: w.Owners, Box: w.Box,
		Client: client, Schedule: webhook.Schedule{}, Logger: slog.New(slog.NewTextHandler(w.T.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	w.T.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.T.Error(err)
		}
		client.CloseIdleConnections()
	})
}

// look has the sender look at registrations, as it does a little later by itself.
func (w *telling) look(hooks ...string) {
	w.T.Helper()
	insert, err := jobs.NewInserter()
	if err != nil {
		w.T.Fatal(err)
	}
	var all []scalar.ID
	for _, text := range hooks {
		id, err := scalar.ParseID(text)
		if err != nil {
			w.T.Fatal(err)
		}
		all = append(all, id)
	}
	if err := w.OwnerRows.Wait(w.T.Context(), w.Onboarding.Tip().Sequence); err != nil {
		w.T.Fatal(err)
	}
	if err := pgx.BeginFunc(w.T.Context(), w.pool, func(tx pgx.Tx) error { return insert.Insert(w.T.Context(), tx, all) }); err != nil {
		w.T.Fatal(err)
	}
}

// register registers a webhook of broker-a's for all events, and returns its id.
func (w *telling) register() string {
	w.T.Helper()
	return w.make("broker-a", api+"/webhooks", `{"url":"`+w.receiver.URL+`"}`)
}

// test has a test event be sent, and returns the delivery's path.
func (w *telling) test(hook string) string {
	w.T.Helper()
	return api + "/webhooks/" + hook + "/deliveries/" + w.make("broker-a", api+"/webhooks/"+hook+"/test", "")
}

// shown returns a registration as its tenant's list shows it.
func (w *telling) shown(hook string) map[string]any {
	w.T.Helper()
	for _, one := range w.Send("broker-a", "GET", api+"/webhooks", "").Want(200).Items() {
		if one.Text("id") == hook {
			return one.Fields()
		}
	}
	w.T.Fatalf("%s is not listed", hook)
	return nil
}

// ends waits until a delivery stands at a state, and returns it.
func (w *telling) ends(path, status string) *tradingtest.Reply {
	w.T.Helper()
	var d *tradingtest.Reply
	for limit := time.Now().Add(time.Minute); ; <-time.After(5 * time.Millisecond) {
		if d = w.Send("broker-a", "GET", path, "").Want(200); d.Text("status") == status {
			return d
		}
		if time.Now().After(limit) {
			w.T.Fatalf("it does not come to be %s: %s", status, d.Body)
		}
	}
}

// try has a test event be sent and waits for how that ends.
func (w *telling) try(hook, status string) *tradingtest.Reply {
	w.T.Helper()
	path := w.test(hook)
	w.look(hook)
	return w.ends(path, status)
}

// deliveries returns the deliveries to a registration, the oldest first.
func (w *telling) deliveries(hook string) []*tradingtest.Reply {
	w.T.Helper()
	newest := w.Send("broker-a", "GET", api+"/webhooks/"+hook+"/deliveries?size=100", "").Want(200).Items()
	out := make([]*tradingtest.Reply, 0, len(newest))
	for i := len(newest) - 1; i >= 0; i-- {
		out = append(out, newest[i])
	}
	return out
}

// open registers a person and opens a case, which is the first event about it; ask gives a further one.
func (w *telling) open() (path, trigger, questionnaire string) {
	w.T.Helper()
	q, more := w.questionnaire("KYC", "person", oneText, ""), w.questionnaire("More", "person", oneText, "")
	entitlement := w.entitlement("person", `,"approval":"manual"`, q)
	path = w.person("p-" + entitlement)
	return path, w.make("broker-a", path+"/entitlement_triggers", `{"entitlement_id":"`+entitlement+`"}`), more.id
}

func (w *telling) ask(trigger, questionnaire, why string) {
	w.T.Helper()
	w.Send("operator", "POST", admin+"/entitlement_triggers/"+trigger+"/request_information", `{"code":"MORE","reason":"`+why+`","questionnaire_ids":["`+questionnaire+`"]}`).Want(200)
	w.Onboarding.Drain()
}
