package projectiontest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey/checkpointkeytest"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Registrar simulates the owner of the onboarding journal. It submits random commands to the real rules and collects
// the records, decoded from their JSON as a reader of the journal would. State is the fold of all Entries. The other
// lists contain the ids of all entities created.
type Registrar struct {
	State   *onboarding.State
	Entries []record.Entry

	Owners         []owner.Ref
	Documents      []scalar.ID
	Questionnaires []scalar.ID
	Entitlements   []scalar.ID
	Triggers       []scalar.ID
	Webhooks       []scalar.ID // including deleted ones
	Deliveries     []scalar.ID
	Refused        map[string]int // how often, by code

	t      testing.TB
	random *rand.Rand
	aside  *rand.Rand // for records that leave the random values of all others as they are
	venue  *Venue     // stamps, chains and wraps the records
	rules  decide.Rules
}

// NewRegistrar returns a registrar. Its journal is a function of the seed.
func NewRegistrar(t testing.TB, seed uint64) *Registrar {
	r := &Registrar{State: onboarding.NewState(), t: t, venue: NewVenue(seed), rules: onboarding.Rules(), random: rand.New(rand.NewPCG(seed, 7)),
		aside: rand.New(rand.NewPCG(seed, 8)), Refused: make(map[string]int)}
	r.keep(r.venue.Entry(record.TypeGenesis, decide.Engine, decide.Accepted, &record.Genesis{Journal: "onboarding", JournalID: r.venue.journal, Partitions: 1}),
		r.venue.Entry(record.TypeTermStarted, decide.Engine, decide.Accepted, &record.TermStarted{Term: 1, Node: "n"}))
	return r
}

// Tenants are the tenants of every registrar.
func Tenants() []string { return []string{"alpha", "beta"} }

func tenant(name string) decide.Actor { return decide.Actor{Sub: "user of " + name, Broker: name} }

var sender = decide.Actor{System: "sender"}

func (r *Registrar) keep(entries ...record.Entry) {
	for _, e := range entries {
		r.State.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		for _, event := range e.Record.Events {
			r.learn(event)
		}
	}
	r.Entries = append(r.Entries, entries...)
}

// learn collects the ids of created entities.
func (r *Registrar) learn(event decide.Event) {
	switch e := event.(type) {
	case *onboarding.OwnerRegistered:
		r.Owners = append(r.Owners, e.Ref)
	case *onboarding.DocumentAdded:
		r.Documents = append(r.Documents, e.Document.ID)
	case *onboarding.QuestionnaireCreated:
		r.Questionnaires = append(r.Questionnaires, e.ID)
	case *onboarding.EntitlementCreated:
		r.Entitlements = append(r.Entitlements, e.ID)
	case *onboarding.TriggerCreated:
		r.Triggers = append(r.Triggers, e.ID)
	case *onboarding.WebhookCreated:
		r.Webhooks = append(r.Webhooks, e.ID)
	case *onboarding.DeliveryCreated:
		r.Deliveries = append(r.Deliveries, e.ID)
	}
}

// Do decides a command and the due work that follows, and collects the records. A refusal leaves no record: Do returns
// its code.
func (r *Registrar) Do(actor decide.Actor, payload decide.Payload) (refused string) {
	r.t.Helper()
	d, err := r.State.Decide(r.venue.stamp(), decide.Command{ID: r.venue.id(), Type: payload.CommandType(), Actor: actor, Payload: payload})
	if refusal := new(decide.Refusal); errors.As(err, &refusal) {
		r.Refused[refusal.Code]++
		return refusal.Code
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.append(payload.CommandType(), actor, d)
	r.drain()
	return ""
}

// Pass advances the time and executes the work that becomes due.
func (r *Registrar) Pass(d scalar.Time) {
	r.t.Helper()
	r.venue.Pass(d)
	r.drain()
}

func (r *Registrar) drain() {
	r.t.Helper()
	for r.State.Due(r.venue.time) != decide.Nothing {
		r.append("engine.step", decide.Engine, r.State.Step(r.venue.stamp(), false))
	}
}

func (r *Registrar) append(kind string, actor decide.Actor, d decide.Decision) {
	r.t.Helper()
	r.keep(r.venue.decided(r.t, r.rules, kind, actor, d))
}

// Play submits n random commands. Halfway it activates the newest rules. At the end of a long history it also rotates and
// discloses the venue's secret, replaces a key of the transparency log, and has two persons decide: short ones are cut by their
// length, so that more records would change what they find.
func (r *Registrar) Play(n int) {
	r.t.Helper()
	for i := range n {
		for next := r.State.ActiveRules() + 1; i == n/2 && next <= r.rules.Newest(); next++ {
			r.Do(operator, &decide.ActivateRules{Rules: next})
		}
		if len(r.Owners) < 4 {
			r.register()
			continue
		}
		if len(r.Questionnaires) < 3 {
			r.ask()
			continue
		}
		if len(r.Entitlements) < 3 {
			r.define()
			continue
		}
		r.act()
	}
	if n >= 1000 {
		r.commit()
	}
}

// commit rotates the venue's secret and discloses all records, and governs. None of it draws from the random values of the other records.
func (r *Registrar) commit() {
	r.t.Helper()
	r.venue.random, r.aside = r.aside, r.venue.random
	defer func() { r.venue.random, r.aside = r.aside, r.venue.random }()
	schedule := r.State.Commitments()
	next := schedule.Generation() + 1
	r.Do(operator, &decide.RotateCommitment{Generation: next, Secret: fmt.Sprintf("%032x", next)})
	r.Do(operator, &decide.DiscloseCommitment{From: 0, To: r.venue.at.Sequence, Recipient: "Auditors"})
	r.govern()
}

// govern replaces the key of the transparency log, and ends proposals in each way. The retention stays the same.
func (r *Registrar) govern() {
	r.t.Helper()
	origin := checkpointkeytest.Origin("onboarding", r.venue.stamp().Journal)
	r.Do(operator, &decide.RotateCheckpointKey{Generation: 2, Previous: checkpointkeytest.Key(origin, 1), Key: checkpointkeytest.Key(origin, 2)})
	r.Do(operator, &decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 3600, Rules: []decide.PolicyRule{{Action: onboarding.CommandSetRetention}}}})
	supervisor := decide.Actor{Sub: "supervisor", Broker: "venue"}
	propose := func() scalar.ID {
		r.Do(operator, &onboarding.SetRetention{Seconds: int64(onboarding.DefaultRetention / scalar.Second)})
		all := r.State.Proposals()
		return all[len(all)-1].ID
	}
	r.Do(supervisor, &decide.RejectProposal{ID: propose(), Reason: "c2VhbGVk"})
	r.Do(operator, &decide.WithdrawProposal{ID: propose()})
	stale := propose()
	r.Do(supervisor, &decide.ConfirmProposal{ID: propose()})
	r.Do(supervisor, &decide.ConfirmProposal{ID: stale})
	propose()
}

// act submits one random command.
func (r *Registrar) act() {
	acts := []struct {
		weight int
		act    func()
	}{{6, r.register}, {5, r.changeOwner}, {7, r.upload}, {3, r.changeDocument}, {4, r.ask}, {6, r.changeQuestionnaire}, {3, r.define}, {3, r.redefine},
		{14, r.trigger}, {20, r.decide}, {25, r.answer}, {6, r.hook}, {8, r.changeHook}, {50, r.attempt}, {5, r.replay}, {6, r.end}, {4, r.wait}}
	all := 0
	for _, a := range acts {
		all += a.weight
	}
	n := r.random.IntN(all)
	for _, a := range acts {
		if n -= a.weight; n < 0 {
			a.act()
			return
		}
	}
}

// pick returns a random item of a list, which must not be empty.
func pick[T any](r *Registrar, of []T) T { return of[r.random.IntN(len(of))] }

// pickAny returns a random item of a list, or the zero value if the list is empty.
func pickAny[T any](r *Registrar, of []T) (v T) {
	if len(of) == 0 {
		return v
	}
	return pick(r, of)
}

// ID returns a new id.
func (r *Registrar) ID() scalar.ID { return r.venue.id() }

// Sealed returns something that looks like a ciphertext.
func (r *Registrar) Sealed() onboarding.Sealed { return r.bytes(8 + r.random.IntN(40)) }

func (r *Registrar) bytes(n int) []byte {
	b := make([]byte, (n+7)/8*8)
	for i := 0; i < len(b); i += 8 {
		binary.BigEndian.PutUint64(b[i:], r.random.Uint64())
	}
	return b[:n]
}

// client returns a client of the owner's tenant, and occasionally of another tenant.
func (r *Registrar) client(ref owner.Ref) decide.Actor {
	if o, known := r.State.Owner(ref); known && r.random.IntN(30) > 0 {
		return tenant(o.Tenant)
	}
	return tenant(pick(r, Tenants()))
}

func ownerTypes() []owner.Type { return []owner.Type{owner.PersonType, owner.CorporateType} }

func (r *Registrar) register() {
	r.Do(tenant(pick(r, Tenants())), &onboarding.RegisterOwner{Ref: owner.Ref{Type: pick(r, ownerTypes()), ID: r.ID()}, ExternalID: r.bytes(32), Fields: r.Sealed()})
}

func (r *Registrar) changeOwner() {
	ref := pick(r, r.Owners)
	o, _ := r.State.Owner(ref)
	r.Do(r.client(ref), &onboarding.ChangeOwner{Ref: ref, Revision: o.Revision, ExternalID: r.bytes(32), Fields: r.Sealed()})
}

func (r *Registrar) upload() {
	ref := pick(r, r.Owners)
	p := &onboarding.AddDocument{Ref: ref, ID: r.ID(), Category: "id_document", Orientation: pick(r, document.Orientations()), Name: r.Sealed(),
		Source: "files/" + r.ID().String(), SHA256: r.bytes(32), Size: 1 + r.random.Int64N(1000), Format: "pdf"}
	if r.random.IntN(2) == 0 {
		p.ValidUntil = r.venue.time + scalar.Time(r.random.Int64N(int64(60*scalar.Day)))
	}
	r.Do(r.client(ref), p)
}

func (r *Registrar) changeDocument() {
	id := pickAny(r, r.Documents)
	d, known := r.State.Document(id)
	if !known {
		return
	}
	until, category := r.venue.time+scalar.Time(r.random.Int64N(int64(60*scalar.Day))), document.Category("selfie")
	p := &onboarding.ChangeDocument{Ref: d.Ref, ID: id, ValidUntil: &until}
	if r.random.IntN(2) == 0 {
		p.Category = &category
	}
	r.Do(operator, p)
}

func (r *Registrar) ask() {
	p := &onboarding.CreateQuestionnaire{Name: fmt.Sprint("Questionnaire ", len(r.Questionnaires)), Description: "What we ask", OwnerType: pick(r, ownerTypes())}
	if r.random.IntN(5) == 0 {
		ref := pick(r, r.Owners)
		p.OwnerType, p.OwnerTypeID = ref.Type, ref.ID
	}
	if r.Do(operator, p) != "" {
		return
	}
	id := r.Questionnaires[len(r.Questionnaires)-1]
	r.addVersion(id)
	r.Do(operator, &onboarding.PublishQuestionnaire{ID: id})
}

func (r *Registrar) addVersion(id scalar.ID) {
	questions := []questionnaire.Question{
		{Label: "Why?", Value: "why", Type: questionnaire.Text, Position: 1},
		{Label: "Which?", Value: "which", Type: questionnaire.SingleChoice, IsOptional: true, Position: 2,
			Options: []questionnaire.Option{{Label: "This", Value: "this", Position: 1}, {Label: "That", Value: "that", Position: 2}}},
		{Label: "Show!", Value: "show", Type: questionnaire.Document, IsOptional: true, Position: 3},
	}
	r.Do(operator, &onboarding.AddVersion{QuestionnaireID: id, Questions: questions[:1+r.random.IntN(3)]})
}

func (r *Registrar) changeQuestionnaire() {
	id := pick(r, r.Questionnaires)
	switch r.random.IntN(6) {
	case 0:
		name := "Renamed " + r.ID().String()
		r.Do(operator, &onboarding.ChangeQuestionnaire{ID: id, Name: &name})
	case 1, 2:
		r.addVersion(id)
	case 3, 4:
		r.Do(operator, &onboarding.PublishQuestionnaire{ID: id, Number: r.random.IntN(3)})
	case 5:
		r.Do(operator, &onboarding.UnpublishQuestionnaire{ID: id})
	}
}

// items returns up to three of the questionnaires for a type of owner.
func (r *Registrar) items(of owner.Type) []entitlement.Item {
	items := []entitlement.Item{}
	for _, i := range r.random.Perm(len(r.Questionnaires)) {
		q, _, _ := r.State.Questionnaire(r.Questionnaires[i])
		if len(items) < 3 && q.OwnerType == of && q.IsGeneric() {
			items = append(items, entitlement.Item{QuestionnaireID: q.ID, Position: len(items) + 1})
		}
	}
	return items
}

func (r *Registrar) define() {
	of := pick(r, ownerTypes())
	p := &onboarding.CreateEntitlement{Name: fmt.Sprint("Entitlement ", len(r.Entitlements)), Description: "What it is for", OwnerType: of, Questionnaires: r.items(of),
		Approval: pick(r, []entitlement.Approval{entitlement.Automatic, entitlement.Manual}), VideoIdentification: r.random.IntN(3) == 0,
		OpensTradingAccount: r.random.IntN(2) == 0}
	if r.random.IntN(3) == 0 {
		p.DeadlineSeconds = 1 + r.random.Int64N(40*24*3600)
	}
	r.Do(operator, p)
}

func (r *Registrar) redefine() {
	e, _ := r.State.Entitlement(pick(r, r.Entitlements))
	name := "Changed " + r.ID().String()
	r.Do(operator, &onboarding.ChangeEntitlement{ID: e.ID, Name: &name, Questionnaires: r.items(e.OwnerType)})
}

func (r *Registrar) trigger() {
	ref := pick(r, r.Owners)
	r.Do(r.client(ref), &onboarding.CreateTrigger{Ref: ref, EntitlementID: pick(r, r.Entitlements)})
}

// decide acts on a trigger.
func (r *Registrar) decide() {
	p := &onboarding.ActOnTrigger{ID: pickAny(r, r.Triggers), Action: pick(r, entitlement.Actions()[1:]), Code: "CODE", Reason: r.Sealed()}
	if r.random.IntN(2) == 0 {
		p.InternalReason = r.Sealed()
	}
	switch p.Action {
	case entitlement.RequestInformation:
		p.Questionnaires = []scalar.ID{pick(r, r.Questionnaires)}
	case entitlement.CompleteVideoIdentification:
		p.Outcome, p.ExternalReference = pick(r, []onboarding.Outcome{onboarding.Passed, onboarding.Passed, onboarding.NotPassed}), r.Sealed()
	}
	r.Do(operator, p)
}

// answer responds to a questionnaire that a trigger is waiting for, or else to any questionnaire.
func (r *Registrar) answer() {
	ref, about := pick(r, r.Owners), pick(r, r.Questionnaires)
	if t, known := r.State.Trigger(pickAny(r, r.Triggers)); known && len(t.Open) > 0 && len(t.Open[0].Questionnaires) > 0 {
		ref, about = t.Ref, pick(r, t.Open[0].Questionnaires)
	}
	_, v, _ := r.State.Questionnaire(about)
	if v == nil {
		return
	}
	p := &onboarding.AddResponse{Ref: ref, QuestionnaireID: about, VersionID: v.ID, Answers: r.Sealed()}
	for _, q := range v.Questions {
		g := onboarding.Given{QuestionID: q.ID, Field: q.Type.AnswerField()}
		if q.Type == questionnaire.Document {
			d, known := r.State.Document(pickAny(r, r.Documents))
			for i := 0; i < len(r.Documents) && (!known || d.Ref != ref); i++ {
				d, known = r.State.Document(r.Documents[i])
			}
			if !known || d.Ref != ref {
				continue
			}
			g.Documents = []scalar.ID{d.ID}
		}
		p.Given = append(p.Given, g)
	}
	r.Do(r.client(ref), p)
}

// SigningKey returns a key for a webhook.
func (r *Registrar) SigningKey() onboarding.SigningKey {
	return onboarding.SigningKey{KeyID: r.ID().String(), Public: r.bytes(32), Private: r.Sealed()}
}

func (r *Registrar) hook() {
	p := &onboarding.CreateWebhook{ID: r.ID(), URL: "https://receiver.example/" + r.ID().String(), All: r.random.IntN(3) > 0, Key: r.SigningKey()}
	if !p.All {
		p.Types = []webhook.EventType{webhook.Test, webhook.RequirementsQuestionnaire}
	}
	if gone := pickAny(r, r.Webhooks); !gone.IsZero() && r.random.IntN(4) == 0 { // the id of a deleted webhook may be used again
		p.ID = gone
	}
	r.Do(tenant(pick(r, Tenants())), p)
}

func (r *Registrar) changeHook() {
	w, known := r.State.Webhook(pickAny(r, r.Webhooks))
	if !known {
		return
	}
	by := tenant(w.Tenant)
	switch r.random.IntN(8) {
	case 0:
		r.Do(by, &onboarding.DeleteWebhook{ID: w.ID})
	case 1, 2:
		r.Do(by, &onboarding.RotateWebhook{ID: w.ID, Key: r.SigningKey(), Overlap: scalar.Time(r.random.Int64N(int64(scalar.Day)))})
	case 3, 4:
		r.Do(by, &onboarding.EnableWebhook{ID: w.ID})
	default:
		r.Do(by, &onboarding.TestWebhook{ID: w.ID})
	}
}

// attempt records an attempt at one of the latest deliveries. The simulated receiver's status depends on the webhook,
// so that some webhooks fail for a long time.
func (r *Registrar) attempt() {
	recent := r.Deliveries[max(0, len(r.Deliveries)-30):]
	v, known := r.State.Delivery(pickAny(r, recent))
	if !known {
		return
	}
	p := &onboarding.RecordAttempt{ID: v.ID, Number: v.Attempts + 1, Started: r.venue.time, DurationMS: r.random.Int64N(15_000), StatusCode: 200,
		Schedule: webhook.Schedule{scalar.Second, scalar.Minute}}
	if v.WebhookID[0]%2 == 0 && r.random.IntN(10) > 0 {
		p.StatusCode = pick(r, []int{0, 500, 410})
	}
	if p.StatusCode == 0 {
		p.Error = "connection refused"
	} else if o, known := r.State.Owner(v.Ref); known && (o.State != owner.Erased || !r.confirmed(v.Ref)) {
		p.Reply = r.Sealed()
	}
	r.Do(sender, p)
}

// confirmed reports whether the owner's key is known to be destroyed. Nothing can be sealed with it after that.
func (r *Registrar) confirmed(ref owner.Ref) bool {
	e, known := r.State.Erasure(ref)
	return known && e.KeyID != ""
}

func (r *Registrar) replay() {
	v, known := r.State.Delivery(pickAny(r, r.Deliveries))
	if !known {
		return
	}
	if r.random.IntN(2) == 0 {
		r.Do(operator, &onboarding.ReplayDelivery{ID: v.ID, Operator: true})
		return
	}
	r.Do(tenant(v.Tenant), &onboarding.ReplayDelivery{ID: v.ID})
}

// end takes a step towards the erasure of an owner.
func (r *Registrar) end() {
	ref := pick(r, r.Owners)
	switch r.random.IntN(6) {
	case 0, 1:
		r.Do(operator, &onboarding.EraseOwner{Ref: ref, Reason: r.Sealed()})
	case 2, 3:
		for _, held := range r.Owners {
			if r.State.Held(held) && r.random.IntN(2) == 0 {
				r.Do(operator, &onboarding.ReleaseOwner{Ref: held, Reason: r.Sealed()})
				return
			}
		}
		r.Do(operator, &onboarding.HoldOwner{Ref: ref, Reason: r.Sealed()})
	case 4:
		r.Do(operator, &onboarding.SetRetention{Seconds: pick(r, []int64{0, 3600, 30 * 24 * 3600})})
	case 5:
		for _, ref := range r.Owners {
			if o, _ := r.State.Owner(ref); o.State == owner.Erased && !r.confirmed(ref) {
				r.Do(decide.Actor{System: "keys"}, &onboarding.ConfirmKeyDestroyed{Ref: ref, KeyID: r.ID().String()})
			}
		}
	}
}

func (r *Registrar) wait() {
	r.Pass(pick(r, []scalar.Time{scalar.Second, scalar.Hour, scalar.Day, 6 * scalar.Day}))
}
