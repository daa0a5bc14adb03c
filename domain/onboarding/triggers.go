package onboarding

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// Trigger is an owner's request for an entitlement.
type Trigger struct {
	ID            scalar.ID
	EntitlementID scalar.ID
	owner.Ref
	Status   entitlement.Status
	Result   entitlement.Result
	Created  scalar.Time
	Updated  scalar.Time
	Deadline scalar.Time // zero: none
	Moved    int64       // the sequence of the record of its last action; for a finished trigger, the one that finished it
	// Terms were pinned at the start. Needs are the pinned and requested requirements. Open are those that are not met.
	Terms Terms
	Needs entitlement.Needs
	Open  []entitlement.Requirement
}

// Terms are the pinned parts of a definition other than its questionnaires.
type Terms struct {
	Name                string               `json:"name"`
	Approval            entitlement.Approval `json:"approval"`
	OpensTradingAccount bool                 `json:"opens_trading_account,omitzero"`
}

// requires returns the questionnaires that must be answered for the trigger, without duplicates.
func (t *Trigger) requires() []scalar.ID {
	if !t.Status.IsOpen() {
		return nil
	}
	var out []scalar.ID
	for _, r := range t.Open {
		for _, q := range r.Questionnaires {
			if !slices.Contains(out, q) {
				out = append(out, q)
			}
		}
	}
	return out
}

// move applies an action. Memory that is shared with older copies of the trigger is replaced, never changed.
func (t *Trigger) move(at decide.Stamp, e *TriggerMoved) {
	t.Status, t.Result, t.Updated, t.Deadline, t.Moved = e.Status, e.Result, e.Time, e.Deadline, at.Sequence
	switch e.Action {
	case entitlement.Start:
		if e.Terms != nil {
			t.Terms = *e.Terms
		}
		t.Needs.Pinned, t.Needs.VideoPlanned = slices.Clone(e.Pinned), e.VideoPlanned
	case entitlement.RequestInformation:
		if e.Request != nil {
			r := *e.Request
			r.Questionnaires = slices.Clone(r.Questionnaires)
			t.Needs.Requests = append(slices.Clone(t.Needs.Requests), r)
		}
	case entitlement.RequestVideoIdentification:
		t.Needs.Video, t.Needs.VideoSequence = entitlement.VideoAsked, at.Sequence
	case entitlement.CompleteVideoIdentification:
		if e.Outcome == Passed {
			t.Needs.Video = entitlement.VideoPassed
		}
	}
}

func cloneRequirements(open []entitlement.Requirement) []entitlement.Requirement {
	out := append([]entitlement.Requirement{}, open...)
	for i := range out {
		out[i].Questionnaires = slices.Clone(out[i].Questionnaires)
	}
	return out
}

func (s *State) createTrigger(e *TriggerCreated) {
	s.triggers[e.ID] = e.Ref.ID
	s.due.set(dueKey{dueStart, e.ID}, e.Created)
	if e.Deadline != 0 {
		s.due.set(dueKey{dueDeadline, e.ID}, e.Deadline)
	}
}

// scheduleTrigger updates the due list after an action.
func (s *State) scheduleTrigger(e *TriggerMoved) {
	if e.Status != entitlement.Pending {
		s.due.drop(dueKey{dueStart, e.ID})
	}
	if e.Action == entitlement.Start || !e.Status.IsOpen() {
		s.due.drop(dueKey{dueDeadline, e.ID})
	}
	if e.Action == entitlement.Start && e.Deadline != 0 {
		s.due.set(dueKey{dueDeadline, e.ID}, e.Deadline)
	}
}

// Trigger returns a trigger of any owner.
func (s *State) Trigger(id scalar.ID) (*Trigger, bool) {
	if f, known := s.owners[s.triggers[id]]; known {
		t := f.trigger(id)
		return t, t != nil
	}
	return nil, false
}

// openTrigger makes the draft concern the owner of a trigger, which must exist, and returns the trigger.
func (d *draft) openTrigger(id scalar.ID) *Trigger {
	return d.open(d.state.owners[d.state.triggers[id]]).trigger(id)
}

// start decides the start of a trigger: it pins the definition and the versions of the questionnaires. The trigger fails
// if its owner could not answer one of the questionnaires.
func (d *draft) start(id scalar.ID) {
	t := d.openTrigger(id)
	e := d.state.entitlements[t.EntitlementID]
	var pinned []entitlement.Pinned
	for _, item := range e.Questionnaires {
		q := d.state.questionnaires[item.QuestionnaireID]
		v := q.newest()
		d.explainPin(t, q)
		if v == nil || !q.AppliesTo(t.Ref) {
			d.end(t, entitlement.FailTrigger, ConfigurationError)
			return
		}
		pinned = append(pinned, entitlement.Pinned{QuestionnaireID: q.ID, Version: v.Number})
	}
	m := d.moved(t, entitlement.Start)
	m.Terms = &Terms{Name: e.Name, Approval: e.Approval, OpensTradingAccount: e.OpensTradingAccount}
	m.Pinned, m.VideoPlanned, m.Deadline = pinned, e.VideoIdentification, deadline(t.Created, e)
	d.explainDeadline(t.ID, t.Created, e)
	d.add(m)
	d.settle(Reason{})
}

func deadline(created scalar.Time, e *entitlement.Definition) scalar.Time {
	if e.DeadlineSeconds == 0 {
		return 0
	}
	return created + scalar.Time(e.DeadlineSeconds)*scalar.Second
}

func (d *draft) passDeadline(id scalar.ID) {
	t := d.openTrigger(id)
	d.explainPassed(t)
	d.end(t, entitlement.Terminate, DeadlinePassed)
}

// moved returns the event of an action. The trigger's state must allow the action.
func (d *draft) moved(t *Trigger, a entitlement.Action) *TriggerMoved {
	status, result, _ := entitlement.Next(t.Status, a)
	return &TriggerMoved{ID: t.ID, EntitlementID: t.EntitlementID, Ref: t.Ref, Action: a, Status: status, Result: result, By: d.by,
		Created: t.Created, Time: d.at.Time, Deadline: t.Deadline}
}

// end decides that a rule ends a trigger.
func (d *draft) end(t *Trigger, a entitlement.Action, code string) {
	m := d.moved(t, a)
	m.By, m.Code, m.Reason = BySystem, code, Reason{Text: Sentence(code)}
	d.finish(m)
}

// finish adds the event that ends a trigger, and its final notice.
func (d *draft) finish(m *TriggerMoved) {
	d.add(m)
	kind := webhook.EntitlementFailed
	if m.Result == entitlement.Success {
		kind = webhook.EntitlementCompleted
	}
	d.notice(Notice{Type: kind, TriggerID: m.ID, EntitlementID: m.EntitlementID, Code: m.Code, Reason: m.Reason})
}

// settle recomputes the open requirements of all triggers of the owner and decides the consequences: notices of new
// requirements, the planned video identification, and automatic approvals. A blocked trigger's requirements are updated,
// but it gets no identification and no approval before its release. why is the reason of a request in the same record.
func (d *draft) settle(why Reason) {
	for n := range d.file.triggers { // the events below add no triggers
		if d.file.triggers[n].Status.IsOpen() && d.file.triggers[n].Status != entitlement.Pending {
			d.settleTrigger(d.file.triggers[n].ID, why)
		}
	}
}

func (d *draft) settleTrigger(id scalar.ID, why Reason) {
	t := d.require(id, why)
	d.explainNeeds(t)
	if t.Status != entitlement.Ongoing {
		return
	}
	t.Needs.ExplainVideo(d.sheet, t.ID.String(), t.Open)
	if t.Needs.VideoDue(t.Open) {
		m := d.moved(t, entitlement.RequestVideoIdentification)
		m.By = BySystem
		d.add(m)
		t = d.require(id, why)
		entitlement.ExplainOpen(d.sheet, id.String(), "with the video identification", t.Open)
	}
	t.Needs.ExplainApproval(d.sheet, t.ID.String(), t.Terms.Approval, t.Open)
	if t.Terms.Approval == entitlement.Automatic && t.Needs.Met(t.Open) {
		d.end(t, entitlement.Approve, Approved)
	}
}

// require recomputes the open requirements of a trigger and gives a notice of new ones.
func (d *draft) require(id scalar.ID, why Reason) *Trigger {
	t := d.file.trigger(id)
	before, now := t.Open, t.Needs.Open(func(q scalar.ID) entitlement.Answered { return d.file.answered[q] })
	if slices.EqualFunc(before, now, func(a, b entitlement.Requirement) bool {
		return a.Source == b.Source && a.Request == b.Request && a.Sequence == b.Sequence && slices.Equal(a.Questionnaires, b.Questionnaires)
	}) {
		return t
	}
	d.add(&RequirementsChanged{ID: id, Ref: t.Ref, Open: now, Time: d.at.Time})
	if newest, grew := entitlement.Grew(before, now); grew {
		d.tell(t, newest.Source, why)
	}
	return d.file.trigger(id)
}

// tell decides the notice of a new requirement.
func (d *draft) tell(t *Trigger, source entitlement.Source, why Reason) {
	if source == entitlement.FromVideo {
		d.notice(Notice{Type: webhook.RequirementsVid, TriggerID: t.ID, EntitlementID: t.EntitlementID})
		return
	}
	n := Notice{Type: webhook.RequirementsQuestionnaire, TriggerID: t.ID, Pending: d.file.pending(), Reason: Reason{Text: t.Terms.Name}}
	if source == entitlement.FromRequest {
		n.Reason = why
	}
	d.notice(n)
}

func triggerNotFound() error {
	return decide.Refuse(decide.NotFound, "ENTITLEMENT_TRIGGER_NOT_FOUND", "there is no such entitlement trigger")
}
