package onboarding

import (
	"maps"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// file contains everything about one owner.
type file struct {
	owner     *Owner
	documents []scalar.ID // in the order of arrival
	answered  map[scalar.ID]entitlement.Answered
	triggers  []*Trigger // in the order of arrival; a Trigger is replaced, never changed
	notices   int64      // the number of notices about the owner
	held      bool
	erasure   *Erasure // nil unless erasure was requested; replaced, never changed
}

func (f *file) clone() *file {
	c := *f
	c.answered, c.triggers = maps.Clone(f.answered), slices.Clone(f.triggers)
	return &c
}

// apply applies an event to the file. Evolve applies it to the state's file and a draft to its copy.
func (f *file) apply(at decide.Stamp, e decide.Event) {
	switch e := e.(type) {
	case *ResponseAdded:
		before := f.answered[e.QuestionnaireID]
		f.answered[e.QuestionnaireID] = entitlement.Answered{Version: max(before.Version, e.Number), Sequence: at.Sequence}
	case *TriggerCreated:
		f.triggers = append(f.triggers, &Trigger{ID: e.ID, EntitlementID: e.EntitlementID, Ref: e.Ref, Status: entitlement.Pending,
			Created: e.Created, Updated: e.Created, Deadline: e.Deadline})
	case *TriggerMoved:
		f.change(e.ID, func(t *Trigger) { t.move(at, e) })
	case *RequirementsChanged:
		f.change(e.ID, func(t *Trigger) { t.Open = cloneRequirements(e.Open) })
	case *NoticeGiven:
		f.notices = e.Sequence
	}
}

func (f *file) change(id scalar.ID, change func(*Trigger)) {
	if n := f.index(id); n >= 0 {
		t := *f.triggers[n]
		change(&t)
		f.triggers[n] = &t
	}
}

func (f *file) index(id scalar.ID) int {
	return slices.IndexFunc(f.triggers, func(t *Trigger) bool { return t.ID == id })
}

// trigger returns a trigger of the owner, or nil.
func (f *file) trigger(id scalar.ID) *Trigger {
	if n := f.index(id); n >= 0 {
		return f.triggers[n]
	}
	return nil
}

// pins reports whether an open requirement of a definition pins the version of the questionnaire.
func (f *file) pins(questionnaireID scalar.ID, number int) bool {
	for _, t := range f.triggers {
		pinned := slices.Contains(t.Needs.Pinned, entitlement.Pinned{QuestionnaireID: questionnaireID, Version: number})
		if !pinned || !t.Status.IsOpen() {
			continue
		}
		for _, r := range t.Open {
			if r.Source == entitlement.FromDefinition && slices.Contains(r.Questionnaires, questionnaireID) {
				return true
			}
		}
	}
	return false
}

// pending returns the questionnaires that the owner must answer for its open triggers, without duplicates, in the order
// of the triggers.
func (f *file) pending() []scalar.ID {
	var out []scalar.ID
	for _, t := range f.triggers {
		for _, q := range t.requires() {
			if !slices.Contains(out, q) {
				out = append(out, q)
			}
		}
	}
	return out
}

// requested returns the number of questionnaires in the open requests for information. A questionnaire in several
// requests counts several times.
func (f *file) requested() int {
	n := 0
	for _, t := range f.triggers {
		if !t.Status.IsOpen() {
			continue
		}
		for _, r := range t.Open {
			if r.Source == entitlement.FromRequest {
				n += len(r.Questionnaires)
			}
		}
	}
	return n
}

// apply applies an event to an owner's file.
func (s *State) apply(at decide.Stamp, ref owner.Ref, e decide.Event) {
	if f, known := s.owners[ref.ID]; known {
		f.apply(at, e)
	}
}

// follow applies an event about a trigger and updates the counts of required questionnaires.
func (s *State) follow(at decide.Stamp, ref owner.Ref, id scalar.ID, e decide.Event) {
	f, known := s.owners[ref.ID]
	if !known {
		return
	}
	t := f.trigger(id)
	if t == nil {
		return
	}
	for _, q := range t.requires() {
		if s.required[q]--; s.required[q] == 0 {
			delete(s.required, q)
		}
	}
	f.apply(at, e)
	for _, q := range f.trigger(id).requires() {
		s.required[q]++
	}
}
