// Package onboarding serves the onboarding interface under /api/v1: persons and corporates, their questionnaires and
// responses, the entitlements that they apply for, and the state of these applications.
//
// The handlers check personal data in the clear and seal it with the owner's key before they make a command. They render an
// answer from the record that answers the command, by opening the sealed fields, so a repeated request gets the first
// answer. The key of an owner is made before the command that registers the owner, under a new random name. If the command
// is refused, was never decided, or repeats another, the key is discarded. A key without an owner remains only if the node
// was killed in between, or if the outcome of the command is unknown. Nothing is sealed with such a key, and its name is
// never used again.
//
// Existence, access rights and the questions of a version are looked up in a fold of the journal, so writes do not need
// Postgres, except for changes of owners, which start from the stored values. Lists and sealed fields are read from rows.
//
// A tenant, which is the broker of the token, has access to its own owners and their data; operators and auditors have
// access to those of all tenants. Without access, the answer is 404.
package onboarding

import (
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/handlers/onboarding/places"
	"github.com/perpetua-exchange/perpetua/handlers/onboarding/upload"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/streams/clamd"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// journalName is the journal that the commands of this package go to.
const journalName = "onboarding"

// Config is what the interface is made of.
type Config struct {
	Auth     *web.Auth
	Journals submit.Submitter
	// Onboarding follows the onboarding journal under onboarding.Rules.
	Onboarding web.Follower
	// Rows are the read models of the onboarding journal.
	Rows rows.Source
	// Owners seals what is about one owner, Box what is about none.
	Owners *seal.Owners
	Box    *seal.Box
	// KeyOverlap is how long a registration's old and new key are both in use after a rotation.
	KeyOverlap time.Duration
	// Now is the wall clock, by which dates of birth are judged, and links to files.
	Now func() time.Time
	// Files are where uploads are kept, and Scanner is what they are scanned by; nil for nothing.
	Files   *files.Store
	Scanner *clamd.Scanner
	// LinkLifetime is how long a link to a file is good.
	LinkLifetime time.Duration
	// Audience identifies the venue and its epoch, as in tokens: a link is good only at the venue that made it. nil for
	// links that are good wherever the master key is.
	Audience func() web.Audience
	// Nodes takes commands for the owner of the journal, whichever node that is. Journals may say that it is another one.
	Nodes submit.Submitter
}

// Handler serves the routes under /api/v1.
type Handler struct {
	cfg        Config
	journal    web.Journal
	rows       rows.Source
	uploads    *upload.Receiver
	linkMaster []byte // of the keys that sign links
	// downloads and exports are what is sent at a time. Each takes about a quarter of a megabyte for as long as its client
	// takes to read it.
	downloads, exports *places.Places
}

// placeWithin is how long a download or an export waits for others to end.
const placeWithin = 2 * time.Second

// New makes the handler of the onboarding interface.
func New(c Config) *Handler {
	h := &Handler{cfg: c, journal: web.Journal{To: c.Journals, Name: journalName}, rows: c.Rows,
		uploads: upload.New(c.Files, c.Scanner), linkMaster: c.Box.Derive("download link"),
		downloads: places.New(128, 64, placeWithin, places.Busy{Code: "DOWNLOADS_BUSY", Message: "Too many files are being downloaded."}),
		exports:   places.New(16, 4, placeWithin, places.Busy{Code: "EXPORTS_BUSY", Message: "Too many exports are being made."})}
	return h
}

// base is where the interface's paths begin.
const base = "/api/v1"

// kind is one of the two forms that each route about an owner has.
type kind struct {
	owner.Type
	list      string // where owners of the type are
	parameter string // of routes, that names one of them
}

var kinds = [...]kind{{owner.PersonType, base + "/persons", "person_id"}, {owner.CorporateType, base + "/corporates", "corporate_id"}}

// one is the route of one owner, under which is all that hangs on it.
func (k kind) one() string { return k.list + "/:" + k.parameter }

// The scopes of reads and writes.
var (
	readers = []string{web.ScopeOnboarding, web.ScopeOperator, web.ScopeAuditor}
	writers = []string{web.ScopeOnboarding}
)

// Routes lists all routes of the interface.
func (h *Handler) Routes() []web.Route {
	all := slices.Concat(h.questionnaireRoutes(), h.entitlementRoutes())
	for _, k := range kinds {
		all = slices.Concat(all, h.ownerRoutes(k), h.responseRoutes(k), h.triggerRoutes(k), h.documentRoutes(k), h.exportRoutes(k))
	}
	all = append(all, h.webhookRoutes()...)
	for i := range all {
		all[i].Handler = unconfined(all[i].Handler)
	}
	return append(all, web.Get(filesAt+"/:document_id", h.download)) // by a link, without a token
}

// Register adds the routes.
func (h *Handler) Register(e *echo.Echo) { h.cfg.Auth.Register(e, h.Routes()) }

// unconfined refuses tokens that are for one trading account only: who is onboarded is the whole tenant's affair.
func unconfined(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if p := web.PrincipalOf(c); p != nil && p.Customer != "" {
			return web.Forbidden("The token is for one account only.")
		}
		return next(c)
	}
}

// get and post are routes for reads and for writes.
func get(path string, h echo.HandlerFunc) web.Route { return web.Get(path, h, readers...) }

func post(path string, h echo.HandlerFunc) web.Route { return web.Post(path, h, writers...) }

func patch(path string, h echo.HandlerFunc) web.Route { return web.Patch(path, h, writers...) }

// created answers a write that made something.
func created(c echo.Context, shown any) error { return c.JSON(http.StatusCreated, shown) }
