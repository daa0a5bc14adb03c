package onboarding

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// ownerRoutes returns the routes of owners.
func (h *Handler) ownerRoutes(k kind) []rest.Route {
	return []rest.Route{
		post(k.list, h.registerOwner(k.Type)),
		get(k.list, h.listOwners(k.Type)),
		get(k.one(), h.getOwner(fields.show)),
		patch(k.one(), h.changeOwner),
	}
}

// fields is the data of an owner: a *person or a *corporate. Its JSON form is encrypted.
type fields interface {
	// members returns the names of the text members and pointers to their values.
	members() []member
	address() *owner.Address
	externalID() string
	check(today time.Time) []validation.FieldError
	show(o *domain.Owner) any
	operated(o *domain.Owner) any // includes the tenant, for operators
}

type member struct {
	name string
	text *string
}

type person struct{ owner.Person }

type corporate struct{ owner.Corporate }

func newFields(t owner.Type) fields {
	if t == owner.CorporateType {
		return new(corporate)
	}
	return new(person)
}

func (p *person) members() []member {
	return []member{{"external_id", &p.ExternalID}, {"first_name", &p.FirstName}, {"last_name", &p.LastName}, {"nationality", &p.Nationality},
		{"birth_date", &p.BirthDate}, {"email", &p.Email}, {"phone", &p.Phone}, {"tax_identification_number", &p.TaxIdentificationNumber},
		{"tax_country", &p.TaxCountry}}
}

func (p *person) address() *owner.Address                       { return &p.Address }
func (p *person) externalID() string                            { return p.ExternalID }
func (p *person) check(today time.Time) []validation.FieldError { return p.Check(today) }
func (p *person) show(o *domain.Owner) any                      { return wire.NewPerson(o, &p.Person) }

func (p *person) operated(o *domain.Owner) any {
	return wire.OperatedPerson{Person: wire.NewPerson(o, &p.Person), Tenant: o.Tenant}
}

func (p *corporate) members() []member {
	return []member{{"external_id", &p.ExternalID}, {"legal_name", &p.LegalName}, {"legal_form", &p.LegalForm},
		{"registration_number", &p.RegistrationNumber}, {"incorporation_country", &p.IncorporationCountry}}
}

func (p *corporate) address() *owner.Address                   { return &p.Address }
func (p *corporate) externalID() string                        { return p.ExternalID }
func (p *corporate) check(_ time.Time) []validation.FieldError { return p.Check() }
func (p *corporate) show(o *domain.Owner) any                  { return wire.NewCorporate(o, &p.Corporate) }

func (p *corporate) operated(o *domain.Owner) any {
	return wire.OperatedCorporate{Corporate: wire.NewCorporate(o, &p.Corporate), Tenant: o.Tenant}
}

// read copies the members of a body to data and validates the result. Members that are absent or null stay unchanged.
// An empty text clears a member; one without a visible character is an error.
func (h *Handler) read(body *input.Form, data fields) {
	h.readExcept(body, data, func(validation.FieldError) bool { return false })
}

// readUnknown reads a change if the path has no UUID. It adds the errors of the body alone.
func (h *Handler) readUnknown(body *input.Form, t owner.Type) {
	h.readExcept(body, newFields(t), func(e validation.FieldError) bool {
		name, top := e.Path[0].(string)
		return e.Kind == validation.Missing && top && !body.Has(name)
	})
}

// readExcept is read without the errors for which except returns true.
func (h *Handler) readExcept(body *input.Form, data fields, except func(validation.FieldError) bool) {
	blank := take(body, data.members())
	a := data.address()
	body.OptionalObject("address", func(body *input.Form) {
		blank = append(blank, take(body, []member{{"street", &a.Street}, {"house_number", &a.HouseNumber}, {"postal_code", &a.PostalCode}, {"city", &a.City},
			{"region", &a.Region}, {"country", &a.Country}}, "address")...)
	})
	for _, e := range slices.Concat(data.check(h.cfg.Now()), blank) {
		if !body.Faulty(e.Path...) && !except(e) { // a member of the wrong type was not copied and already has an error
			body.Add(e)
		}
	}
}

// take copies the members of a body that lie within the given path. It returns the errors of those that are not empty
// and have no visible character. Only members of the request can have this error, so a stored record never prevents
// changes of other members.
func take(body *input.Form, members []member, within ...any) (blank []validation.FieldError) {
	for _, m := range members {
		text := body.AnyText(m.name)
		if !text.Set {
			continue
		}
		*m.text = text.Value
		if text.Value != "" && input.IsBlank(text.Value) {
			blank = append(blank, validation.FieldError{Path: validation.Path(within).Then(m.name), Kind: validation.ValueError, Message: "must have a visible character"})
		}
	}
	return blank
}

func (h *Handler) registerOwner(t owner.Type) echo.HandlerFunc {
	return func(c echo.Context) error {
		body, data := rest.BodyOnly(c), newFields(t)
		h.read(body, data)
		if err := body.Done(); err != nil {
			return err
		}
		if _, err := rest.RequestOf(c).Key(); err != nil {
			return err
		}
		ref := owner.Ref{Type: t, ID: rest.RequestOf(c).IDFor("owner")}
		e, err := h.register(c, ref, data, body)
		if err == nil && e.Ref != ref {
			err = h.stillWritable(c, e.Ref)
		}
		if err != nil {
			return err
		}
		shown, err := h.showOwner(c.Request().Context(), &e.Owner, e.Fields)
		if err != nil {
			return err
		}
		return created(c, shown)
	}
}

// stillWritable returns an error if the owner was restricted or erased after its registration. A repeated request must
// not show the tenant what is hidden from its reads.
func (h *Handler) stillWritable(c echo.Context, ref owner.Ref) error {
	hidden, at := false, int64(-1)
	err := rest.ViewDecided(c, journalName, h.cfg.Onboarding, func(s *domain.State, sequence int64) error {
		o, known := s.Owner(ref)
		hidden, at = known && !writable(rest.PrincipalOf(c), o), sequence
		return nil
	})
	if err != nil || !hidden {
		return err
	}
	rest.SetReadPosition(c, journalName, at)
	return notFound(ref.Type)
}

// register creates an owner's key and registers the owner.
func (h *Handler) register(c echo.Context, ref owner.Ref, data fields, body *input.Form) (*domain.OwnerRegistered, error) {
	// Continue even if the client disconnects, because the command's result decides whether the key is kept.
	// Otherwise clients that disconnect early could fill the key store.
	ctx := context.WithoutCancel(c.Request().Context())
	c.SetRequest(c.Request().WithContext(ctx))
	// Create the key before the command: when the record exists, others may decrypt it or erase the owner.
	if err := h.cfg.Owners.Create(ctx, ref.String()); err != nil {
		return nil, sealing(ref, err)
	}
	payload := &domain.RegisterOwner{Ref: ref, ExternalID: h.externalID(c, ref.Type, data)}
	var err error
	if payload.Fields, err = h.seal(ctx, ref, seal.OwnerFields(ref), data); err != nil {
		h.discardKey(c, ref)
		return nil, err
	}
	e, err := rest.Execute[*domain.OwnerRegistered](c, h.journal, payload, h.personal(c, body))
	if err == nil && e.Ref != ref || neverDecided(err) { // a repeated request: the record has the earlier owner
		h.discardKey(c, ref)
	}
	return e, err
}

// discardKey discards the key of an owner that was not registered. If that fails, the unused key remains.
func (h *Handler) discardKey(c echo.Context, ref owner.Ref) {
	_ = h.cfg.Owners.Discard(c.Request().Context(), ref.String())
}

// externalID returns the keyed hash of the tenant's ID for the owner, which the rules use to find duplicates.
func (h *Handler) externalID(c echo.Context, t owner.Type, data fields) []byte {
	return h.cfg.Box.ExternalID(rest.PrincipalOf(c).Broker, t, data.externalID())
}

// tries limits how often a change is repeated because of concurrent changes, and changeWithin limits the time for it.
const (
	tries        = 32
	changeWithin = 10 * time.Second
)

// changeOwner changes the members in the body and keeps the others. The rules cannot decrypt the data, so the change
// is applied here, to the revision of the fields that was read. If the revision has changed by the time of the
// decision, the engine refuses the command, and changeOwner repeats the change on the new revision.
func (h *Handler) changeOwner(c echo.Context) error {
	t, err := h.written(c)
	if err != nil {
		return err
	}
	body := t.body(c)
	if t.owner == nil {
		h.readUnknown(body, t.Type)
		return body.Done()
	}
	e, err := h.changeLatest(c, t, body)
	if err != nil {
		return err
	}
	shown, err := h.showOwner(c.Request().Context(), &e.Owner, e.Fields)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, shown)
}

// changeLatest applies the body to the latest revision of an owner's fields. It gives up if the rows do not reach a
// revision newer than the refused one, because the rules would refuse that one again.
func (h *Handler) changeLatest(c echo.Context, t *target, body *input.Form) (*domain.OwnerChanged, error) {
	began, outdated := h.cfg.Now(), int64(0)
	for try := 1; ; try++ {
		row, err := h.ownerRow(c, t) // after a refusal, the read waits for its position
		if err != nil {
			return nil, err
		}
		if row.Revision <= outdated {
			return nil, rowsBehind()
		}
		e, err := h.change(c, t, body, &row)
		var refused *decide.Refusal
		outrun := errors.As(err, &refused) && refused.Code == domain.CodeOwnerChanged
		if !outrun || try == tries || h.cfg.Now().Sub(began) >= changeWithin {
			return e, err
		}
		outdated = row.Revision
	}
}

// change applies the body to the fields in a row and submits the result.
func (h *Handler) change(c echo.Context, t *target, body *input.Form, row *view.Owner) (*domain.OwnerChanged, error) {
	ctx, data := c.Request().Context(), newFields(t.Type)
	if err := h.open(ctx, t.Ref, seal.OwnerFields(t.Ref), row.Fields, data); err != nil {
		return nil, err
	}
	h.read(body, data)
	if err := body.Done(); err != nil {
		return nil, err
	}
	payload := &domain.ChangeOwner{Ref: t.Ref, Revision: row.Revision, ExternalID: h.externalID(c, t.Type, data)}
	var err error
	if payload.Fields, err = h.seal(ctx, t.Ref, seal.OwnerFields(t.Ref), data); err != nil {
		return nil, err
	}
	return rest.Execute[*domain.OwnerChanged](c, h.journal, payload, h.personal(c, body))
}

// ownerRow reads the row of an existing owner. The rows may lag behind the fold that found the owner.
func (h *Handler) ownerRow(c echo.Context, t *target) (row view.Owner, err error) {
	row, err = one(c, h, func(ctx context.Context, db projections.DB) (view.Owner, bool, int64, error) {
		return view.OneOwner(ctx, db, view.Operator, t.Ref)
	}, func() error { return notFound(t.Type) })
	if err == nil && row.Fields == nil {
		err = notFound(t.Type)
	}
	return row, err
}

// ownerForm converts an owner and the decrypted data to a JSON form.
type ownerForm func(data fields, o *domain.Owner) any

// getOwner responds with one owner in the given form.
func (h *Handler) getOwner(form ownerForm) echo.HandlerFunc {
	return func(c echo.Context) error {
		t, q, err := h.readBareTarget(c)
		switch {
		case err != nil:
			return err
		case q != nil:
			return h.ownerAsOf(c, q, t, form)
		}
		row, err := h.ownerRow(c, t)
		if err != nil {
			return err
		}
		data, err := h.openOwner(c.Request().Context(), &row.Owner, row.Fields)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, form(data, &row.Owner))
	}
}

// ownerList lists owners that the caller may see, newest first, in the given form.
func (h *Handler) ownerList(c echo.Context, f view.OwnerFilter, query *input.Form, form ownerForm) error {
	p, q := rest.ReadNumbered(query), asof.Read(query)
	if err := query.Done(); err != nil {
		return err
	}
	if q != nil {
		return h.ownersAsOf(c, q, p, f, form)
	}
	items, total, err := page(c, h, p.Size, p.Offset(), func(ctx context.Context, db projections.DB, size, offset int) ([]view.Owner, int, int64, error) {
		rows, total, asOf, err := view.Owners(ctx, db, f, size, offset)
		if err == nil {
			err = h.fetchKeys(ctx, refsOf(rows))
		}
		return rows, total, asOf, err
	}, func(ctx context.Context, row *view.Owner) (any, error) {
		data, err := h.openOwner(ctx, &row.Owner, row.Fields)
		if err != nil {
			return nil, err
		}
		return form(data, &row.Owner), nil
	})
	if err != nil {
		return err
	}
	return h.answerSealed(c, p, items, total)
}

func refsOf(rows []view.Owner) []owner.Ref {
	refs := make([]owner.Ref, len(rows))
	for i := range rows {
		refs[i] = rows[i].Ref
	}
	return refs
}

// listOwners lists the owners of a type.
func (h *Handler) listOwners(t owner.Type) echo.HandlerFunc {
	return func(c echo.Context) error {
		return h.ownerList(c, view.OwnerFilter{Viewer: viewer(c), Type: t, States: seenStates(c)}, rest.Query(c), fields.show)
	}
}

// seenStates returns the states of owners that the caller may see.
func seenStates(c echo.Context) []owner.State {
	if rest.PrincipalOf(c).Has(access.ScopeOperator) {
		return []owner.State{owner.Active, owner.Restricted}
	}
	return []owner.State{owner.Active}
}

// openOwner decrypts the data of an owner.
func (h *Handler) openOwner(ctx context.Context, o *domain.Owner, sealed domain.Sealed) (fields, error) {
	data := newFields(o.Type)
	return data, h.open(ctx, o.Ref, seal.OwnerFields(o.Ref), sealed, data)
}

// showOwner decrypts the data of an owner and returns the tenant's view.
func (h *Handler) showOwner(ctx context.Context, o *domain.Owner, sealed domain.Sealed) (any, error) {
	data, err := h.openOwner(ctx, o, sealed)
	if err != nil {
		return nil, err
	}
	return data.show(o), nil
}
