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
	"slices"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	venue "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
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
	Auth     *web.Auth
	Journals submit.Submitter
	// Venue follows the trading journal under trading.Rules, Identity the identity journal under identity.Rules.
	Venue    record.Follower
	Identity record.Follower
	// Onboarding follows the onboarding journal under onboarding.Rules.
	Onboarding record.Follower
	// Owners encrypts texts about an owner with the owner's key. Box encrypts texts that must outlive that key with
	// the venue's key.
	Owners *seal.Owners
	Box    *seal.Box
	// Reads are the routes that read owners, their dependent objects and their cases, under this interface's base.
	// They come from onboarding.Handler.Operated.
	Reads []web.Route
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
	// Nodes returns the rules that each of the venue's nodes supports.
	Nodes Nodes
	// Tails and Readers are the content of GET /admin/v1/journals. The tails also hold the last records.
	Tails   []*Tail
	Readers []Reader
}

// Handler serves the routes under /admin/v1.
type Handler struct {
	cfg        Config
	trading    web.Journal
	identity   web.Journal
	onboarding web.Journal
	// hashing allows one password hash in memory, because each takes 64 MiB.
	hashing sync.Mutex
}

// New returns the handler of the operator's interface.
func New(c Config) *Handler {
	return &Handler{cfg: c, trading: web.Journal{To: c.Journals, Name: tradingJournal},
		identity: web.Journal{To: c.Journals, Name: identityJournal, AuthFollower: c.Identity},
		// Judges lets an operator's next request see the objects that this one created.
		onboarding: web.Journal{To: c.Journals, Name: onboardingJournal, AuthFollower: c.Onboarding}}
}

// Routes lists all routes of the interface.
func (h *Handler) Routes() []web.Route {
	read, write := []string{web.ScopeOperator, web.ScopeAuditor}, web.ScopeOperator
	return slices.Concat(h.venueRoutes(read, write), h.catalogueRoutes(read, write), h.caseRoutes(read, write), h.cfg.Reads)
}

// Base is the path prefix of the interface.
const Base = "/admin/v1"

const base = Base

// venueRoutes returns the routes of the trading venue and of the system.
func (h *Handler) venueRoutes(read []string, write string) []web.Route {
	return []web.Route{
		web.Get(base+"/brokers", h.listBrokers, read...),
		web.Post(base+"/brokers", h.registerBroker, write),
		web.Get(base+"/users", h.listUsers, read...),
		web.Post(base+"/users", h.registerUser, write),
		web.Patch(base+"/users/:username", h.changeUser, write),
		web.Get(base+"/users/:username/api-keys", h.listAPIKeys, read...),
		web.Patch(base+"/users/:username/api-keys/:id", h.limitAPIKey, write),

		web.Get(base+"/signing-keys", h.listSigningKeys, read...),
		web.Post(base+"/signing-keys", h.addSigningKey, write),
		web.Delete(base+"/signing-keys/:kid", h.retireSigningKey, write),

		web.Get(base+"/instruments", h.listInstruments, read...),
		web.Post(base+"/instruments", h.listInstrument, write),
		web.Get(base+"/instruments/:symbol", h.getInstrument, read...),
		web.Patch(base+"/instruments/:symbol", h.changeInstrument, write),
		web.Delete(base+"/instruments/:symbol", h.delistInstrument, write),
		web.Post(base+"/index-prices/:symbol", h.setIndexPrice, write),

		web.Post(base+"/customers/:customer_code/deposits", h.makeDeposit, write),
		web.Post(base+"/customers/:customer_code/withdrawals", h.requestWithdrawal, write),
		web.Post(base+"/withdrawals/:code/complete", h.completeWithdrawal, write),
		web.Post(base+"/withdrawals/:code/cancel", h.cancelWithdrawal, write),
		web.Put(base+"/customers/:customer_code/margin-profile", h.setMarginProfile, write),
		web.Put(base+"/customers/:customer_code/fee-profile/:symbol", h.setFees, write),

		web.Get(base+"/insurance", h.getInsurance, read...),
		web.Post(base+"/insurance/deposits", h.depositInsurance, write),

		web.Get(base+"/due", h.listDue, read...),
		web.Post(base+"/due/:entry/put-back", h.putBackDue, write),
		web.Post(base+"/rules/:journal", h.activateRules, write),

		web.Get(base+"/journals", h.listJournals, read...),
		web.Get(base+"/journals/:journal/records", h.listRecords, read...),
	}
}

// catalogueRoutes returns the routes of questionnaires, entitlements and retention.
func (h *Handler) catalogueRoutes(read []string, write string) []web.Route {
	return []web.Route{
		web.Get(base+"/questionnaires", h.listQuestionnaires, read...),
		web.Post(base+"/questionnaires", h.createQuestionnaire, write),
		web.Get(base+"/questionnaires/:id", h.getQuestionnaire, read...),
		web.Patch(base+"/questionnaires/:id", h.changeQuestionnaire, write),
		web.Post(base+"/questionnaires/:id/versions", h.addVersion, write),
		web.Post(base+"/questionnaires/:id/publish", h.publishQuestionnaire, write),
		web.Post(base+"/questionnaires/:id/unpublish", h.unpublishQuestionnaire, write),

		web.Get(base+"/entitlements", h.listEntitlements, read...),
		web.Post(base+"/entitlements", h.createEntitlement, write),
		web.Get(base+"/entitlements/:id", h.getEntitlement, read...),
		web.Patch(base+"/entitlements/:id", h.changeEntitlement, write),

		web.Get(base+"/retention", h.getRetention, read...),
		web.Put(base+"/retention", h.setRetention, write),
	}
}

// caseRoutes returns the routes of owners and their triggers.
func (h *Handler) caseRoutes(read []string, write string) []web.Route {
	var routes []web.Route
	for _, a := range actionRoutes() {
		routes = append(routes, web.Post(base+"/entitlement_triggers/:id/"+string(a), h.act(a), write))
	}
	for _, t := range []owner.Type{owner.PersonType, owner.CorporateType} {
		one := base + "/" + string(t) + "s/:" + string(t) + "_id"
		routes = append(routes,
			web.Post(one+"/erase", h.eraseOwner(t), write),
			web.Post(one+"/hold", h.holdOwner(t), write),
			web.Post(one+"/release-hold", h.releaseOwner(t), write),
			web.Get(one+"/erasure", h.getErasure(t), read...))
	}
	return routes
}

// Register adds the routes.
func (h *Handler) Register(e *echo.Echo) { h.cfg.Auth.Register(e, h.Routes()) }

// viewVenue calls look with the venue's state and sets the response's position headers.
func (h *Handler) viewVenue(c echo.Context, look func(*venue.State)) error {
	return web.View(c, tradingJournal, h.cfg.Venue, func(s *venue.State, _ int64) error { look(s); return nil })
}

// viewIdentity calls look with the state of brokers and users and sets the response's position headers.
func (h *Handler) viewIdentity(c echo.Context, look func(*identity.State)) error {
	return web.View(c, identityJournal, h.cfg.Identity, func(s *identity.State, _ int64) error { look(s); return nil })
}

// viewOnboarding calls look with the state of the onboarding journal and sets the response's position headers.
func (h *Handler) viewOnboarding(c echo.Context, look func(*onboarding.State) error) error {
	return web.View(c, onboardingJournal, h.cfg.Onboarding, func(s *onboarding.State, _ int64) error { return look(s) })
}
