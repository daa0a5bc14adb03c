// Package onboarding serves the onboarding interface under /api/v1: persons and corporates, their questionnaires and
// responses, the entitlements that they apply for, and the state of these applications.
//
// The handlers validate personal data in plain text and encrypt it with the owner's key before they create a command.
// They build a response from the record that answers the command, by decrypting its fields, so a repeated request
// gets the first response. The key of an owner is created before the command that registers the owner, under a new
// random name. If the command is refused, was never decided, or repeats another, the key is discarded. A key without
// an owner remains only if the node was killed in between, or if the outcome of the command is unknown. Nothing is
// encrypted with that key, and its name is never used again.
//
// Existence, access rights and the questions of a version are looked up in a fold of the journal, so writes do not
// need Postgres, except changes of owners, which start from the stored values. Lists and encrypted fields are read
// from rows.
//
// A tenant, which is the broker of the token, has access to its own owners and their data; operators and auditors
// have access to those of all tenants. Without access, the response is 404.
//
// Start with handler.go, which lists the routes, then target.go, which resolves the objects that a path names, and
// owners.go.
package onboarding

import (
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/handlers/onboarding/upload"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/capacity"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/proofs"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/streams/clamd"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/logclock"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// journalName is the journal that receives the commands of this package.
const journalName = "onboarding"

// Config holds the dependencies of the interface.
type Config struct {
	Auth     *rest.Auth
	Journals submit.Submitter
	// Onboarding follows the onboarding journal under onboarding.Rules.
	Onboarding record.Follower
	// Rows are the read models of the onboarding journal.
	Rows rows.Source
	// Past finds what past records were decided on. It may be nil.
	Past past.Decisions
	// States finds whole past states. It may be nil.
	States *asof.States
	// Owners encrypts data about one owner. Box encrypts data that belongs to no owner.
	Owners *seal.Owners
	Box    *seal.Box
	// Receipts makes the receipts of the onboarding journal. It may be nil.
	Receipts proofs.Source
	// Roots knows the roots of the records of all journals, which reads as of a past record may name.
	Roots asof.Roots
	// KeyOverlap is how long the old and the new signing key of a webhook are both used after a rotation.
	KeyOverlap time.Duration
	// Now is the wall clock for the validation of dates of birth and for the expiry of links.
	Now func() time.Time
	// Files stores uploads. Scanner scans them; it may be nil.
	Files   *files.Store
	Scanner *clamd.Scanner
	// LinkLifetime is the validity of a download link.
	LinkLifetime time.Duration
	// Audience returns the audience of the venue's tokens, which names the venue and its epoch. A link is valid only at
	// the venue that created it. If Audience is nil, links are valid at every venue with the same master key.
	Audience func() access.Audience
}

// Handler serves the routes under /api/v1.
type Handler struct {
	cfg        Config
	journal    operation.Journal
	clock      *logclock.Clock
	rows       rows.Source
	uploads    *upload.Receiver
	proofs     *proofs.Receipts
	linkMaster []byte
	// downloads and exports limit concurrent responses. Each takes about a quarter of a megabyte until the client has
	// read it.
	downloads, exports *capacity.Limiter
}

// capacityWithin is how long a download or an export waits for capacity.
const capacityWithin = 2 * time.Second

// New returns the handler of the onboarding interface.
func New(c Config) *Handler {
	h := &Handler{cfg: c, journal: operation.Journal{To: c.Journals, Name: journalName}, clock: logclock.Of(c.Onboarding, c.Now), rows: c.Rows,
		uploads: upload.New(c.Files, c.Scanner), proofs: proofs.New(c.Receipts), linkMaster: c.Box.Derive("download link"),
		downloads: capacity.New(128, 64, capacityWithin, capacity.Busy{Code: "DOWNLOADS_BUSY", Message: "Too many files are being downloaded."}),
		exports:   capacity.New(16, 4, capacityWithin, capacity.Busy{Code: "EXPORTS_BUSY", Message: "Too many exports are being made."})}
	return h
}

// base is the path prefix of the interface.
const base = "/api/v1"

// kind is a type of owner. Each route about an owner exists for both kinds.
type kind struct {
	owner.Type
	list      string // path of the list of owners
	parameter string // name of the route parameter with the owner's ID
}

var kinds = [...]kind{{owner.PersonType, base + "/persons", "person_id"}, {owner.CorporateType, base + "/corporates", "corporate_id"}}

// one returns the route of one owner, which is the prefix of the routes of dependent objects.
func (k kind) one() string { return k.list + "/:" + k.parameter }

// These are the scopes of reads and writes.
var (
	readers = []string{access.ScopeOnboarding, access.ScopeOperator, access.ScopeAuditor}
	writers = []string{access.ScopeOnboarding}
)

// Routes lists all routes of the interface.
func (h *Handler) Routes() []rest.Route {
	all := slices.Concat(h.questionnaireRoutes(), h.entitlementRoutes())
	for _, k := range kinds {
		all = slices.Concat(all, h.ownerRoutes(k), h.responseRoutes(k), h.triggerRoutes(k), h.documentRoutes(k), h.exportRoutes(k))
	}
	all = append(all, h.webhookRoutes()...)
	all = rest.Unconfined(all)                                        // onboarding concerns the whole tenant
	return append(all, rest.Get(filesAt+"/:document_id", h.download)) // authorized by a link, without a token
}

// Register adds the routes.
func (h *Handler) Register(e *echo.Echo) { h.cfg.Auth.Register(e, h.Routes()) }

// get and post return routes for reads and writes.
func get(path string, h echo.HandlerFunc) rest.Route { return rest.Get(path, h, readers...) }

func post(path string, h echo.HandlerFunc) rest.Route { return rest.Post(path, h, writers...) }

func patch(path string, h echo.HandlerFunc) rest.Route { return rest.Patch(path, h, writers...) }

// created responds to a write that created an object.
func created(c echo.Context, shown any) error { return c.JSON(http.StatusCreated, shown) }
