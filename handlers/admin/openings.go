package admin

import (
	"errors"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	venue "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// linesType is the media type of a file with a JSON object on each line.
const linesType = "application/x-ndjson"

// importRoutes returns the routes of imports of opening balances and positions.
func (h *Handler) importRoutes() []rest.Route {
	return []rest.Route{
		post("/imports", h.importOpening),
		read("/imports", h.listImports),
		read("/imports/:sha256", h.getImport),
	}
}

// openingImport is an import that took effect.
type openingImport struct {
	Source       string      `json:"source"`
	SHA256       string      `json:"sha256"`
	Balances     int         `json:"balances"`
	BalanceTotal fixed.Money `json:"balance_total"`
	Positions    int         `json:"positions"`
	ImportedBy   string      `json:"imported_by"`
	Created      scalar.Time `json:"created"`
	Sequence     int64       `json:"sequence"`
}

// openingPreview describes the effect of an import that was not made.
type openingPreview struct {
	DryRun       bool        `json:"dry_run"`
	Source       string      `json:"source"`
	SHA256       string      `json:"sha256"`
	Balances     int         `json:"balances"`
	BalanceTotal fixed.Money `json:"balance_total"`
	Positions    int         `json:"positions"`
	// Clearing has the postings to the clearing account, by instrument.
	Clearing []clearingMovement `json:"clearing"`
	// ImportedSequence is the record that has imported the file, if one has. Then nothing would happen.
	ImportedSequence *int64 `json:"imported_sequence"`
}

type clearingMovement struct {
	Symbol string      `json:"symbol"`
	Amount fixed.Money `json:"amount"`
}

// importOpening imports the file in the body. It returns 201, or 200 for a file that was imported before and for a dry run.
func (h *Handler) importOpening(c echo.Context) error {
	query := rest.Query(c)
	dryRun := query.OptionalBool("dry_run").Or(false)
	if err := query.Done(); err != nil {
		return err
	}
	raw, err := rest.File(c, linesType)
	if err != nil {
		return err
	}
	file, errs := readOpening(raw)
	if len(errs) > 0 {
		return problem.Invalid(errs...)
	}
	payload := &venue.ImportOpening{File: *file}
	if dryRun {
		return h.previewImport(c, payload)
	}
	a := rest.RequestOf(c)
	cmd, err := a.BareCommand(payload)
	if err != nil {
		return err
	}
	cmd.Metadata.Fingerprint = input.FingerprintOf(struct {
		SHA256 string `json:"sha256"`
	}{file.SHA256})
	x, err := h.trading.Submit(a, cmd)
	if err != nil {
		return h.refusedLines(c, payload, err)
	}
	e, err := operation.Answer[*venue.OpeningImported](x)
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if !x.First() {
		status = http.StatusOK
	}
	return c.JSON(status, openingImport{e.Source, e.SHA256, e.Balances, e.BalanceTotal, e.Positions, e.ImportedBy, e.Created, x.Entry.Record.Sequence})
}

// previewImport responds with the effect of an import, or with the errors of all lines.
func (h *Handler) previewImport(c echo.Context, p *venue.ImportOpening) error {
	out := openingPreview{DryRun: true, Source: p.Source, SHA256: p.SHA256, Clearing: []clearingMovement{}}
	var (
		errs    []validation.FieldError
		refused error
	)
	err := h.viewVenue(c, func(s *venue.State) {
		known, imported := s.Opening(p.SHA256)
		switch {
		case imported:
			out.Balances, out.BalanceTotal, out.Positions, out.ImportedSequence = known.Balances, known.BalanceTotal, known.Positions, &known.Sequence
		case !s.OpeningsInForce():
			refused = problem.Conflict("OPENINGS_NOT_IN_FORCE", "The rules in force have no imports: activate newer ones.")
		default:
			var e *venue.OpeningImported
			if e, errs = s.CheckOpening(h.stampOf(p), rest.PrincipalOf(c).Actor(), p); len(errs) == 0 {
				out.Balances, out.BalanceTotal, out.Positions, out.Clearing = e.Balances, e.BalanceTotal, e.Positions, clearingOf(e)
			}
		}
	})
	switch {
	case err != nil:
		return err
	case refused != nil:
		return refused
	case len(errs) > 0:
		return linesRefused(errs)
	}
	return c.JSON(http.StatusOK, out)
}

// clearingOf returns the postings to the clearing account, by instrument.
func clearingOf(e *venue.OpeningImported) []clearingMovement {
	out := []clearingMovement{}
	for _, p := range e.Postings() {
		if p.Account == ledger.Clearing {
			out = append(out, clearingMovement{p.Symbol, p.Amount})
		}
	}
	return out
}

// stampOf returns a stamp to check a file with now. If this node does not know the journal's id yet, it is that in the file.
func (h *Handler) stampOf(p *venue.ImportOpening) decide.Stamp {
	at := decide.Stamp{Time: h.clocks[tradingJournal].Now()}
	for _, t := range h.cfg.Tails {
		if t.journal == tradingJournal {
			at.Journal = t.journalID()
		}
	}
	if at.Journal.IsZero() {
		at.Journal, _ = scalar.ParseID(p.Journal) // zero for none
	}
	return at
}

func linesRefused(errs []validation.FieldError) error {
	return problem.New(http.StatusUnprocessableEntity, "IMPORT_REFUSED", "The file was not imported: "+errs[0].Message+".").With(errs...)
}

// refusedLines returns the error for a refused import. A refusal of the owner names the first error of the lines. The others
// follow from the state that it decided on.
func (h *Handler) refusedLines(c echo.Context, p *venue.ImportOpening, err error) error {
	var refused *submit.RefusedError
	if !errors.As(err, &refused) || refused.Refusal.Kind != decide.Unacceptable {
		return err
	}
	errs := problem.Refused(refused.Refusal).Errors
	if waited := h.cfg.Venue.Wait(c.Request().Context(), refused.AsOf.Sequence); waited == nil {
		failed := h.viewVenue(c, func(s *venue.State) {
			if _, all := s.CheckOpening(h.stampOf(p), rest.PrincipalOf(c).Actor(), p); len(all) > 0 { // none if a later record has mended it
				errs = all
			}
		})
		if failed != nil {
			return failed
		}
	}
	return linesRefused(errs)
}

// listImports lists all imports, newest first.
func (h *Handler) listImports(c echo.Context) error {
	query := rest.Query(c)
	page := rest.ReadNumbered(query)
	if err := query.Done(); err != nil {
		return err
	}
	var all []venue.OpeningImport
	if err := h.viewVenue(c, func(s *venue.State) { all = s.Openings() }); err != nil {
		return err
	}
	slices.Reverse(all)
	items := make([]openingImport, len(all))
	for i, x := range all {
		items[i] = openingImport(x)
	}
	return c.JSON(http.StatusOK, rest.Slice(page, items))
}

// getImport shows the import of the file with a hash.
func (h *Handler) getImport(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	var (
		x     venue.OpeningImport
		known bool
	)
	if err := h.viewVenue(c, func(s *venue.State) { x, known = s.Opening(rest.Param(c, "sha256")) }); err != nil {
		return err
	}
	if !known {
		return problem.NotFound("UNKNOWN_IMPORT", "No file with this hash was imported.")
	}
	return c.JSON(http.StatusOK, openingImport(x))
}
