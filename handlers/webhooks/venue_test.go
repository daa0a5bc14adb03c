package webhooks

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/jobs"
	rows "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

// patience bounds every wait for something that must happen.
const patience = 3 * time.Minute

var (
	operator = decide.Actor{Sub: "operator", Broker: "venue"}
	tenant   = decide.Actor{Sub: "broker-a", Broker: "alpha"}
)

// venue is an onboarding journal with its owner, its fold and its rows, without senders.
type venue struct {
	t      testing.TB
	client *journal.Client
	owner  *journal.Owner
	fold   *follow.Fold
	pool   *pgxpool.Pool
	runner *projections.Runner
	owners *seal.Owners
	box    *seal.Box
	// ahead is how far in the future commands are decided.
	ahead atomic.Int64
	// stopProjecting ends the runner.
	stopProjecting func()
	// cases are of an entitlement that asks for one questionnaire, and may ask for another.
	entitlement, further scalar.ID
}

// later are rules by which commands are decided at a later time than it is.
type later struct {
	decide.Rules
	ahead *atomic.Int64 // a scalar.Time
}

// NewState implements decide.Rules.
func (r later) NewState() decide.State { return laterState{r.Rules.NewState(), r.ahead} }

type laterState struct {
	decide.State
	ahead *atomic.Int64
}

// Decide implements decide.State.
func (s laterState) Decide(at decide.Stamp, c decide.Command) (decide.Decision, error) {
	at.Time += scalar.Time(s.ahead.Load())
	return s.State.Decide(at, c)
}

func newVenue(t testing.TB) *venue {
	t.Helper()
	v := &venue{t: t, client: journaltest.NewClient(t, journalName)}
	var err error
	if v.box, err = seal.New(make([]byte, seal.KeySize)); err != nil {
		t.Fatal(err)
	}
	if v.owners, err = seal.OpenOwners(t.Context(), "mem://", v.box); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.owners.Close() })
	if v.owner, err = journal.NewOwner(journal.OwnerConfig{Client: v.client, Rules: later{onboarding.Rules(), &v.ahead}, Node: "n"}); err != nil {
		t.Fatal(err)
	}
	v.fold = follow.New(v.client, onboarding.Rules(), 0)
	v.run(v.owner.Run)
	v.run(v.fold.Run)
	v.projectUpTo(projectiontest.VenueURL(t), math.MaxInt64)
	v.until("the journal has an owner", func() bool { _, serving := v.owner.Serving(); return serving })
	v.further = v.questionnaire()
	e := do[*onboarding.EntitlementCreated](v, operator, &onboarding.CreateEntitlement{Name: "onboarding", OwnerType: owner.PersonType,
		Approval: entitlement.Manual, Questionnaires: []entitlement.Item{{QuestionnaireID: v.questionnaire()}}})
	v.entitlement = e.ID
	return v
}

// run runs something until the test ends, or until stop is called.
func (v *venue) run(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			v.t.Error(err)
		}
	})
	v.t.Cleanup(stop)
	return stop
}

// projectUpTo keeps the rows in a database, up to a sequence until the bound is raised.
func (v *venue) projectUpTo(url string, last int64) *projections.Bounded {
	v.t.Helper()
	v.pool = projectiontest.Open(v.t, url)
	insert, err := jobs.NewInserter()
	if err != nil {
		v.t.Fatal(err)
	}
	bound := projections.NewBounded(projections.NewLog(v.client, onboarding.Rules(), 0))
	bound.Raise(last)
	v.runner = projections.Config{Pool: v.pool, Log: bound, Journal: journalName}.Runner(readmodels.Onboarding()...)
	v.runner.Along(Along(insert, v.client.Contact(journalName).End))
	v.stopProjecting = v.run(v.runner.Run)
	return bound
}

// Submit implements submit.Submitter.
func (v *venue) Submit(ctx context.Context, _ string, c decide.Command) (submit.Result, error) {
	return v.owner.Submit(ctx, c)
}

// do has a command decided and returns the first event of a kind in its record.
func do[E decide.Event](v *venue, by decide.Actor, p decide.Payload) E {
	v.t.Helper()
	e, err := decided[E](v, by, p)
	if err != nil {
		v.t.Fatalf("%s: %v", p.CommandType(), err)
	}
	return e
}

func decided[E decide.Event](v *venue, by decide.Actor, p decide.Payload) (none E, err error) {
	c := decide.Command{ID: operation.NewID(), Type: p.CommandType(), Actor: by, Payload: p}
	result, err := journaltest.Insist(func() (submit.Result, error) { return v.owner.Submit(context.Background(), c) })
	if err != nil {
		return none, err
	}
	e, found := operation.Find[E](result.Entry.Record)
	if !found {
		return none, fmt.Errorf("the record holds no %T", none)
	}
	return e, nil
}

func (v *venue) questionnaire() scalar.ID {
	v.t.Helper()
	q := do[*onboarding.QuestionnaireCreated](v, operator, &onboarding.CreateQuestionnaire{Name: "q", OwnerType: owner.PersonType}).ID
	do[*onboarding.VersionAdded](v, operator, &onboarding.AddVersion{QuestionnaireID: q,
		Questions: []questionnaire.Question{{Label: "Who are you?", Value: "who", Type: questionnaire.Text}}})
	do[*onboarding.QuestionnairePublished](v, operator, &onboarding.PublishQuestionnaire{ID: q})
	return q
}

// file is an owner with an open case.
type file struct {
	owner.Ref
	trigger scalar.ID
}

// person registers a person and opens a case, which is the first notice about it.
func (v *venue) person() file {
	v.t.Helper()
	p := file{Ref: owner.Ref{Type: owner.PersonType, ID: operation.NewID()}}
	if err := v.owners.Create(v.t.Context(), p.Ref.String()); err != nil {
		v.t.Fatal(err)
	}
	do[*onboarding.OwnerRegistered](v, tenant, &onboarding.RegisterOwner{Ref: p.Ref, Fields: v.seal(p.Ref, seal.OwnerFields(p.Ref), "{}"),
		ExternalID: v.box.ExternalID(tenant.Broker, owner.PersonType, p.Ref.String())})
	p.trigger = do[*onboarding.TriggerCreated](v, tenant, &onboarding.CreateTrigger{Ref: p.Ref, EntitlementID: v.entitlement}).ID
	v.until("the case is open", func() (ongoing bool) {
		v.fold.View(func(s decide.State, _ record.Position) {
			c, known := s.(*onboarding.State).Trigger(p.trigger)
			ongoing = known && c.Status == entitlement.Ongoing
		})
		return ongoing
	})
	return p
}

// ask asks a person for more, which is a further notice about it, with a sealed reason.
func (v *venue) ask(p file, why string) {
	v.t.Helper()
	do[*onboarding.NoticeGiven](v, operator, &onboarding.ActOnTrigger{ID: p.trigger, Action: entitlement.RequestInformation, Code: "MORE",
		Reason: v.seal(p.Ref, seal.Reason(p.Ref, p.trigger), why), Questionnaires: []scalar.ID{v.further}})
}

func (v *venue) seal(of owner.Ref, at seal.AssociatedData, text string) onboarding.Sealed {
	v.t.Helper()
	c, err := v.owners.Seal(v.t.Context(), []byte(text), at)
	if err != nil {
		v.t.Fatal(err)
	}
	return c
}

// key makes a signing key for a registration, as the handler does.
func (v *venue) key(of scalar.ID) (onboarding.SigningKey, ed25519.PublicKey) {
	v.t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		v.t.Fatal(err)
	}
	c, err := v.box.Seal(private.Seed(), seal.WebhookKey(of))
	if err != nil {
		v.t.Fatal(err)
	}
	return onboarding.SigningKey{KeyID: operation.NewID().String(), Public: public, Private: c}, public
}

// register registers a receiver.
func (v *venue) register(r *sink, types ...webhook.EventType) scalar.ID {
	v.t.Helper()
	id := operation.NewID()
	key, public := v.key(id)
	r.trust(public)
	do[*onboarding.WebhookCreated](v, tenant, &onboarding.CreateWebhook{ID: id, URL: r.server.URL, All: len(types) == 0, Types: types, Key: key})
	return id
}

// sender returns a sender of this venue's, not running, that trusts the receivers.
func (v *venue) sender(name string, within time.Duration, schedule webhook.Schedule, receivers ...*sink) *Sender {
	v.t.Helper()
	roots := x509.NewCertPool()
	for _, r := range receivers {
		roots.AddCert(r.server.Certificate())
	}
	client := Dialing{Roots: roots, Allowed: loopback}.Client(PerReceiver, within)
	v.t.Cleanup(client.CloseIdleConnections)
	client.Transport = &counted{to: client.Transport, receivers: receivers}
	return New(Config{Node: name, DB: v.pool, Fold: v.fold, Rows: v.runner, To: v, Owners: v.owners, Box: v.box, Client: client,
		Schedule: schedule, Logger: slog.New(slog.NewTextHandler(v.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))})
}

func (v *venue) until(what string, reached func() bool) {
	v.t.Helper()
	for limit := time.Now().Add(patience); !reached(); <-time.After(2 * time.Millisecond) {
		if time.Now().After(limit) {
			v.t.Fatalf("it does not come to it that %s (the rows: %v, failing with %v)", what, v.runner.Position().Sequence, v.runner.Failing())
		}
	}
}

// receipts returns the deliveries to a registration, the oldest first, and their attempts.
func (v *venue) receipts(id scalar.ID) ([]rows.Delivery, map[scalar.ID][]rows.Attempt) {
	v.t.Helper()
	var all []rows.Delivery
	for {
		some, total, _, err := rows.Deliveries(v.t.Context(), v.pool, rows.DeliveryFilter{WebhookID: id}, 100, len(all))
		if err != nil {
			v.t.Fatal(err)
		}
		if all = append(all, some...); len(all) >= total || len(some) == 0 {
			break
		}
	}
	for i, k := 0, len(all)-1; i < k; i, k = i+1, k-1 {
		all[i], all[k] = all[k], all[i]
	}
	attempts, err := rows.Attempts(v.t.Context(), v.pool, all)
	if err != nil {
		v.t.Fatal(err)
	}
	return all, attempts
}

// settled reports whether so many deliveries to a registration stand at one of some states, and no others are there.
func (v *venue) settled(id scalar.ID, n int, at ...webhook.Status) func() bool {
	count := func(statuses ...webhook.Status) int {
		_, total, _, err := rows.Deliveries(v.t.Context(), v.pool, rows.DeliveryFilter{WebhookID: id, Statuses: statuses}, 1, 0)
		if err != nil {
			v.t.Error(err)
		}
		return total
	}
	return func() bool { return count(at...) == n && count() == n }
}

// sayNothing is what a receiver does that takes a request and answers none, however long it is waited for. It must not end well
// when the sender has given up: an answer may still be read while a connection is being closed.
func sayNothing(r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// arrival is a request that a receiver got.
type arrival struct {
	id, body string
}

// sink is a receiver that keeps what it gets, and judges the signatures.
type sink struct {
	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	keys     []ed25519.PublicKey
	arrived  []arrival
	answer   func(n int, w http.ResponseWriter, r *http.Request) // n counts the requests from 0; nil for 200
	inFlight int
	most     int // in flight at a time, as the sender has it: the end of one that it gave up comes later to a receiver
}

// counted counts a sender's requests to receivers.
type counted struct {
	to        http.RoundTripper
	receivers []*sink
}

// RoundTrip implements http.RoundTripper.
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, s := range c.receivers {
		if s.server.Listener.Addr().String() == r.URL.Host {
			s.count(1)
			defer s.count(-1)
		}
	}
	return c.to.RoundTrip(r)
}

// CloseIdleConnections closes those of the client that is counted.
func (c *counted) CloseIdleConnections() { (&http.Client{Transport: c.to}).CloseIdleConnections() }

func (s *sink) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight += n
	s.most = max(s.most, s.inFlight)
}

// newSink starts a receiver.
func newSink(t testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *sink {
	t.Helper()
	s := &sink{t: t, answer: answer}
	s.server = httptest.NewUnstartedServer(s)
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	t.Cleanup(s.server.CloseClientConnections)
	return s
}

func (s *sink) trust(key ed25519.PublicKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, key)
}

// ServeHTTP implements http.Handler.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	n := len(s.arrived)
	s.arrived = append(s.arrived, arrival{r.Header.Get(HeaderID), string(body)})
	if wrong := s.wrong(r, body); wrong != "" {
		s.t.Errorf("request %d: %s", n, wrong)
	}
	s.mu.Unlock()
	if s.answer != nil {
		s.answer(n, w, r)
	}
}

// wrong says what is wrong with a request. The lock is held.
func (s *sink) wrong(r *http.Request, body []byte) string {
	verifies := func(signed []byte, signature string) bool {
		raw, err := base64.StdEncoding.Strict().DecodeString(signature)
		for _, key := range s.keys {
			if err == nil && ed25519.Verify(key, signed, raw) {
				return true
			}
		}
		return false
	}
	signed := append([]byte(r.Header.Get(HeaderID)+"."+r.Header.Get(HeaderTimestamp)+"."), body...)
	all := strings.Split(r.Header.Get(HeaderStandardSignature), " ")
	switch {
	case r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json":
		return r.Method + " with " + r.Header.Get("Content-Type")
	case !strings.Contains(string(body), `"id":"`+r.Header.Get(HeaderID)+`"`):
		return "the header has another id than the body"
	case !verifies(body, r.Header.Get(HeaderSignature)):
		return HeaderSignature + " is not by a key that is known"
	case len(all) == 0:
		return "no " + HeaderStandardSignature
	}
	for _, one := range all {
		if text, is := strings.CutPrefix(one, "v1a,"); is && verifies(signed, text) {
			return ""
		}
	}
	return HeaderStandardSignature + " is not by a key that is known"
}

// got returns what has arrived so far.
func (s *sink) got() []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]arrival(nil), s.arrived...)
}
