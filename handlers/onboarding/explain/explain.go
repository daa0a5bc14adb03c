// Package explain explains a record of the onboarding journal for an entitlement trigger that the record is about, and why a
// requirement is open.
//
// The calculations are those of the rules themselves: they decide the record again on the state that it met, and write down
// each condition with its numbers (package arithmetic). An explanation is about one trigger of one owner. It has no personal data: only ids,
// versions, states, times, and positions.
package explain

import (
	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/explanations"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

// Explanation is the explanation of a record for one trigger.
type Explanation struct {
	TriggerID     scalar.ID `json:"entitlement_trigger_id"`
	EntitlementID scalar.ID `json:"entitlement_id"`
	owner.Ref
	Position  record.LogPosition `json:"position"`
	Timestamp scalar.Time        `json:"timestamp"`
	// Subjects say what the record is for the trigger. There is at least one.
	Subjects []Subject `json:"subjects"`
	Command  Command   `json:"command"`
	Rules    int       `json:"rules"` // in force
	Met      Met       `json:"met"`
	// DecidedAgain is false for a record of an older form, which does not show all its inputs. It has no arithmetic then.
	DecidedAgain bool              `json:"decided_again"`
	Arithmetic   []arithmetic.Line `json:"arithmetic"`
	After        Trigger           `json:"after"`
	// Responses decide whether the requirements after the record are met: the latest one to each questionnaire, and the latest one to the
	// newest version that the owner has answered.
	Responses []Response `json:"responses"`
	Documents []Document `json:"documents"` // those that the responses name
}

// Subject says what a record is for a trigger: application, requirements, notice, or the action that moved the trigger, such as
// start or approve.
type Subject string

// The subjects that are not actions.
const (
	Application  Subject = "application"  // the owner asked for the entitlement
	Requirements Subject = "requirements" // the open requirements changed
	Notice       Subject = "notice"       // receivers were told
)

// Command is a command as its record has it.
type Command struct {
	ID   scalar.ID `json:"id"`
	Type string    `json:"type"`
	// ActorKind says who gave it. It is system for due work of the rules.
	ActorKind onboarding.ActorKind `json:"actor_kind"`
	// Sub is the user that gave it, and Key the Idempotency-Key. Both are null if the reader must not see them, or if there is none.
	Sub wire.Nullable[string] `json:"sub"`
	Key wire.Nullable[string] `json:"idempotency_key"`
}

// Met is the state before the record.
type Met struct {
	Position   record.LogPosition `json:"position"`
	OwnerState owner.State        `json:"owner_state"`
	// Trigger is null for the record that created it.
	Trigger *Trigger `json:"trigger"`
	// Definition is the entitlement's definition in force. It is null unless the record created or started the trigger, because
	// later changes do not affect a trigger.
	Definition *Definition `json:"definition"`
}

// Trigger is a trigger at a position.
type Trigger struct {
	Status   entitlement.Status  `json:"status"`
	Result   *entitlement.Result `json:"result"`
	Deadline *scalar.Time        `json:"deadline"`
	Updated  scalar.Time         `json:"updated_at"`
	// Terms are null before the start.
	Terms *Terms `json:"terms"`
	// Requirements are all requirements, met or not: those of the definition, then those of requests, then the video identification.
	Requirements []Requirement `json:"requirements"`
}

// Terms are the parts of the definition that were pinned when the trigger started.
type Terms struct {
	Name                string               `json:"name"`
	Approval            entitlement.Approval `json:"approval"`
	VideoIdentification bool                 `json:"video_identification"`
	OpensTradingAccount bool                 `json:"opens_trading_account"`
	Position            record.LogPosition   `json:"position"` // of the start
}

// Definition is a version of an entitlement's definition. Updated identifies the version.
type Definition struct {
	// Position is the record of this version. It is null if the definition was changed again after the explained record.
	Position            *record.LogPosition             `json:"position"`
	Name                string                          `json:"name"`
	Questionnaires      []wire.EntitlementQuestionnaire `json:"questionnaires"`
	Approval            entitlement.Approval            `json:"approval"`
	VideoIdentification bool                            `json:"video_identification"`
	DeadlineSeconds     int64                           `json:"deadline_seconds"` // 0: none
	OpensTradingAccount bool                            `json:"opens_trading_account"`
	Created             scalar.Time                     `json:"created_at"`
	Updated             scalar.Time                     `json:"updated_at"`
}

// Requirement is one questionnaire, or the video identification, that a trigger requires.
type Requirement struct {
	Source    entitlement.Source `json:"source"`
	RequestID *scalar.ID         `json:"request_id"` // of a request for information
	// Position is the record that required it.
	Position        record.LogPosition `json:"position"`
	QuestionnaireID *scalar.ID         `json:"questionnaire_id"` // null for the video identification
	// RequiredVersion is the least version that must be answered. It is null for requests, which any version meets.
	RequiredVersion *int `json:"required_version"`
	// AnsweredVersion is the newest version that the owner has answered, and Answered the record of the latest response. Both are
	// null without a response.
	AnsweredVersion *int                `json:"answered_version"`
	Answered        *record.LogPosition `json:"answered_position"`
	Met             bool                `json:"met"`
	// Lacks says why it is not met. It is null if it is.
	Lacks *Lack `json:"lacks"`
}

// Lack says why a requirement is not met.
type Lack string

// The lacks.
const (
	Unanswered     Lack = "unanswered"              // there is no response
	OlderVersion   Lack = "older_version"           // only older versions were answered
	BeforeRequest  Lack = "answered_before_request" // the latest response is older than the request
	Identification Lack = "identification"          // the video identification was not passed yet
)

// Response is a response that decides whether a requirement is met. Its answers are personal data, and are not here.
type Response struct {
	ID              scalar.ID          `json:"response_id"`
	QuestionnaireID scalar.ID          `json:"questionnaire_id"`
	Number          int                `json:"version_number"`
	Documents       []scalar.ID        `json:"document_ids"`
	Position        record.LogPosition `json:"position"`
	Created         scalar.Time        `json:"created_at"`
}

// Document is a document in the state before the record.
type Document struct {
	ID         scalar.ID          `json:"document_id"`
	Category   document.Category  `json:"category"`
	ValidUntil *scalar.Time       `json:"valid_until"` // null: no end
	Expired    bool               `json:"expired"`     // at the time of the record
	Position   record.LogPosition `json:"position"`    // of the record that added it
	Created    scalar.Time        `json:"created_at"`
}

// Request names the trigger and the reader of an explanation.
type Request struct {
	owner.Ref
	TriggerID scalar.ID
	// Started is the sequence of the record that started the trigger, or 0.
	Started int64
	// Defined is the sequence of the record that last changed the entitlement's definition, or 0 if unknown.
	Defined int64
	// Evidence is that of the trigger's questionnaires up to the record.
	Evidence view.Evidence
	// Tenant is the reader's tenant. The reader may see users and keys of commands by clients of this tenant or, with All, of all
	// commands.
	Tenant string
	All    bool
}

// journal decides records again.
var journal = redecide.Journal{Payloads: onboarding.Payloads(), Limit: onboarding.Rules().Limit()}

// New explains a record. The error is explanations.ErrForeign or an *explanations.DifferentError.
func New(met past.Met, request Request) (*Explanation, error) {
	state, r, at := met.State.(*onboarding.State), met.Entry.Record, met.Entry.Stamp()
	subjects := subjectsOf(r, request.TriggerID)
	before, known := state.CaseAfter(at, request.Ref, request.TriggerID)
	if len(subjects) == 0 || !known {
		return nil, explanations.ErrForeign
	}
	after, _ := state.CaseAfter(at, request.Ref, request.TriggerID, r.Events...)
	if after.Trigger == nil {
		return nil, explanations.ErrForeign
	}
	again, err := explanations.Redecide(journal, met)
	if err != nil {
		return nil, err
	}
	x := &Explanation{TriggerID: request.TriggerID, EntitlementID: after.Trigger.EntitlementID, Ref: request.Ref, Position: position(at.Sequence), Timestamp: r.Time,
		Subjects: subjects, Command: commandOf(r, payloadOf(again.Command), request), Rules: state.ActiveRules(), DecidedAgain: again.Decided, Arithmetic: []arithmetic.Line{},
		After: *triggerOf(after, request.Started), Responses: []Response{}, Documents: []Document{}}
	if again.Decided {
		x.Arithmetic = state.Arithmetic(at, again.Command).For(request.TriggerID.String())
	}
	x.Met = Met{Position: position(met.Before.Sequence), Trigger: triggerOf(before, request.Started)}
	if o, ok := state.Owner(request.Ref); ok {
		x.Met.OwnerState = o.State
	}
	if d, ok := state.Entitlement(after.Trigger.EntitlementID); ok && (before.Trigger == nil || before.Trigger.Status == entitlement.Pending) {
		x.Met.Definition = definitionOf(d)
		if request.Defined > 0 && request.Defined < at.Sequence {
			defined := position(request.Defined)
			x.Met.Definition.Position = &defined
		}
	}
	x.rely(state, r, &request.Evidence)
	return x, nil
}

func position(sequence int64) record.LogPosition {
	return record.LogPosition{Journal: "onboarding", Sequence: sequence}
}

// subjectsOf returns what a record is for a trigger, each subject once.
func subjectsOf(r *record.Record, trigger scalar.ID) (subjects []Subject) {
	seen := make(map[Subject]bool)
	about := func(id scalar.ID, s Subject) {
		if id == trigger && !seen[s] {
			seen[s] = true
			subjects = append(subjects, s)
		}
	}
	for _, e := range r.Events {
		switch e := e.(type) {
		case *onboarding.TriggerCreated:
			about(e.ID, Application)
		case *onboarding.TriggerMoved:
			about(e.ID, Subject(e.Action))
		case *onboarding.RequirementsChanged:
			about(e.ID, Requirements)
		case *onboarding.NoticeGiven:
			about(e.TriggerID, Notice)
		}
	}
	return subjects
}

// commandOf returns what a reader may see of a command. payload is nil for a step.
func commandOf(r *record.Record, payload decide.Payload, request Request) Command {
	c := Command{ID: r.Command.ID, Type: r.Command.Type, ActorKind: onboarding.GivenBy(payload)}
	if request.All || c.ActorKind == onboarding.ByClient && r.Command.Actor.Broker == request.Tenant {
		c.Sub, c.Key = wire.NullIfZero(r.Command.Actor.Sub), wire.NullIfZero(r.Command.Metadata.Key)
	}
	return c
}

// payloadOf returns the payload of a command, or nil for a step.
func payloadOf(c decide.Command) decide.Payload {
	p, _ := c.Payload.(decide.Payload)
	return p
}

// triggerOf returns the form of a trigger, or nil if there is none.
func triggerOf(c onboarding.Case, started int64) *Trigger {
	t := c.Trigger
	if t == nil {
		return nil
	}
	out := &Trigger{Status: t.Status, Result: nonzero(t.Result), Deadline: nonzero(t.Deadline), Updated: t.Updated, Requirements: Required(&t.Needs, started, c.Answered)}
	if t.Terms.Approval != "" {
		out.Terms = &Terms{Name: t.Terms.Name, Approval: t.Terms.Approval, VideoIdentification: t.Needs.VideoPlanned,
			OpensTradingAccount: t.Terms.OpensTradingAccount, Position: position(started)}
	}
	return out
}

// Required returns all requirements of a trigger, met or not. started is the sequence of the record that started the trigger.
func Required(n *entitlement.Needs, started int64, answered func(questionnaire scalar.ID) entitlement.Answered) []Requirement {
	out := []Requirement{}
	for _, p := range n.Pinned {
		has := answered(p.QuestionnaireID)
		r := requirement(entitlement.FromDefinition, started, p.QuestionnaireID, has)
		r.RequiredVersion = &p.Version
		if has.Sequence > 0 {
			r.lack(has.Version < p.Version, OlderVersion)
		}
		out = append(out, r)
	}
	for _, request := range n.Requests {
		for _, q := range request.Questionnaires {
			has := answered(q)
			r := requirement(entitlement.FromRequest, request.Sequence, q, has)
			r.RequestID = &request.ID
			if has.Sequence > 0 {
				r.lack(has.Sequence <= request.Sequence, BeforeRequest)
			}
			out = append(out, r)
		}
	}
	if n.Video != entitlement.NoVideo {
		r := Requirement{Source: entitlement.FromVideo, Position: position(n.VideoSequence), Met: true}
		r.lack(n.Video == entitlement.VideoAsked, Identification)
		out = append(out, r)
	}
	return out
}

// requirement returns a requirement of a questionnaire, which is met if there is a response.
func requirement(source entitlement.Source, sequence int64, questionnaire scalar.ID, has entitlement.Answered) Requirement {
	r := Requirement{Source: source, Position: position(sequence), QuestionnaireID: &questionnaire, Met: true}
	if has.Sequence == 0 {
		r.lack(true, Unanswered)
		return r
	}
	at := position(has.Sequence)
	r.AnsweredVersion, r.Answered = &has.Version, &at
	return r
}

// lack says that a requirement is not met, if it is so.
func (r *Requirement) lack(lacks bool, what Lack) {
	if lacks {
		r.Met, r.Lacks = false, &what
	}
}

func definitionOf(d *entitlement.Definition) *Definition {
	shown := wire.NewEntitlement(d)
	return &Definition{Name: d.Name, Questionnaires: shown.Questionnaires, Approval: d.Approval, VideoIdentification: d.VideoIdentification,
		DeadlineSeconds: d.DeadlineSeconds, OpensTradingAccount: d.OpensTradingAccount, Created: d.Created, Updated: d.Updated}
}

// rely adds the responses that the requirements after the record depend on, and their documents in the state before it.
func (x *Explanation) rely(state *onboarding.State, r *record.Record, e *view.Evidence) {
	wanted, named := make(map[scalar.ID]bool), make(map[scalar.ID]bool)
	for _, q := range x.After.Requirements {
		if q.QuestionnaireID != nil {
			wanted[*q.QuestionnaireID] = true
		}
	}
	for i := range e.Responses {
		if a := &e.Responses[i]; wanted[a.QuestionnaireID] {
			x.Responses = append(x.Responses, Response{ID: a.ID, QuestionnaireID: a.QuestionnaireID, Number: a.Number, Documents: a.Documents,
				Position: position(a.Sequence), Created: a.Created})
			for _, id := range a.Documents {
				named[id] = true
			}
		}
	}
	for i := range e.Documents {
		row := &e.Documents[i]
		d, known := state.Document(row.ID)
		if !named[row.ID] || !known {
			continue
		}
		x.Documents = append(x.Documents, Document{ID: d.ID, Category: d.Category, ValidUntil: nonzero(d.ValidUntil), Expired: d.ValidUntil != 0 && d.ValidUntil <= r.Time,
			Position: position(row.Added), Created: d.Created})
	}
}

// nonzero returns nil for the zero value.
func nonzero[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}
