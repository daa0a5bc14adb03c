package onboarding

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/handlers/onboarding/upload"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// documentRoutes returns the routes of owners' documents.
func (h *Handler) documentRoutes(k kind) []rest.Route {
	return []rest.Route{
		post(k.one()+"/documents", h.addDocument),
		get(k.one()+"/documents", h.listDocuments),
		get(k.one()+"/documents/:document_id", h.getDocument),
		get(k.one()+"/documents/:document_id/download_link", h.linkDocument),
	}
}

// addDocument receives a file.
func (h *Handler) addDocument(c echo.Context) error { return upload.Refuse(c, h.upload(c)) }

func (h *Handler) upload(c echo.Context) error {
	t, err := h.written(c)
	if err != nil {
		return err
	}
	start, id := time.Now().Round(0), operation.NewID() // wall clock without the monotonic part, to compare with the bucket's times
	faults := t.bare(c)
	if t.owner == nil {
		return faults
	}
	_, badKey := rest.RequestOf(c).Key()
	u, err := h.uploads.Receive(c, t.Ref, id, faults, badKey)
	if err != nil {
		return sealing(t.Ref, err)
	}
	if time.Since(start) > files.Limit { // the sweeper may have deleted the file as unreferenced
		u.Discard(c.Request().Context())
		return problem.Unavailable("TIMEOUT", "The upload took too long.", time.Second)
	}
	e, err := h.tell(c, t.Ref, u)
	if err != nil {
		return err
	}
	shown, err := h.showDocument(c.Request().Context(), &e.Document, e.Name)
	if err != nil {
		return err
	}
	return created(c, shown)
}

// tell records an uploaded file in the journal. It discards the file if no record will reference it. The request's
// body has been consumed, so if another node owns the journal, the command is sent there instead of the request.
func (h *Handler) tell(c echo.Context, of owner.Ref, u *upload.Upload) (*domain.DocumentAdded, error) {
	ctx := c.Request().Context()
	name, err := h.seal(ctx, of, seal.DocumentName(of, u.File.ID), u.Name)
	if err != nil {
		u.Discard(ctx)
		return nil, err
	}
	a := rest.RequestOf(c)
	cmd, err := a.BareCommand(&domain.AddDocument{Ref: of, ID: u.File.ID, Category: u.Category, Orientation: u.Orientation, Name: name,
		Source: u.File.Source, SHA256: u.File.SHA256, Size: u.File.Size, Format: u.Format, ValidUntil: u.ValidUntil})
	if err != nil {
		u.Discard(ctx)
		return nil, err
	}
	if cmd.Metadata.Key != "" {
		cmd.Metadata.Fingerprint = h.fingerprint(c, of, u)
	}
	x, err := h.journal.Submit(a, cmd)
	if err != nil {
		if neverDecided(err) {
			u.Discard(ctx)
		}
		return nil, err
	}
	e, err := operation.Answer[*domain.DocumentAdded](x)
	if err == nil && e.ID != u.File.ID { // a repeated request: the record references the earlier file
		u.Discard(ctx)
	}
	return e, err
}

// neverDecided reports whether a command is in no record and never will be. If that is not certain, the file stays,
// and the sweeper removes it later if no record references it.
func neverDecided(err error) bool {
	var (
		refused *submit.RefusedError
		never   *submit.NotAcceptedError
	)
	return errors.As(err, &refused) || errors.As(err, &never)
}

// fingerprint returns the fingerprint of an upload. It covers the parts of the body, but not their order or the bytes
// between them.
func (h *Handler) fingerprint(c echo.Context, of owner.Ref, u *upload.Upload) string {
	content := append([]byte("document of "+of.String()+"\n"), u.Content()...)
	return hex.EncodeToString(h.personalMAC(c, content)[:16])
}

// showDocument decrypts the file name and returns the document's JSON form.
func (h *Handler) showDocument(ctx context.Context, d *domain.Document, sealed domain.Sealed) (wire.Document, error) {
	var name string
	err := h.open(ctx, d.Ref, seal.DocumentName(d.Ref, d.ID), sealed, &name)
	return wire.NewDocument(d, name), err
}

func (h *Handler) listDocuments(c echo.Context) error {
	return listedOf(c, h, func(t *target) pageOf[view.Document] {
		return func(ctx context.Context, db projections.DB, size, offset int) ([]view.Document, int, int64, error) {
			return view.Documents(ctx, db, viewer(c), t.Ref, size, offset)
		}
	}, view.DocumentsAsOf, func(_ context.Context, row *view.Document) (any, error) {
		return h.showDocumentThen(c, row)
	})
}

// showDocumentThen is showDocument for a read that may be as of a past record: that of an erased owner has no name.
func (h *Handler) showDocumentThen(c echo.Context, row *view.Document) (wire.Document, error) {
	shown, err := h.showDocument(c.Request().Context(), &row.Document, row.Name)
	if h.isErased(c, err) {
		shown, err = wire.NewDocument(&row.Document, ""), nil
		shown.Erased = true
	}
	return shown, err
}

func (h *Handler) getDocument(c echo.Context) error {
	t, q, err := h.readBareTarget(c, "document_id")
	if err != nil {
		return err
	}
	var row view.Document
	if q != nil {
		row, err = pastOne(c, h, q, t, t.ids["document_id"], view.DocumentAsOf, documentNotFound)
	} else {
		row, err = one(c, h, func(ctx context.Context, db projections.DB) (view.Document, bool, int64, error) {
			return view.OneDocument(ctx, db, viewer(c), t.Ref, t.ids["document_id"])
		}, documentNotFound)
	}
	if err != nil {
		return err
	}
	shown, err := h.showDocumentThen(c, &row)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, shown)
}

func documentNotFound() error {
	return problem.NotFound("DOCUMENT_NOT_FOUND", "There is no such document.")
}
