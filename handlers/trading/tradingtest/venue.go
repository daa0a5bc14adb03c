// Package tradingtest runs the trading and operator interfaces for tests: with the real rules, a journal in memory,
// and the real projections in a real Postgres. It validates every response against the OpenAPI file.
package tradingtest

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/admin"
	"github.com/perpetua-exchange/perpetua/handlers/apikeys"
	"github.com/perpetua-exchange/perpetua/handlers/login"
	onboardings "github.com/perpetua-exchange/perpetua/handlers/onboarding"
	"github.com/perpetua-exchange/perpetua/handlers/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Version is the version in the venue's status.
const Version = "v1.2.3-test"

// Start is the time of the first record.
var Start = time.Date(2026, 3, 31, 8, 0, 0, 0, time.UTC)

// Venue is the system under test.
type Venue struct {
	t        testing.TB
	Trading  *Journal
	Identity *Journal
	// Onboarding is the journal of owners, for the operator's interface. Owners encrypts data about them.
	Onboarding *Journal
	Bucket     *gocloud.Bucket // bucket of uploaded files
	Owners     *seal.Owners
	Box        *seal.Box           // encrypts data that belongs to no owner
	OwnerRows  *projections.Runner // of the onboarding journal
	rows       map[string]*projections.Runner
	held       atomic.Int32 // number of locks that hold the rows
	beforeRead atomic.Pointer[func()]
	Server     *rest.Server
	routes     []rest.Route
	openapi    *conform.OpenAPI
	Audience   string               // of links to files
	Nodes      []admin.Node         // the rules that each node reports to the operator's interface
	LostKeys   byte                 // another number for a key store that lost its next checkpoint keys
	Receipts   map[string]*Receipts // by journal
	key        ed25519.PrivateKey
	pool       *pgxpool.Pool // the interfaces read from it
	states     *asof.States

	mu    sync.Mutex
	time  scalar.Time
	fault func(decide.Command) error
}

// New starts a venue in the state of `perpetua run` after its first start: three brokers, an operator, an auditor and
// users of the brokers, and the instruments BTCUSDC_PERP and ETHUSDC_PERP. The package's TestMain must be
// projectiontest.Main.
func New(t testing.TB) *Venue {
	t.Helper()
	pool := projectiontest.Database(t)
	return On(t, pool, pool)
}

// On is New with a migrated database: one pool for reading rows, one for the runners that write them.
func On(t testing.TB, read, write *pgxpool.Pool) *Venue {
	t.Helper()
	v := &Venue{t: t, time: scalar.TimeOf(Start), pool: read, Audience: "a venue, epoch 1"}
	v.Trading, v.Identity, v.Onboarding = newJournal(domain.Rules(), v.now), newJournal(identity.Rules(), v.now), newJournal(onboarding.Rules(), v.now)
	v.key = ed25519.NewKeyFromSeed([]byte("a seed for tests of 32 bytes.... "[:32]))
	v.seed()
	runner := v.project(projections.Config{Pool: write, Log: v.Trading.log, Journal: "trading"}.Runner(readmodels.Trading()...))
	people := v.project(projections.Config{Pool: write, Log: v.Identity.log, Journal: "identity"}.Runner(readmodels.Identity()...))
	v.OwnerRows = v.project(projections.Config{Pool: write, Log: v.Onboarding.log, Journal: "onboarding"}.Runner(readmodels.Onboarding()...))
	v.rows = map[string]*projections.Runner{"trading": runner, "identity": people, "onboarding": v.OwnerRows}
	v.openStores()
	v.Receipts = map[string]*Receipts{"trading": newReceipts(t, v.Trading), "onboarding": newReceipts(t, v.Onboarding)}

	var err error
	if v.openapi, err = description(); err != nil {
		t.Fatal(err)
	}
	if v.Server, err = rest.New(rest.Options{}); err != nil {
		t.Fatal(err)
	}
	v.states = asof.NewStates(pasts{v})
	auth := rest.NewAuth(access.NewTokens(login.NewDirectory(v.Identity), login.DefaultIssuer, v.wall))
	peopleRows := rows.Source{Journal: "identity", DB: observed{read, v}, Waiter: people}
	interfaces := v.trading(auth, rows.Source{Journal: "trading", DB: observed{read, v}, Waiter: runner}, peopleRows)
	clients := v.clients(auth, rows.Source{Journal: "onboarding", DB: observed{read, v}, Waiter: v.OwnerRows})
	reads := slices.Concat(clients.Operated(admin.Base), interfaces.Operated(admin.Base))
	operator := v.operator(auth, reads, interfaces.AsOf(), clients.AsOf(), peopleRows, admin.Reader{Name: "projections", Journal: "trading", Position: runner.Position, Err: runner.Err})
	keys := apikeys.New(apikeys.Config{Auth: auth, Journals: v, Identity: v.Identity, Venue: v.Trading})
	clients.Register(v.Server.Echo)
	keys.Register(v.Server.Echo)
	interfaces.Register(v.Server)
	operator.Register(v.Server.Echo)
	v.routes = slices.Concat(interfaces.Routes(), operator.Routes(), keys.Routes(), clients.Routes())
	return v
}

// wall returns the venue's time.
func (v *Venue) wall() time.Time { return v.now().Std() }

// pasts finds the past states of all journals.
type pasts struct{ *Venue }

// StateAt implements past.States.
func (p pasts) StateAt(ctx context.Context, name string, partition int32, sequence int64) (decide.State, record.Position, error) {
	if name == "onboarding" {
		return p.Onboarding.StateAt(ctx, name, partition, sequence)
	}
	return p.Trading.StateAt(ctx, name, partition, sequence)
}

// openStores opens the key store and the bucket in memory.
func (v *Venue) openStores() {
	v.t.Helper()
	var err error
	if v.Box, err = seal.New(make([]byte, seal.KeySize)); err != nil {
		v.t.Fatal(err)
	}
	if v.Owners, err = seal.OpenOwners(v.t.Context(), "mem://", v.Box); err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { v.Owners.Close() })
	if v.Bucket, err = blob.Open(v.t.Context(), "mem://"); err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { v.Bucket.Close() })
}

// trading returns the trading interface.
func (v *Venue) trading(auth *rest.Auth, trades, people rows.Source) *trading.Handler {
	return trading.New(trading.Config{Auth: auth, Journals: v, Venue: v.Trading, Rows: trades, Past: v.Trading, States: v.states, Now: v.wall, Version: Version, Receipts: v.Receipts["trading"],
		Commands: []rows.Source{trades, people}, Proofs: v.proofs(), Roots: roots(v.Receipts),
		Folds:   []trading.Fold{{Journal: "trading", Follower: v.Trading}, {Journal: "identity", Follower: v.Identity}},
		Sockets: trading.SocketLimits{MessageBytes: 32 << 10, Subscriptions: 256, ResumeRecords: 1_000_000}})
}

// clients returns the onboarding interface, without a virus scanner.
func (v *Venue) clients(auth *rest.Auth, owners rows.Source) *onboardings.Handler {
	return onboardings.New(onboardings.Config{Auth: auth, Journals: v, Onboarding: v.Onboarding, Past: v.Onboarding, States: v.states, Owners: v.Owners, Box: v.Box, Now: v.wall,
		Rows: owners, Files: files.New(v.Bucket, v.Owners, ""), LinkLifetime: 15 * time.Minute, KeyOverlap: 24 * time.Hour, Receipts: v.Receipts["onboarding"], Roots: roots(v.Receipts),
		Audience: func() access.Audience { return access.Audience{Name: v.Audience} }})
}

// operator returns the operator's interface, with the reads of the other interfaces.
func (v *Venue) operator(auth *rest.Auth, reads []rest.Route, venue, owners asof.Source, people rows.Source, reader admin.Reader) *admin.Handler {
	return admin.New(admin.Config{Auth: auth, Journals: v, Venue: v.Trading, Identity: v.Identity,
		Onboarding: v.Onboarding, Owners: v.Owners, Box: v.Box, Reads: reads, VenueAsOf: venue, OnboardingAsOf: owners,
		People:            people,
		NewSigningKey:     func() (*identity.AddSigningKey, error) { return login.NewSigningKey(v.Box) },
		SealPassword:      func(_, password string) (identity.Sealed, error) { return identity.Sealed("sealed " + password), nil },
		MAC:               mac,
		Now:               v.wall,
		Folds:             map[string]record.Follower{"trading": v.Trading, "identity": v.Identity, "onboarding": v.Onboarding},
		Nodes:             func(context.Context) ([]admin.Node, error) { return v.Nodes, nil },
		Tails:             []*admin.Tail{tail(v.Trading)},
		NextCheckpointKey: v.nextCheckpointKey,
		Readers:           []admin.Reader{reader},
	})
}

// description parses the OpenAPI file once for all tests of a package.
var description = sync.OnceValues(func() (*conform.OpenAPI, error) { return conform.NewOpenAPI(schemas.OpenAPI) })

// mac replaces the keyed hash of a seal.Box.
func mac(b []byte) []byte {
	h := hmac.New(sha256.New, []byte("a key for tests"))
	h.Write(b)
	return h.Sum(nil)
}

// tail returns a tail of a journal.
func tail(j *Journal) *admin.Tail {
	t := admin.NewTail(j.rules.Journal(), 0)
	for _, e := range j.Entries() {
		t.Observe(e, nil)
	}
	j.Listen(t.Observe)
	return t
}

func (v *Venue) project(r *projections.Runner) *projections.Runner {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Run(ctx)
	}()
	v.t.Cleanup(func() {
		stop()
		<-done
	})
	return r
}

// Replays returns runners that make the rows of all journals again in another database or schema. They are not started.
func (v *Venue) Replays(pool *pgxpool.Pool) []*projections.Runner {
	return []*projections.Runner{
		projections.Config{Pool: pool, Log: v.Trading.log, Journal: "trading"}.Runner(readmodels.Trading()...),
		projections.Config{Pool: pool, Log: v.Identity.log, Journal: "identity"}.Runner(readmodels.Identity()...),
		projections.Config{Pool: pool, Log: v.Onboarding.log, Journal: "onboarding"}.Runner(readmodels.Onboarding()...),
	}
}

// now returns the venue's time, which only Advance changes.
func (v *Venue) now() scalar.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.time
}

// Advance advances the clock.
func (v *Venue) Advance(d scalar.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.time += d
}

// HoldRows stops changes of the rows until release is called or the test ends. Reads still work.
func (v *Venue) HoldRows() (release func()) {
	v.t.Helper()
	tx, err := v.pool.Begin(context.Background())
	if err == nil {
		// The runners' first statement waits for this lock. Otherwise Postgres ends the transaction after a minute.
		_, err = tx.Exec(context.Background(), "SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE checkpoints IN EXCLUSIVE MODE")
	}
	if err != nil {
		v.t.Fatal(err)
	}
	v.held.Add(1)
	release = sync.OnceFunc(func() {
		_ = tx.Rollback(context.Background())
		v.held.Add(-1)
	})
	v.t.Cleanup(release)
	return release
}

// BeforeRead calls f before each batch of queries in which the interfaces read rows.
func (v *Venue) BeforeRead(f func()) { v.beforeRead.Store(&f) }

// observed is the database that the interfaces read.
type observed struct {
	projections.DB
	venue *Venue
}

// SendBatch implements projections.DB.
func (o observed) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if f := o.venue.beforeRead.Load(); f != nil {
		(*f)()
	}
	return o.DB.SendBatch(ctx, b)
}

// Routes lists the routes of all interfaces.
func (v *Venue) Routes() []rest.Route { return v.routes }

// OpenAPI returns the description against which responses are validated.
func (v *Venue) OpenAPI() *conform.OpenAPI { return v.openapi }

// Fail makes Submit return the error of the given function instead of deciding the command. It has no effect if the
// function is nil or returns nil.
func (v *Venue) Fail(fault func(c decide.Command) error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fault = fault
}

// Submit implements submit.Submitter.
func (v *Venue) Submit(ctx context.Context, name string, c decide.Command) (submit.Result, error) {
	v.mu.Lock()
	fault := v.fault
	v.mu.Unlock()
	if fault != nil {
		if err := fault(c); err != nil {
			return submit.Result{}, err
		}
	}
	if ctx.Err() != nil { // the client is gone and does not wait for the answer
		return submit.Result{}, &submit.OutcomeUnknownError{CommandID: c.ID}
	}
	switch name {
	case "identity":
		return v.Identity.Submit(ctx, c)
	case "onboarding":
		return v.Onboarding.Submit(ctx, c)
	}
	return v.Trading.Submit(ctx, c)
}

// SubmitAll implements submit.BatchSubmitter.
func (v *Venue) SubmitAll(ctx context.Context, name string, cs []decide.Command) []submit.Outcome {
	out := make([]submit.Outcome, len(cs))
	for i, c := range cs {
		out[i].Result, out[i].Err = v.Submit(ctx, name, c)
	}
	return out
}

// do submits a command of the system, which must succeed.
func (v *Venue) do(name, command string, payload any) {
	v.t.Helper()
	c := decide.Command{ID: operation.NewID(), Type: command, Actor: decide.Actor{System: "seed"}, Payload: payload}
	if _, err := v.Submit(context.Background(), name, c); err != nil {
		v.t.Fatalf("%s: %v", command, err)
	}
}

// Deposit credits a customer with 10⁻⁸ USDC. It is faster than a request.
func (v *Venue) Deposit(customer, reference string) {
	v.t.Helper()
	v.do("trading", domain.CommandMakeDeposit, &domain.MakeDeposit{CustomerCode: customer, Currency: "USDC", Amount: 1, ReferenceID: reference})
}

func (v *Venue) seed() {
	for n := 2; n <= domain.Rules().Newest(); n++ {
		v.do("trading", decide.CommandActivateRules, &decide.ActivateRules{Rules: n})
	}
	v.do("identity", identity.CommandAddSigningKey, &identity.AddSigningKey{KID: "test", Public: v.key.Public().(ed25519.PublicKey), Private: identity.Sealed("x")})
	for _, b := range []string{"venue", "alpha", "beta"} {
		v.do("identity", identity.CommandRegisterBroker, &identity.RegisterBroker{Broker: b, Name: b})
	}
	all := users()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		u := all[name]
		v.do("identity", identity.CommandRegisterUser, &identity.RegisterUser{Username: name, Broker: u.broker, CustomerCode: u.customer,
			Scopes: strings.Fields(u.scopes), IsActive: true, IsVerified: true, PasswordHash: identity.Sealed("x")})
	}
	for _, underlying := range []string{"BTC", "ETH"} {
		i := market.Instrument{Symbol: underlying + "USDC_PERP", Underlying: underlying, QuoteCurrency: "USDC", SettlementCurrency: "USDC",
			Status: market.Open, PriceTick: Decimal("0.1"), AmountStep: Decimal("0.001"), MinAmount: Decimal("0.001"), MaxAmount: Decimal("1000"),
			ContractSize: Decimal("1"), InitMarginReq: Decimal("5.00"), MaintMarginReq: Decimal("2.50"), MaxLeverage: 13,
			FundingIntervalSeconds: 3600, PriceBand: Decimal("5.00"), LimitBand: Decimal("20.00"), MakerFee: Decimal("2"), TakerFee: Decimal("5")}
		v.do("trading", domain.CommandListInstrument, &domain.ListInstrument{Instrument: i})
	}
}

// Decimal parses a decimal.
func Decimal(s string) fixed.Decimal {
	d, err := fixed.ParseDecimal(s)
	if err != nil {
		panic(err)
	}
	return d
}

// account is a user for whom tests create tokens.
type account struct{ broker, customer, scopes string }

func users() map[string]account {
	return map[string]account{
		"operator": {"venue", "", "operator read"},
		"auditor":  {"venue", "", "auditor read"},
		"broker-a": {"alpha", "", "trade read onboarding"},
		"broker-b": {"beta", "", "trade read onboarding"},
		"reader-a": {"alpha", "", "read"},
		"trader-a": {"alpha", "", "trade"},
		"client-a": {"alpha", "A-1", "trade read"},
		"client-o": {"alpha", "A-1", "onboarding"}, // lacks the scopes of this interface
	}
}

// Token returns a user's token. A user that the venue does not begin with is an operator, whom the test registers.
func (v *Venue) Token(username string) string {
	u, seeded := users()[username]
	if !seeded {
		u = users()["operator"]
	}
	encode := func(value any) string {
		b, err := json.Marshal(value, json.Deterministic(true))
		if err != nil {
			v.t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	claims := map[string]any{"sub": username, "iss": login.DefaultIssuer, "iat": Start.Unix(), "exp": Start.Add(1000 * time.Hour).Unix(),
		"broker": u.broker, "scope": u.scopes}
	if u.customer != "" {
		claims["customer"] = u.customer
	}
	text := encode(map[string]string{"alg": "EdDSA", "kid": "test", "typ": "JWT"}) + "." + encode(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(v.key, []byte(text)))
}

// Reply is a response.
type Reply struct {
	t      testing.TB
	what   string
	Status int
	Header http.Header
	Body   string
}

// Send sends a request as a user ("" for anonymous) and validates the response against the description. A read waits
// for everything written before. Headers are pairs of name and value.
func (v *Venue) Send(user, method, path, body string, headers ...string) *Reply {
	v.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if user != "" {
		r.Header.Set("Authorization", "Bearer "+v.Token(user))
	}
	if method == http.MethodGet {
		tip := v.tipFor(path)
		r.Header.Set(operation.HeaderMinLogPosition, tip.String())
		if !slices.Contains(headers, operation.HeaderMinLogPosition) {
			v.awaitRows(tip)
		}
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	v.Server.ServeHTTP(w, r)
	what := fmt.Sprintf("%s %s %s", method, path, body)
	if err := v.openapi.Response(method, r.URL.EscapedPath(), w.Code, w.Header(), w.Body.Bytes()); err != nil {
		v.t.Errorf("%s: %v\n%s", what, err, w.Body)
	}
	if w.Code < http.StatusMultipleChoices { // an accepted request must match the description
		if err := v.openapi.Request(method, r.URL, r.Header, []byte(body)); err != nil {
			v.t.Errorf("%s is accepted: %v", what, err)
		}
	}
	return &Reply{t: v.t, what: what, Status: w.Code, Header: w.Header(), Body: w.Body.String()}
}

// awaitRows waits for rows that are not held. On a busy machine they may be further behind than a read waits.
func (v *Venue) awaitRows(p record.LogPosition) {
	if v.held.Load() > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(v.t.Context(), time.Minute)
	defer cancel()
	_ = v.rows[p.Journal].Wait(ctx, p.Sequence) // an error of the rows is reported by the read
}

// tipFor returns the tip of the journal that answers a read of the path.
func (v *Venue) tipFor(path string) record.LogPosition {
	about := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(path, p) })
	}
	switch {
	case about("/admin/v1/brokers", "/admin/v1/users", "/admin/v1/signing-keys", "/v1/api-keys", "/admin/v1/four-eyes/identity"):
		return v.Identity.Tip()
	case about("/admin/v1/questionnaires", "/admin/v1/entitlement", "/admin/v1/persons", "/admin/v1/corporates", "/admin/v1/retention", "/admin/v1/webhook", "/admin/v1/four-eyes/onboarding", "/api/v1/"):
		return v.Onboarding.Tip()
	}
	return v.Trading.Tip()
}

// Want fails the test if the response has another status.
func (r *Reply) Want(status int) *Reply {
	r.t.Helper()
	if r.Status != status {
		r.t.Fatalf("%s: status %d, want %d: %s", r.what, r.Status, status, r.Body)
	}
	return r
}

// Detail fails the test if the response is not an error of the onboarding interface with the status and code.
func (r *Reply) Detail(status int, code string) *Reply {
	r.t.Helper()
	if r.Want(status); r.Text("detail") != code {
		r.t.Errorf("%s: %s, want %s", r.what, r.Body, code)
	}
	return r
}

// Details returns the validation errors of a 422 of the onboarding interface, each as type and location: "missing
// body.first_name".
func (r *Reply) Details() []string {
	r.t.Helper()
	var answer struct {
		Detail []struct {
			Type string `json:"type"`
			Loc  []any  `json:"loc"`
		} `json:"detail"`
	}
	r.Want(http.StatusUnprocessableEntity).JSON(&answer)
	out := []string{}
	for _, d := range answer.Detail {
		at := make([]string, len(d.Loc))
		for i, step := range d.Loc {
			at[i] = fmt.Sprint(step)
		}
		out = append(out, d.Type+" "+strings.Join(at, "."))
	}
	return out
}

// Items returns the items of a numbered page.
func (r *Reply) Items() []*Reply {
	r.t.Helper()
	var members map[string]jsontext.Value
	r.JSON(&members)
	page := *r
	page.Body = string(members["items"])
	return page.List()
}

// Code fails the test if the response is not a problem with the status and code.
func (r *Reply) Code(status int, code string) *Reply {
	r.t.Helper()
	if r.Want(status); r.Text("code") != code {
		r.t.Errorf("%s: code %s, want %s: %s", r.what, r.Text("code"), code, r.Body)
	}
	return r
}

// JSON decodes the body.
func (r *Reply) JSON(into any) *Reply {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.Body), into); err != nil {
		r.t.Fatalf("%s: %v: %s", r.what, err, r.Body)
	}
	return r
}

// Fields returns the body, which must be an object.
func (r *Reply) Fields() map[string]any {
	r.t.Helper()
	var fields map[string]any
	r.JSON(&fields)
	return fields
}

// List returns the elements of the body, which must be an array.
func (r *Reply) List() (out []*Reply) {
	r.t.Helper()
	var list []jsontext.Value
	r.JSON(&list)
	for _, element := range list {
		out = append(out, &Reply{t: r.t, what: r.what, Status: r.Status, Header: r.Header, Body: string(element)})
	}
	return out
}

// Records returns the records of a page.
func (r *Reply) Records() []*Reply {
	r.t.Helper()
	page := *r
	var members map[string]jsontext.Value
	r.JSON(&members)
	page.Body = string(members["records"])
	return page.List()
}

// Text returns a member of the body as text: a string unquoted, another value as JSON, an absent or null member as
// "".
func (r *Reply) Text(name string) string {
	r.t.Helper()
	switch v := r.Fields()[name].(type) {
	case string:
		return v
	case nil:
		return ""
	default:
		b, err := json.Marshal(v, json.Deterministic(true))
		if err != nil {
			r.t.Fatal(err)
		}
		return string(b)
	}
}

// Faults returns the fields and codes of a problem's errors in order: "amount REQUIRED".
func (r *Reply) Faults() []string {
	r.t.Helper()
	var problem struct {
		Errors []struct{ Field, Code string } `json:"errors"`
	}
	if err := json.Unmarshal([]byte(r.Body), &problem, json.MatchCaseInsensitiveNames(true)); err != nil {
		r.t.Fatalf("%s: %v: %s", r.what, err, r.Body)
	}
	out := []string{}
	for _, f := range problem.Errors {
		out = append(out, strings.TrimSpace(f.Field+" "+f.Code))
	}
	return out
}
