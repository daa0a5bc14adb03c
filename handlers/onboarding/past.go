package onboarding

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
)

// AsOf returns the source of answers as of past records of the onboarding journal.
func (h *Handler) AsOf() asof.Source {
	return asof.Source{Rows: h.rows, Log: h.cfg.Onboarding, Roots: h.cfg.Roots, Clock: h.clock, States: h.cfg.States, Failed: h.explained().Failed}
}

// readTarget is shown for a read that may be as of a past record. q is nil if it is not.
//
// Rights are those of today. Operators and auditors may also ask about an erased owner. The response then lacks the erased
// members, and says so.
func (h *Handler) readTarget(c echo.Context, others ...string) (t *target, query *input.Form, q *asof.Question, err error) {
	may := visible
	if c.QueryParams().Has(asof.Parameter) {
		may = visibleThen
	}
	if t, err = h.target(c, may, others); err != nil {
		return t, nil, nil, err
	}
	query = t.query(c)
	return t, query, asof.Read(query), nil
}

// readBareTarget is readTarget for a read without another query.
func (h *Handler) readBareTarget(c echo.Context, others ...string) (t *target, q *asof.Question, err error) {
	t, query, q, err := h.readTarget(c, others...)
	if err == nil {
		err = query.Done()
	}
	return t, q, err
}

// visibleThen is visible for a read as of a past record.
func visibleThen(p *access.Principal, o *onboarding.Owner) bool {
	return visible(p, o) || o.State == owner.Erased && p.SeesAll()
}

// viewThen calls look with the whole state as of a past record.
func (h *Handler) viewThen(c echo.Context, q *asof.Question, look func(s *onboarding.State) error) error {
	return q.AnswerState(c, h.AsOf(), func(s decide.State, _ int64) error { return look(s.(*onboarding.State)) })
}

// bornBy returns the error of a read of an owner's rows, or the error for an owner who was registered later.
func bornBy(err error, born, sequence int64) error {
	return asof.BornBy(err, born, sequence, "The owner was not registered yet.")
}

// pastPageOf is a pageOf as of a sequence. born is the sequence of the record that registered the owner.
type pastPageOf[Row any] func(ctx context.Context, db projections.DB, ref owner.Ref, size, offset int, sequence int64) (rows []Row, total int, born int64, err error)

// pastPage is page as of a past record.
func pastPage[Row any](c echo.Context, h *Handler, q *asof.Question, t *target, size, offset int, read pastPageOf[Row], show shower[Row]) (items []any, total int, err error) {
	var rows []Row
	err = q.Answer(c, h.AsOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
		var born int64
		rows, total, born, err = read(ctx, db, t.Ref, size, offset, sequence)
		return bornBy(err, born, sequence)
	})
	if err != nil {
		return nil, 0, err
	}
	items, err = showAll(c.Request().Context(), rows, show)
	return items, total, err
}

// pastOf is a rowOf as of a sequence. born is the sequence of the record that made the object, or -1 if there is none.
type pastOf[Row any] func(ctx context.Context, db projections.DB, ref owner.Ref, id scalar.ID, sequence int64) (row Row, born int64, err error)

// pastOne is one as of a past record.
func pastOne[Row any](c echo.Context, h *Handler, q *asof.Question, t *target, id scalar.ID, read pastOf[Row], missing func() error) (row Row, err error) {
	err = q.Answer(c, h.AsOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
		var born int64
		row, born, err = read(ctx, db, t.Ref, id, sequence)
		if err == nil && born < 0 {
			return asof.Unknown(missing())
		}
		return asof.BornBy(err, born, sequence, "It did not exist yet.")
	})
	return row, err
}

// ownerAsOf responds with an owner as of a past record.
func (h *Handler) ownerAsOf(c echo.Context, q *asof.Question, t *target, form ownerForm) error {
	var row view.Owner
	err := q.Answer(c, h.AsOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
		var born int64
		row, born, err = view.OwnerAsOf(ctx, db, t.Ref, sequence)
		return bornBy(err, born, sequence)
	})
	if err != nil {
		return err
	}
	data, err := h.openOwner(c.Request().Context(), &row.Owner, row.Fields)
	switch {
	case h.isErased(c, err):
		return c.JSON(http.StatusOK, wire.NewErasedOwner(&row.Owner))
	case err != nil:
		return err
	}
	return c.JSON(http.StatusOK, form(data, &row.Owner))
}

// ownersAsOf responds with a page of the owners of a filter as of a past record. Owners who are erased today are listed for operators
// and auditors, without the erased members.
func (h *Handler) ownersAsOf(c echo.Context, q *asof.Question, p rest.Numbered, f view.OwnerFilter, form ownerForm) error {
	may := seenStates(c)
	if rest.PrincipalOf(c).SeesAll() {
		may = append(may, owner.Erased)
	}
	// The rows say who may be seen today, so they must have reached what the caller has seen, although the question is about the past.
	err := h.rows.Read(c, func(ctx context.Context, db projections.DB) (int64, error) {
		return projections.Read(ctx, db, journalName)
	})
	if err != nil {
		return err
	}
	var rows []view.Owner
	var total int
	ctx := c.Request().Context()
	err = q.AnswerList(c, h.AsOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
		rows, total, err = view.OwnersAsOf(ctx, db, f, may, p.Size, p.Offset(), sequence)
		return err
	})
	if err == nil {
		err = h.fetchKeys(ctx, refsOf(rows))
	}
	if err != nil {
		return err
	}
	items := make([]any, 0, len(rows))
	for i := range rows {
		row := &rows[i]
		data, err := h.openOwner(ctx, &row.Owner, row.Fields)
		switch {
		case h.isErased(c, err):
			items = append(items, wire.NewErasedOwner(&row.Owner))
		case err == nil:
			items = append(items, form(data, &row.Owner))
		case !isGone(err):
			return err
		}
	}
	return h.answerSealed(c, p, items, total)
}

// isErased reports whether an error says that a value is erased, in the answer to an operator or auditor who asks as of a past record.
func (h *Handler) isErased(c echo.Context, err error) bool {
	return err != nil && isGone(err) && seesErased(c)
}

// seesErased reports whether the answer has what is left of erased owners.
func seesErased(c echo.Context) bool {
	return c.QueryParams().Has(asof.Parameter) && rest.PrincipalOf(c).SeesAll()
}

// pendingAsOf returns the open requirements of an owner as of a past record, oldest first.
func (h *Handler) pendingAsOf(c echo.Context, q *asof.Question, t *target) (open []view.PendingRequirement, err error) {
	err = q.Answer(c, h.AsOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
		var born int64
		open, born, err = view.PendingAsOf(ctx, db, t.Ref, sequence)
		return bornBy(err, born, sequence)
	})
	return open, err
}

// pastCase is a trigger with its timeline, as of one record.
type pastCase struct {
	trigger view.Trigger
	events  []view.TriggerEvent
}

// timelineAsOf responds with the events of a case up to a past record.
func (h *Handler) timelineAsOf(c echo.Context, q *asof.Question, t *target) error {
	found, err := h.caseAsOf(c, q, t, t.ids["trigger_id"])
	if err != nil {
		return err
	}
	out, err := h.showCaseEvents(c, found.events)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// caseAsOf reads a trigger as of a past record. Unless the target has no owner, the trigger must belong to that owner.
func (h *Handler) caseAsOf(c echo.Context, q *asof.Question, t *target, id scalar.ID) (out pastCase, err error) {
	err = q.Answer(c, h.AsOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
		var born int64
		out.trigger, born, err = view.TriggerAsOf(ctx, db, t.Ref, id, sequence)
		switch {
		case err != nil:
			return err
		case born < 0:
			return asof.Unknown(triggerNotFound())
		case born > sequence:
			return asof.NotYet("The entitlement trigger was not created yet.")
		}
		out.events, err = view.TimelineAsOf(ctx, db, id, sequence)
		return err
	})
	return out, err
}
