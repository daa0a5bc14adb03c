// Package admin serves the operator's interface under /admin/v1. It manages brokers and users; instruments and their
// prices; deposits and withdrawals; margins and fees of accounts; the operator's part of onboarding, such as
// questionnaires, entitlements, decisions on triggers and retention; and shows the state of the journals.
//
// Every change is a command to a journal, with the operator as its actor; no handler writes to a database. A write's
// response is built from the record that answers it, as in package handlers/trading. Lists are paged by number,
// newest first. Brokers and users are read from database rows, everything else from followers of the journals.
//
// Start with handler.go, which lists the routes.
package admin

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	venue "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/streams/logclock"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// These are the journals that receive commands of this package.
const (
	tradingJournal    = "trading"
	identityJournal   = "identity"
	onboardingJournal = "onboarding"
)

// Config holds the dependencies of the interface.
type Config struct {
	Auth     *rest.Auth
	Journals submit.Submitter
	// Venue follows the trading journal under trading.Rules, Identity the identity journal under identity.Rules.
	Venue    record.Follower
	Identity record.Follower
	// Onboarding follows the onboarding journal under onboarding.Rules.
	Onboarding record.Follower
	// VenueAsOf and OnboardingAsOf answer as of past records of these journals. Their clocks also decide what has expired.
	VenueAsOf, OnboardingAsOf asof.Source
	// Owners encrypts texts about an owner with the owner's key. Box encrypts texts that must outlive that key with
	// the venue's key.
	Owners *seal.Owners
	Box    *seal.Box
	// Reads are the routes that read owners, their dependent objects and their cases, and the margin ranking, under this
	// interface's base. They come from onboarding.Handler.Operated and trading.Handler.Operated.
	Reads []rest.Route
	// Folds contains the followers of all journals by name, including those above.
	Folds map[string]record.Follower
	// People contains the read models of the identity journal.
	People rows.Source
	// SealPassword hashes a password and encrypts the hash for the user. It is login.SealPassword with the box.
	SealPassword func(username, password string) (identity.Sealed, error)
	// NewSigningKey generates a key pair with an encrypted private part. It is login.NewSigningKey with the box.
	NewSigningKey func() (*identity.AddSigningKey, error)
	// MAC is the keyed hash of the box. It is used for fingerprints of requests that contain a password.
	MAC func([]byte) []byte
	// Now is the clock.
	Now func() time.Time
	// Nodes returns the rules that each of the venue's nodes supports.
	Nodes Nodes
	// NextCheckpointKey makes the next key of a journal's transparency log in the key store. Until a record names that key, it returns
	// the same one.
	NextCheckpointKey func(ctx context.Context, journal string) (*decide.RotateCheckpointKey, error)
	// Tails and Readers are the content of GET /admin/v1/journals. The tails also hold the last records.
	Tails   []*Tail
	Readers []Reader
}

// Handler serves the routes under /admin/v1.
type Handler struct {
	cfg        Config
	trading    operation.Journal
	identity   operation.Journal
	onboarding operation.Journal
	clocks     map[string]*logclock.Clock // by journal
	// hashing allows one password hash in memory, because each takes 64 MiB.
	hashing sync.Mutex
}

// New returns the handler of the operator's interface.
func New(c Config) *Handler {
	clocks := map[string]*logclock.Clock{tradingJournal: c.VenueAsOf.Clock, onboardingJournal: c.OnboardingAsOf.Clock}
	for journal, fold := range c.Folds {
		if clocks[journal] == nil {
			clocks[journal] = logclock.Of(fold, c.Now)
		}
	}
	return &Handler{cfg: c, clocks: clocks, trading: operation.Journal{To: c.Journals, Name: tradingJournal},
		identity: operation.Journal{To: c.Journals, Name: identityJournal, AuthFollower: c.Identity},
		// Judges lets an operator's next request see the objects that this one created.
		onboarding: operation.Journal{To: c.Journals, Name: onboardingJournal, AuthFollower: c.Onboarding}}
}

// Routes lists all routes of the interface. Each file of the package lists its part.
func (h *Handler) Routes() []rest.Route {
	all := slices.Concat(h.brokerRoutes(), h.userRoutes(), h.keyRoutes(), h.instrumentRoutes(), h.moneyRoutes(), h.accountRoutes(),
		h.insuranceRoutes(), h.systemRoutes(), h.questionnaireRoutes(), h.entitlementRoutes(), h.actionRoutes(), h.erasureRoutes(), h.fourEyesRoutes(), h.importRoutes(), h.cfg.Reads)
	return rest.Unconfined(all) // the interface concerns the whole venue
}

// Base is the path prefix of the interface.
const Base = "/admin/v1"

// read returns a route that only reads, and write one that changes something.
func read(path string, h echo.HandlerFunc) rest.Route {
	return rest.Get(Base+path, h, access.ScopeOperator, access.ScopeAuditor)
}

func write(method, path string, h echo.HandlerFunc) rest.Route {
	return rest.Route{Method: method, Path: Base + path, Scopes: []string{access.ScopeOperator}, Handler: h}
}

func post(path string, h echo.HandlerFunc) rest.Route { return write(http.MethodPost, path, h) }

func put(path string, h echo.HandlerFunc) rest.Route { return write(http.MethodPut, path, h) }

func patch(path string, h echo.HandlerFunc) rest.Route { return write(http.MethodPatch, path, h) }

func remove(path string, h echo.HandlerFunc) rest.Route { return write(http.MethodDelete, path, h) }

// systemRoutes returns the routes of the journals and of the engine's work.
func (h *Handler) systemRoutes() []rest.Route {
	return []rest.Route{
		read("/due", h.listDue),
		post("/due/:entry/put-back", h.putBackDue),
		post("/rules/:journal", h.activateRules),
		post("/commitments/:journal/rotate", h.rotateCommitment),
		post("/commitments/:journal/disclose", h.discloseCommitment),
		post("/checkpoint-keys/:journal/rotate", h.rotateCheckpointKey),
		read("/journals", h.listJournals),
		read("/journals/:journal/records", h.listRecords),
	}
}

// Register adds the routes.
func (h *Handler) Register(e *echo.Echo) { h.cfg.Auth.Register(e, h.Routes()) }

// viewVenueThen is viewVenue, or as of a past record if q is not nil.
func (h *Handler) viewVenueThen(c echo.Context, q *asof.Question, look func(*venue.State)) error {
	if q == nil {
		return h.viewVenue(c, look)
	}
	return q.AnswerState(c, h.cfg.VenueAsOf, func(s decide.State, _ int64) error { look(s.(*venue.State)); return nil })
}

// viewOnboardingThen is viewOnboarding, or as of a past record if q is not nil.
func (h *Handler) viewOnboardingThen(c echo.Context, q *asof.Question, look func(*onboarding.State) error) error {
	if q == nil {
		return h.viewOnboarding(c, look)
	}
	return q.AnswerState(c, h.cfg.OnboardingAsOf, func(s decide.State, _ int64) error { return look(s.(*onboarding.State)) })
}

// viewVenue calls look with the venue's state and sets the response's position headers.
func (h *Handler) viewVenue(c echo.Context, look func(*venue.State)) error {
	return rest.View(c, tradingJournal, h.cfg.Venue, func(s *venue.State, _ int64) error { look(s); return nil })
}

// viewIdentity calls look with the state of brokers and users and sets the response's position headers.
func (h *Handler) viewIdentity(c echo.Context, look func(*identity.State)) error {
	return rest.View(c, identityJournal, h.cfg.Identity, func(s *identity.State, _ int64) error { look(s); return nil })
}

// viewOnboarding calls look with the state of the onboarding journal and sets the response's position headers.
func (h *Handler) viewOnboarding(c echo.Context, look func(*onboarding.State) error) error {
	return rest.View(c, onboardingJournal, h.cfg.Onboarding, func(s *onboarding.State, _ int64) error { return look(s) })
}
