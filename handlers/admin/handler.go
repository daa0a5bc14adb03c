// Package admin serves the operator's interface under /admin/v1: brokers and users, instruments and their prices,
// deposits and withdrawals, margins and fees of accounts, and where the journals stand.
//
// Whatever changes something is a command in a journal, with the operator as its actor; there is no side door into
// any database. Answers to writes are rendered from the record that answers them, as in package handlers/trading.
// Lists come from followers of the journals, newest first, and page by number.
package admin

import (
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	venue "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// The journals that the commands of this package go to.
const (
	tradingJournal  = "trading"
	identityJournal = "identity"
)

// Config is what the interface is made of.
type Config struct {
	Auth     *web.Auth
	Journals journal.Submitter
	// Venue follows the trading journal under trading.Rules, Identity the identity journal under identity.Rules.
	Venue    trading.Follower
	Identity trading.Follower
	// SealPassword hashes a password and seals the hash as that of the user: login.SealPassword with the box.
	SealPassword func(username, password string) (identity.Sealed, error)
	// NewSigningKey makes a key pair with its private part sealed: login.NewSigningKey with the box.
	NewSigningKey func() (*identity.AddSigningKey, error)
	// MAC is a keyed hash, for the fingerprints of requests that hold a password: the box's.
	MAC func([]byte) []byte
	// Tails and Readers are what GET /admin/v1/journals shows; the tails hold the last records, too.
	Tails   []*Tail
	Readers []Reader
}

// Handler serves the routes under /admin/v1.
type Handler struct {
	cfg Config
	// hashing lets one password be hashed at a time: each takes 64 MiB.
	hashing sync.Mutex
}

// New makes the handler of the operator's interface.
func New(c Config) *Handler { return &Handler{cfg: c} }

// Routes lists all routes of the interface.
func (h *Handler) Routes() []trading.Route {
	get, post, put, patch, remove := http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete
	read, write := []string{web.ScopeOperator, web.ScopeAuditor}, []string{web.ScopeOperator}
	const base = "/admin/v1"
	return []trading.Route{
		{Method: get, Path: base + "/brokers", Scopes: read, Handler: h.listBrokers},
		{Method: post, Path: base + "/brokers", Scopes: write, Handler: h.registerBroker},
		{Method: get, Path: base + "/users", Scopes: read, Handler: h.listUsers},
		{Method: post, Path: base + "/users", Scopes: write, Handler: h.registerUser},
		{Method: patch, Path: base + "/users/:username", Scopes: write, Handler: h.changeUser},

		{Method: get, Path: base + "/signing-keys", Scopes: read, Handler: h.listSigningKeys},
		{Method: post, Path: base + "/signing-keys", Scopes: write, Handler: h.addSigningKey},
		{Method: remove, Path: base + "/signing-keys/:kid", Scopes: write, Handler: h.retireSigningKey},

		{Method: get, Path: base + "/instruments", Scopes: read, Handler: h.listInstruments},
		{Method: post, Path: base + "/instruments", Scopes: write, Handler: h.listInstrument},
		{Method: patch, Path: base + "/instruments/:symbol", Scopes: write, Handler: h.changeInstrument},
		{Method: remove, Path: base + "/instruments/:symbol", Scopes: write, Handler: h.withdrawInstrument},
		{Method: post, Path: base + "/index-prices/:symbol", Scopes: write, Handler: h.setIndexPrice},

		{Method: post, Path: base + "/customers/:customer_code/deposits", Scopes: write, Handler: h.makeDeposit},
		{Method: post, Path: base + "/customers/:customer_code/withdrawals", Scopes: write, Handler: h.requestWithdrawal},
		{Method: post, Path: base + "/withdrawals/:code/complete", Scopes: write, Handler: h.completeWithdrawal},
		{Method: post, Path: base + "/withdrawals/:code/cancel", Scopes: write, Handler: h.cancelWithdrawal},
		{Method: put, Path: base + "/customers/:customer_code/margin-profile", Scopes: write, Handler: h.setMarginProfile},
		{Method: put, Path: base + "/customers/:customer_code/fee-profile/:symbol", Scopes: write, Handler: h.setFees},

		{Method: get, Path: base + "/journals", Scopes: read, Handler: h.listJournals},
		{Method: get, Path: base + "/journals/:journal/records", Scopes: read, Handler: h.listRecords},
	}
}

// Register adds the routes.
func (h *Handler) Register(e *echo.Echo) {
	for _, r := range h.Routes() {
		e.Add(r.Method, r.Path, h.cfg.Auth.Require(r.Scopes...)(r.Handler))
	}
}

// submit makes a command of what is wanted, has it decided, and returns the record that answers it.
func (h *Handler) submit(c echo.Context, name, command string, payload any, forms ...*web.Form) (journal.Result, decide.Command, error) {
	cmd, err := web.NewCommand(c, command, payload, forms...)
	if err != nil {
		return journal.Result{}, cmd, err
	}
	result, err := web.Submit(c, h.cfg.Journals, name, cmd)
	return result, cmd, err
}

// viewVenue shows the venue's state, and makes the answer say how far it is.
func (h *Handler) viewVenue(c echo.Context, look func(*venue.State)) error {
	return view(c, tradingJournal, h.cfg.Venue, func(s decide.State) { look(s.(*venue.State)) })
}

// viewIdentity shows the state of brokers and users, and makes the answer say how far it is.
func (h *Handler) viewIdentity(c echo.Context, look func(*identity.State)) error {
	return view(c, identityJournal, h.cfg.Identity, func(s decide.State) { look(s.(*identity.State)) })
}

func view(c echo.Context, name string, f trading.Follower, look func(decide.State)) error {
	if err := web.Await(c, name, f); err != nil {
		return err
	}
	if err := f.Err(); err != nil {
		return err
	}
	f.View(func(s decide.State, at journal.Position) {
		web.SetReadPosition(c, name, at.Sequence)
		look(s)
	})
	return nil
}
