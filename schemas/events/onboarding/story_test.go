package onboarding_test

import (
	"bytes"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

var (
	client   = decide.Actor{Sub: "broker-a", Broker: "alpha"}
	operator = decide.Actor{Sub: "operator", Broker: "venue"}
	system   = decide.Actor{System: "sender"}

	person    = owner.Ref{Type: owner.PersonType, ID: id(1)}
	corporate = owner.Ref{Type: owner.CorporateType, ID: id(2)}
)

func id(n byte) scalar.ID       { return scalar.ID{0: n, 6: 0x40, 8: 0x80, 15: n} }
func ptr[T any](v T) *T         { return &v }
func sealed() onboarding.Sealed { return onboarding.Sealed("\x01\x00\x01\x02\x03 a ciphertext") }
func hash(of byte) []byte       { return bytes.Repeat([]byte{of}, 32) }
func made[E decide.Event](s *story) (e E) {
	s.t.Helper()
	for _, one := range s.last {
		if found, is := one.(E); is {
			return found
		}
	}
	s.t.Fatalf("the last record has no %T", e)
	return e
}

// story is a run of the rules in which every type of event occurs, each also with all that it may have.
type story struct {
	t        *testing.T
	state    *onboarding.State
	at       decide.Stamp
	events   []decide.Event
	last     []decide.Event // of the latest record
	commands map[string]bool
	same     map[string]int      // records that were decided again as the same, by command type
	inputs   map[string][]string // by command type
}

// tell tells the story by rules 1 and, at its end, 2.
func tell(t *testing.T) *story { return newStory(t).tell() }

func newStory(t *testing.T) *story {
	return &story{t: t, state: onboarding.NewState(), at: decide.Stamp{Journal: scalar.ID{7}, Time: 1_767_225_600_000_000}, commands: make(map[string]bool),
		same: make(map[string]int), inputs: make(map[string][]string)}
}

// activate puts the rules up to a number in force.
func (s *story) activate(rules int) {
	s.t.Helper()
	for next := s.state.ActiveRules() + 1; next <= rules; next++ {
		s.do(operator, &decide.ActivateRules{Rules: next})
	}
}

func (s *story) tell() *story {
	s.owners()
	s.webhooks()
	questionnaires := s.questionnaires()
	s.triggers(questionnaires)
	s.deliveries()
	s.ends()
	s.nextRules()
	return s
}

func (s *story) fold(c decide.Recorded, d decide.Decision) {
	s.t.Helper()
	if len(d.Events) == 0 {
		s.t.Fatalf("%s has no events", c.Type)
	}
	s.redecide(c, d)
	s.state.Evolve(s.at, c, d.Outcome, d.Events)
	s.events, s.last = append(s.events, d.Events...), d.Events
	s.at.Sequence++
	s.at.Time += scalar.Second
}

// do decides a command, but leaves what is due to step.
func (s *story) do(actor decide.Actor, payload decide.Payload) {
	s.t.Helper()
	c := decide.Command{ID: scalar.ID{1, byte(s.at.Sequence)}, Type: payload.CommandType(), Payload: payload, Actor: actor}
	d, err := s.state.Decide(s.at, c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.commands[c.Type] = true
	s.fold(c.Recorded(), d)
}

// step does all that is due, of which there is something.
func (s *story) step() {
	s.t.Helper()
	for done := false; !done || s.state.Due(s.at.Time) != decide.Nothing; done = true {
		s.fold(decide.Recorded{Type: "engine.step", Actor: decide.Engine}, s.state.Step(s.at, false))
	}
}

func (s *story) owners() {
	s.do(client, &onboarding.RegisterOwner{Ref: person, ExternalID: hash('p'), Fields: sealed()})
	s.do(client, &onboarding.RegisterOwner{Ref: corporate, ExternalID: hash('c'), Fields: sealed()})
	s.do(client, &onboarding.ChangeOwner{Ref: person, Revision: 1, ExternalID: hash('q'), Fields: sealed()})
	s.do(client, &onboarding.AddDocument{Ref: person, ID: id(10), Category: "id_document", Orientation: "front", Name: sealed(),
		Source: "7f/7f0c1e", SHA256: hash(0xa5), Size: 48_213, Format: "pdf"})
	s.do(operator, &onboarding.ChangeDocument{Ref: person, ID: id(10), Category: ptr(document.Category("residence_permit")),
		ValidUntil: ptr(s.at.Time + 400*scalar.Day)})
	s.do(client, &onboarding.AddDocument{Ref: corporate, ID: id(11), Category: "bank_statement", Orientation: document.Undetermined, Name: sealed(),
		Source: "80/80aa", SHA256: hash(0x5a), Size: 20 << 20, Format: "csv", ValidUntil: s.at.Time + 31*scalar.Day})
}

func key(name string, fill byte) onboarding.SigningKey {
	return onboarding.SigningKey{KeyID: name, Public: hash(fill), Private: sealed()}
}

func (s *story) webhooks() {
	s.do(client, &onboarding.CreateWebhook{ID: id(20), URL: "https://hooks.example/a?b=c", Types: []webhook.EventType{webhook.EntitlementFailed, webhook.Test},
		Key: key("first", 1)})
	s.do(client, &onboarding.CreateWebhook{ID: id(21), URL: "https://hooks.example/all", All: true, Key: key("all", 2)})
	s.do(client, &onboarding.CreateWebhook{ID: id(22), URL: "https://hooks.example/gone", All: true, Key: key("gone", 3)})
	s.do(client, &onboarding.DeleteWebhook{ID: id(22)})
	s.do(client, &onboarding.RotateWebhook{ID: id(20), Key: key("second", 4), Overlap: scalar.Second})
	s.at.Time += scalar.Minute
	s.step()
}

// questionnaires makes three for persons, each published.
func (s *story) questionnaires() []scalar.ID {
	var out []scalar.ID
	for _, of := range []scalar.ID{{}, {}, person.ID} {
		s.do(operator, &onboarding.CreateQuestionnaire{Name: "Source of funds", OwnerType: owner.PersonType, OwnerTypeID: of})
		q := made[*onboarding.QuestionnaireCreated](s).ID
		s.do(operator, &onboarding.ChangeQuestionnaire{ID: q, Description: ptr("Where your money\ncomes from.")})
		s.do(operator, &onboarding.AddVersion{QuestionnaireID: q, Questions: []questionnaire.Question{
			{Label: "Who are you?", Value: "name", Type: questionnaire.Text, Position: 1},
			{Label: "Which of them?", Value: "which", Type: questionnaire.MultipleChoice, IsOptional: true, Position: 2,
				Options: []questionnaire.Option{{Label: "Wages", Value: "wages", Position: 1}, {Label: "Gifts", Value: "gifts", Position: 2}}},
			{Label: "Your papers", Value: "papers", Type: questionnaire.MultipleDocuments, IsOptional: true, Position: 3}}})
		s.do(operator, &onboarding.PublishQuestionnaire{ID: q})
		out = append(out, q)
	}
	return out
}

func (s *story) answer(q scalar.ID, documents ...scalar.ID) {
	s.t.Helper()
	_, v, _ := s.state.Questionnaire(q)
	given := []onboarding.Given{{QuestionID: v.Questions[0].ID, Field: questionnaire.FieldText}}
	if len(documents) > 0 {
		given = append(given, onboarding.Given{QuestionID: v.Questions[2].ID, Field: questionnaire.FieldDocuments, Documents: documents})
	}
	s.do(client, &onboarding.AddResponse{Ref: person, QuestionnaireID: q, VersionID: v.ID, Given: given, Answers: sealed()})
}

func (s *story) act(trigger scalar.ID, a entitlement.Action, change ...func(*onboarding.ActOnTrigger)) {
	s.t.Helper()
	p := &onboarding.ActOnTrigger{ID: trigger, Action: a, Code: "MORE_NEEDED", Reason: sealed(), InternalReason: sealed()}
	for _, c := range change {
		c(p)
	}
	s.do(operator, p)
}

func (s *story) triggers(questionnaires []scalar.ID) {
	first, second, own := questionnaires[0], questionnaires[1], questionnaires[2]
	s.do(operator, &onboarding.CreateEntitlement{Name: "Trading", Description: "All of it.", OwnerType: owner.PersonType, Approval: entitlement.Automatic,
		Questionnaires:      []entitlement.Item{{QuestionnaireID: first, Position: 1}, {QuestionnaireID: second, Position: 2}},
		VideoIdentification: true, DeadlineSeconds: 86_400, OpensTradingAccount: true})
	e := made[*onboarding.EntitlementCreated](s).ID
	begin := func() scalar.ID {
		s.do(client, &onboarding.CreateTrigger{Ref: person, EntitlementID: e})
		trigger := made[*onboarding.TriggerCreated](s).ID
		s.step()
		return trigger
	}
	trigger := begin()
	s.act(trigger, entitlement.RequestInformation, func(p *onboarding.ActOnTrigger) { p.Questionnaires = []scalar.ID{own, first} })
	s.act(trigger, entitlement.RequestVideoIdentification)
	s.act(trigger, entitlement.Block)
	s.act(trigger, entitlement.Release)
	s.answer(first, id(10))
	s.answer(second)
	s.answer(own)
	s.act(trigger, entitlement.CompleteVideoIdentification, func(p *onboarding.ActOnTrigger) {
		p.Outcome, p.ExternalReference = onboarding.Passed, sealed()
	})
	made[*onboarding.NoticeGiven](s) // of its approval
	failing := begin()               // all is answered, so it begins with the identification
	s.act(failing, entitlement.CompleteVideoIdentification, func(p *onboarding.ActOnTrigger) { p.Outcome = onboarding.NotPassed })
	s.do(operator, &onboarding.ChangeEntitlement{ID: e, Questionnaires: []entitlement.Item{}, DeadlineSeconds: ptr(int64(0))})
	s.do(operator, &onboarding.UnpublishQuestionnaire{ID: own})
	s.at.Time += 2 * scalar.Day
	s.step() // the end of the corporate's document draws near
}

// deliveries has one fail in each way, and its registration with it.
func (s *story) deliveries() {
	s.do(client, &onboarding.TestWebhook{ID: id(20)})
	sent := made[*onboarding.DeliveryCreated](s).ID
	attempt := func(number, status int, cause string, reply onboarding.Sealed) {
		s.do(system, &onboarding.RecordAttempt{ID: sent, Number: number, Started: s.at.Time - scalar.Second, DurationMS: 250, StatusCode: status, Error: cause,
			Reply: reply, Schedule: webhook.Schedule{scalar.Second}})
	}
	attempt(1, 503, "", sealed())
	s.at.Time += 6 * scalar.Day
	attempt(2, 0, "connection refused", nil)
	s.do(client, &onboarding.RotateWebhook{ID: id(20), Key: key("third", 5), Overlap: 20 * scalar.Day})
	s.do(client, &onboarding.EnableWebhook{ID: id(20)})
	s.do(operator, &onboarding.ReplayDelivery{ID: sent, Operator: true})
	s.do(system, &onboarding.RecordAttempts{Attempts: []*onboarding.RecordAttempt{{ID: sent, Number: 3, Started: s.at.Time - scalar.Second, DurationMS: 250,
		StatusCode: 200, Reply: sealed()}}, Schedule: webhook.Schedule{scalar.Second}})
}

func (s *story) ends() {
	s.do(operator, &onboarding.SetRetention{Seconds: 0})
	s.do(operator, &onboarding.HoldOwner{Ref: person, Reason: sealed()})
	s.do(operator, &onboarding.CreateEntitlement{Name: "Nothing", OwnerType: owner.PersonType, Approval: entitlement.Manual})
	s.do(client, &onboarding.CreateTrigger{Ref: person, EntitlementID: made[*onboarding.EntitlementCreated](s).ID})
	s.step()
	s.do(operator, &onboarding.EraseOwner{Ref: person, Reason: sealed()})
	s.do(operator, &onboarding.ReleaseOwner{Ref: person, Reason: sealed()})
	s.step()
	s.do(system, &onboarding.ConfirmKeyDestroyed{Ref: person, KeyID: "person/" + person.ID.String()})
	s.fold(decide.Recorded{Type: "engine.step", Actor: decide.Engine}, func() decide.Decision {
		s.do(operator, &onboarding.EraseOwner{Ref: corporate, Reason: sealed()})
		return s.state.SetAside(s.at, "it is broken")
	}())
}

// nextRules has the rules of version 2 of a replay be in force, and a delivery about an owner replayed by them, which says of itself
// what one of an erasure does.
func (s *story) nextRules() {
	s.activate(2)
	another := owner.Ref{Type: owner.PersonType, ID: id(3)}
	s.do(client, &onboarding.RegisterOwner{Ref: another, ExternalID: hash('a'), Fields: sealed()})
	s.do(operator, &onboarding.CreateEntitlement{Name: "Refused", OwnerType: owner.PersonType, Approval: entitlement.Manual})
	s.do(client, &onboarding.CreateTrigger{Ref: another, EntitlementID: made[*onboarding.EntitlementCreated](s).ID})
	trigger := made[*onboarding.TriggerCreated](s).ID
	s.step()
	s.act(trigger, entitlement.Reject, func(p *onboarding.ActOnTrigger) { p.Code = onboarding.OwnerErasedCode })
	sent := made[*onboarding.DeliveryCreated](s).ID
	s.do(system, &onboarding.RecordAttempt{ID: sent, Number: 1, Started: s.at.Time, StatusCode: 500})
	s.do(client, &onboarding.ReplayDelivery{ID: sent})
}
