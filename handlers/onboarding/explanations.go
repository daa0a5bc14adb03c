package onboarding

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/onboarding/explain"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/explanations"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	// maxLater is the maximum number of later events in the explanation of a trigger.
	maxLater = 100
	// maxSequence is the largest sequence that a query may name: numbers in JSON are exact up to 2^53.
	maxSequence = 1 << 53
	// foldLimit is how long an explanation waits for the fold to reach the rows.
	foldLimit = 5 * time.Second
)

// explainedTrigger is the explanation of a record about a trigger, with the events of the trigger in the record and later.
type explainedTrigger struct {
	explain.Explanation
	Events []wire.CaseEvent `json:"events"` // of the record
	// Later are the first 100 events of the trigger in later records.
	Later []wire.CaseEvent        `json:"later"`
	Now   wire.EntitlementTrigger `json:"now"`
}

// caseRows are the rows about a trigger as of one record.
type caseRows struct {
	trigger  view.Trigger
	events   []view.TriggerEvent
	evidence view.Evidence
	defined  int64 // the record that last changed the entitlement's definition
	sequence int64 // of the record to explain
}

// explained finds the decisions of the onboarding journal.
func (h *Handler) explained() explanations.Source {
	return explanations.Source{Past: h.cfg.Past, Journal: journalName, Rules: domain.Rules(), Unknown: unknownRecord}
}

func unknownRecord() *problem.Problem {
	return problem.NotFound("UNKNOWN_RECORD", "There is no such record about the entitlement trigger.")
}

// explainTrigger explains the record that last changed a trigger, or another record about it.
func (h *Handler) explainTrigger(c echo.Context) error {
	t, err := h.shown(c, "trigger_id")
	if err != nil {
		return err
	}
	query := t.query(c)
	wanted := query.OptionalInteger("sequence", 0, maxSequence)
	if err := query.Done(); err != nil {
		return err
	}
	rows, err := h.caseRows(c, t, wanted.Pointer())
	if err != nil {
		return err
	}
	principal := rest.PrincipalOf(c)
	request := explain.Request{Ref: t.Ref, TriggerID: rows.trigger.ID, Started: rows.trigger.Started, Defined: rows.defined, Evidence: rows.evidence, Tenant: principal.Broker,
		All: principal.Has(access.ScopeOperator)}
	var x *explain.Explanation
	ctx := c.Request().Context()
	waiting, cancel := context.WithTimeout(ctx, foldLimit)
	defer cancel()
	if err := h.cfg.Onboarding.Wait(waiting, rows.sequence); err != nil { // the rows may be ahead of the fold
		return problem.SourceFailed(err)
	}
	err = h.explained().Deciding(ctx, rows.sequence, func(met past.Met) (err error) {
		x, err = explain.New(met, request)
		return err
	})
	if err != nil {
		return err
	}
	out := explainedTrigger{Explanation: *x, Now: showTrigger(&rows.trigger)}
	from, to := rows.of(rows.sequence)
	if out.Events, err = h.showCaseEvents(c, rows.events[from:to]); err != nil {
		return err
	}
	if out.Later, err = h.showCaseEvents(c, rows.events[to:min(to+maxLater, len(rows.events))]); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// caseRows reads the rows about the trigger in the route. wanted is the sequence of the record to explain, or nil for the one
// that last changed the trigger.
func (h *Handler) caseRows(c echo.Context, t *target, wanted *int64) (out caseRows, err error) {
	found := false
	err = h.rows.Find(c, h.cfg.Onboarding, func(ctx context.Context, db projections.DB) (_ bool, asOf int64, err error) {
		if out.trigger, found, asOf, err = view.OneTrigger(ctx, db, viewer(c), t.Ref, t.ids["trigger_id"]); err != nil || !found {
			return false, asOf, err
		}
		if out.events, err = timelineUntil(ctx, db, out.trigger.ID, asOf); err != nil {
			return true, asOf, err
		}
		out.sequence = out.trigger.Sequence
		if wanted != nil {
			out.sequence = *wanted
		}
		if out.sequence > asOf {
			return true, asOf, h.explained().Failed(&past.AfterError{Tip: record.Position{Sequence: asOf}})
		}
		if from, to := out.of(out.sequence); from == to {
			return true, asOf, unknownRecord()
		}
		definition, _, _, err := view.OneEntitlement(ctx, db, out.trigger.EntitlementID)
		if err != nil {
			return true, asOf, err
		}
		out.defined = definition.Sequence
		out.evidence, _, err = view.EvidenceOf(ctx, db, t.Ref, out.questionnaires(), out.sequence)
		return true, asOf, err
	})
	if err == nil && !found {
		err = triggerNotFound()
	}
	return out, err
}

// of returns the range of the events of a record.
func (r *caseRows) of(sequence int64) (from, to int) {
	for to < len(r.events) && r.events[to].Sequence <= sequence {
		if r.events[to].Sequence < sequence {
			from++
		}
		to++
	}
	return from, to
}

// questionnaires returns all questionnaires that the trigger ever required.
func (r *caseRows) questionnaires() (all []scalar.ID) {
	for _, p := range r.trigger.Needs.Pinned {
		all = append(all, p.QuestionnaireID)
	}
	for i := range r.events {
		if !r.events[i].RequestID.IsZero() {
			all = append(all, r.events[i].Questionnaires...)
		}
	}
	return all
}

// explainedPending are the explanations of an owner's open requirements.
type explainedPending struct {
	Position record.LogPosition `json:"position"` // at which the requirements are open
	// Items are in the order of the list of open requirements.
	Items []explain.Pending `json:"items"`
}

// explainPending explains the open requirements of all of an owner's triggers, oldest first.
func (h *Handler) explainPending(c echo.Context) error {
	t, err := h.shownBare(c)
	if err != nil {
		return err
	}
	var open []view.PendingRequirement
	var evidence view.Evidence
	out := explainedPending{Position: record.LogPosition{Journal: journalName}, Items: []explain.Pending{}}
	err = h.rows.Read(c, func(ctx context.Context, db projections.DB) (asOf int64, err error) {
		if open, asOf, err = view.PendingRequirements(ctx, db, viewer(c), t.Ref); err != nil {
			return asOf, err
		}
		var questionnaires []scalar.ID
		for i := range open {
			questionnaires = append(questionnaires, open[i].Questionnaires...)
		}
		// Responses after that position are left out, so the second snapshot may be later.
		evidence, _, err = view.EvidenceOf(ctx, db, t.Ref, questionnaires, asOf)
		out.Position.Sequence = asOf
		return asOf, err
	})
	if err != nil {
		return err
	}
	for i := range open {
		reason, err := h.pendingReason(c.Request().Context(), t.Ref, &open[i])
		if err != nil {
			return err
		}
		out.Items = append(out.Items, explain.NewPending(&open[i], reason, &evidence))
	}
	return c.JSON(http.StatusOK, out)
}
