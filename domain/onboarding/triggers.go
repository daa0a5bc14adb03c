package onboarding

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// Trigger is the case of an owner who asks for an entitlement.
type Trigger struct {
	ID            scalar.ID
	EntitlementID scalar.ID
	owner.Ref
	Status   entitlement.Status
	Result   entitlement.Result
	Created  scalar.Time
	Updated  scalar.Time
	Deadline scalar.Time // zero: none
	Moved    int64       // the sequence of the record that moved it last, of a finished one that which finished it
	// Terms, Needs and Open are what was pinned at its start, what it asks for, and what of that is open.
	Terms Terms
	Needs entitlement.Needs
	Open  []entitlement.Requirement
}

// Terms is what is pinned of a definition beside its questionnaires.
type Terms struct {
	Name                string               `json:"name"`
	Approval            entitlement.Approval `json:"approval"`
	OpensTradingAccount bool                 `json:"opens_trading_account,omitzero"`
}

// requires returns the questionnaires that are to be answered for the trigger, each once.
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

// move applies what moved the trigger. What the old form shares with others is replaced, never changed.
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

// scheduleTrigger keeps the due list to what a trigger still waits for.
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

// Trigger returns a trigger of whichever owner.
func (s *State) Trigger(id scalar.ID) (*Trigger, bool) {
	if f, known := s.owners[s.triggers[id]]; known {
		t := f.trigger(id)
		return t, t != nil
	}
	return nil, false
}

// openTrigger has the draft be about the owner of a trigger, which is there.
func (d *draft) openTrigger(id scalar.ID) *Trigger {
	return d.open(d.state.owners[d.state.triggers[id]]).trigger(id)
}

// start decides how a trigger begins: its definition and the versions of the questionnaires are pinned. A definition that
// nobody could meet fails it.
func (d *draft) start(id scalar.ID) {
	t := d.openTrigger(id)
	e := d.state.entitlements[t.EntitlementID]
	var pinned []entitlement.Pinned
	for _, item := range e.Questionnaires {
		q := d.state.questionnaires[item.QuestionnaireID]
		v := q.newest()
		if v == nil || !q.AppliesTo(t.Ref) {
			d.end(t, entitlement.FailTrigger, ConfigurationError)
			return
		}
		pinned = append(pinned, entitlement.Pinned{QuestionnaireID: q.ID, Version: v.Number})
	}
	m := d.moved(t, entitlement.Start)
	m.Terms = &Terms{Name: e.Name, Approval: e.Approval, OpensTradingAccount: e.OpensTradingAccount}
	m.Pinned, m.VideoPlanned, m.Deadline = pinned, e.VideoIdentification, deadline(t.Created, e)
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
	d.end(d.openTrigger(id), entitlement.Terminate, DeadlinePassed)
}

// moved returns the event of an action, which the trigger's state allows.
func (d *draft) moved(t *Trigger, a entitlement.Action) *TriggerMoved {
	status, result, _ := entitlement.Next(t.Status, a)
	return &TriggerMoved{ID: t.ID, EntitlementID: t.EntitlementID, Ref: t.Ref, Action: a, Status: status, Result: result, By: d.by,
		Created: t.Created, Time: d.at.Time, Deadline: t.Deadline}
}

// end decides that a trigger ends by a rule.
func (d *draft) end(t *Trigger, a entitlement.Action, code string) {
	m := d.moved(t, a)
	m.By, m.Code, m.Reason = BySystem, code, Reason{Text: Sentence(code)}
	d.finish(m)
}

// finish adds the event that ends a trigger, and the one final notice.
func (d *draft) finish(m *TriggerMoved) {
	d.add(m)
	kind := webhook.EntitlementFailed
	if m.Result == entitlement.Success {
		kind = webhook.EntitlementCompleted
	}
	d.notice(Notice{Type: kind, TriggerID: m.ID, EntitlementID: m.EntitlementID, Code: m.Code, Reason: m.Reason})
}

// settle computes what is open of every trigger of the owner, and decides what follows: new requirements are told, the
// planned video identification is asked for, and what is met and needs nobody's approval is approved. A blocked trigger's
// requirements are followed, but it goes on only once it is released. Why is the reason of a request in the same record.
func (d *draft) settle(why Reason) {
	for n := range d.file.triggers { // what is added below are no triggers
		if d.file.triggers[n].Status.IsOpen() && d.file.triggers[n].Status != entitlement.Pending {
			d.settleTrigger(d.file.triggers[n].ID, why)
		}
	}
}

func (d *draft) settleTrigger(id scalar.ID, why Reason) {
	t := d.require(id, why)
	if t.Status != entitlement.Ongoing {
		return
	}
	if t.Needs.VideoDue(t.Open) {
		m := d.moved(t, entitlement.RequestVideoIdentification)
		m.By = BySystem
		d.add(m)
		t = d.require(id, why)
	}
	if t.Terms.Approval == entitlement.Automatic && t.Needs.Met(t.Open) {
		d.end(t, entitlement.Approve, Approved)
	}
}

// require computes what is open of a trigger and tells of what is new.
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
