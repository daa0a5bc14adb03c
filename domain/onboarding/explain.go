package onboarding

import (
	"math/big"
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The names of the calculations of this package. Package entitlement has further ones.
const (
	LineAnswerable      = "questionnaire_can_be_answered"
	LineDeadline        = "deadline" // in Unix seconds
	LineDeadlinePassed  = "deadline_passed"
	LineAnswered        = "answered_version"
	LineTriggerAllowed  = "another_trigger_is_allowed"
	LineRequestsAllowed = "the_request_is_allowed"
)

// Arithmetic decides a record again on the state before it, and returns the calculations about triggers. command has the
// payload of a client's command; without a payload the record is a step. The party of a calculation is the id of a trigger, or
// "" if it concerns all triggers of the owner.
//
// The caller has checked that this build decides the same record: see package redecide. Arithmetic does not change the state.
func (s *State) Arithmetic(at decide.Stamp, command decide.Command) *arithmetic.Sheet {
	sheet := new(arithmetic.Sheet)
	if command.Payload == nil {
		if e := s.due.first(at.Time); e != nil {
			s.step(at, e, sheet)
		}
		return sheet
	}
	command = s.core.Confirmed(command, Payloads())
	if p, ok := command.Payload.(payload); ok {
		_ = p.decide(&draft{state: s, at: at, actor: command.Actor, by: p.givenBy(), sheet: sheet}) // a record was decided, so there is no refusal
	}
	return sheet
}

// GivenBy returns who gives the commands with a payload. It is the system for nil, the payload of a step.
func GivenBy(p decide.Payload) ActorKind {
	switch own := p.(type) {
	case payload:
		return own.givenBy()
	case *decide.ConfirmProposal:
		return ByOperator
	}
	return BySystem
}

// Case is a trigger, and its owner's responses at the same position.
type Case struct {
	Trigger *Trigger // nil before its record
	// Answered returns the responses to a questionnaire.
	Answered func(questionnaire scalar.ID) entitlement.Answered
}

// CaseAfter returns a trigger of an owner after the next events; without events it is the trigger in the state. It returns false
// if there is no such owner. The state does not change.
func (s *State) CaseAfter(at decide.Stamp, ref owner.Ref, id scalar.ID, events ...decide.Event) (c Case, known bool) {
	f, known := s.owners[ref.ID]
	if !known || f.owner.Ref != ref {
		return c, false
	}
	f = f.clone()
	for _, e := range events {
		if about(e) == ref {
			f.apply(at, e)
		}
	}
	return Case{f.trigger(id), func(q scalar.ID) entitlement.Answered { return f.answered[q] }}, true
}

// about returns the owner that an event of a file concerns, or the zero reference.
func about(e decide.Event) owner.Ref {
	switch e := e.(type) {
	case *ResponseAdded:
		return e.Ref
	case *TriggerCreated:
		return e.Ref
	case *TriggerMoved:
		return e.Ref
	case *RequirementsChanged:
		return e.Ref
	}
	return owner.Ref{}
}

// seconds returns a time as Unix seconds.
func seconds(t scalar.Time) string {
	return arithmetic.Text(big.NewRat(int64(t), int64(scalar.Second)))
}

// explainPin writes down whether the owner of a trigger can answer a questionnaire of a definition.
func (d *draft) explainPin(t *Trigger, q *versioned) {
	if !d.sheet.On() {
		return
	}
	published := int64(0)
	for _, is := range q.published {
		if is {
			published++
		}
	}
	v, applies := q.newest(), q.AppliesTo(t.Ref)
	d.sheet.Add(t.ID.String(), LineAnswerable, q.ID.String(), "published_versions > 0 and is_for_the_owner = 1", arithmetic.Truth(v != nil && applies),
		arithmetic.Count("published_versions", published), arithmetic.Flag("is_for_the_owner", applies))
}

// explainDeadline writes down the deadline of a trigger, unless there is none.
func (d *draft) explainDeadline(id scalar.ID, created scalar.Time, e *entitlement.Definition) {
	if until := deadline(created, e); until != 0 && d.sheet.On() {
		d.sheet.Add(id.String(), LineDeadline, "", "created_at + deadline_seconds", seconds(until), arithmetic.Value{Name: "created_at", Text: seconds(created)},
			arithmetic.Count("deadline_seconds", e.DeadlineSeconds))
	}
}

// explainPassed writes down that the deadline of a trigger has passed.
func (d *draft) explainPassed(t *Trigger) {
	if !d.sheet.On() {
		return
	}
	d.sheet.Add(t.ID.String(), LineDeadlinePassed, "", "time >= deadline", arithmetic.Truth(d.at.Time >= t.Deadline),
		arithmetic.Value{Name: "time", Text: seconds(d.at.Time)}, arithmetic.Value{Name: "deadline", Text: seconds(t.Deadline)})
}

// explainLimit writes down that an owner with this number of open triggers may have another one.
func (d *draft) explainLimit(open int) {
	if !d.sheet.On() {
		return
	}
	d.sheet.Add(d.nextID().String(), LineTriggerAllowed, "", "open_triggers < most_open_triggers and open_for_the_entitlement = 0", arithmetic.Truth(open < MaxOpenTriggers),
		arithmetic.Count("open_triggers", int64(open)), arithmetic.Count("most_open_triggers", MaxOpenTriggers), arithmetic.Count("open_for_the_entitlement", 0))
}

// explainAnswered writes down the newest version of a questionnaire that the owner has answered with a response to a version.
func (d *draft) explainAnswered(questionnaire scalar.ID, number int) {
	if !d.sheet.On() {
		return
	}
	before := d.file.answered[questionnaire].Version
	d.sheet.Add("", LineAnswered, questionnaire.String(), "max(answered_before, version_of_the_response)", strconv.Itoa(max(before, number)),
		arithmetic.Count("answered_before", int64(before)), arithmetic.Count("version_of_the_response", int64(number)))
}

// explainNeeds writes down what a trigger requires after the draft's events.
func (d *draft) explainNeeds(t *Trigger) {
	if !d.sheet.On() {
		return
	}
	t.Needs.Explain(d.sheet, t.ID.String(), func(q scalar.ID) entitlement.Answered { return d.file.answered[q] })
	entitlement.ExplainOpen(d.sheet, t.ID.String(), "", t.Open)
}

// explain writes down why an operator may act on a trigger.
func (p *ActOnTrigger) explain(d *draft, t *Trigger) {
	if !d.sheet.On() {
		return
	}
	switch p.Action {
	case entitlement.Approve:
		d.explainNeeds(t)
		t.Needs.ExplainMet(d.sheet, t.ID.String(), t.Open)
	case entitlement.RequestInformation:
		before, now := d.file.requested(), len(p.Questionnaires)
		d.sheet.Add(t.ID.String(), LineRequestsAllowed, "", "requested_before + requested_now <= most_requested", arithmetic.Truth(before+now <= MaxRequested),
			arithmetic.Count("requested_before", int64(before)), arithmetic.Count("requested_now", int64(now)), arithmetic.Count("most_requested", MaxRequested))
	}
}
