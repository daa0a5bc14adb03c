package onboarding

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// RecordLimit is the greatest size of a record's value in bytes. A response of 1 MiB in the clear fits after sealing.
const RecordLimit = 3 << 20

// rulesSupported is the highest number of rules that this build supports.
const rulesSupported = 3

// Rules returns the rules of the onboarding journal.
func Rules() decide.Rules { return rules{} }

type rules struct{}

func (rules) Journal() string        { return "onboarding" }
func (rules) NewState() decide.State { return NewState() }
func (rules) Limit() int             { return RecordLimit }
func (rules) Newest() int            { return rulesSupported }
func (rules) Registry() *decide.Registry {
	r := decide.NewRegistry()
	r.Add(func() decide.Event { return new(Step) })
	r.Add(func() decide.Event { return new(OwnerRegistered) })
	r.Add(func() decide.Event { return new(OwnerChanged) })
	r.Add(func() decide.Event { return new(DocumentAdded) })
	r.Add(func() decide.Event { return new(DocumentChanged) })
	r.Add(func() decide.Event { return new(QuestionnaireCreated) })
	r.Add(func() decide.Event { return new(QuestionnaireChanged) })
	r.Add(func() decide.Event { return new(VersionAdded) })
	r.Add(func() decide.Event { return new(QuestionnairePublished) })
	r.Add(func() decide.Event { return new(QuestionnaireUnpublished) })
	r.Add(func() decide.Event { return new(ResponseAdded) })
	r.Add(func() decide.Event { return new(EntitlementCreated) })
	r.Add(func() decide.Event { return new(EntitlementChanged) })
	r.Add(func() decide.Event { return new(TriggerCreated) })
	r.Add(func() decide.Event { return new(TriggerMoved) })
	r.Add(func() decide.Event { return new(RequirementsChanged) })
	r.Add(func() decide.Event { return new(NoticeGiven) })
	r.Add(func() decide.Event { return new(WebhookCreated) })
	r.Add(func() decide.Event { return new(WebhookDeleted) })
	r.Add(func() decide.Event { return new(RotationBegun) })
	r.Add(func() decide.Event { return new(WebhookRotated) })
	r.Add(func() decide.Event { return new(WebhookEnabled) })
	r.Add(func() decide.Event { return new(WebhookDisabled) })
	r.Add(func() decide.Event { return new(DeliveryCreated) })
	r.Add(func() decide.Event { return new(DeliveryAttempted) })
	r.Add(func() decide.Event { return &DeliveryReplayed{Reopened: new(Reopened)} })
	r.AddUpcaster(TypeDeliveryReplayed, 1, readReplayed1)
	r.Add(func() decide.Event { return new(RetentionSet) })
	r.Add(func() decide.Event { return new(OwnerRestricted) })
	r.Add(func() decide.Event { return new(OwnerHeld) })
	r.Add(func() decide.Event { return new(OwnerReleased) })
	r.Add(func() decide.Event { return new(OwnerErased) })
	r.Add(func() decide.Event { return new(KeyDestroyed) })
	return r
}

// State is the fold of the onboarding journal. The objects that its methods return are shared: callers MUST NOT change
// them.
//
// The state contains no sealed data of owners, since the rules could not use it.
type State struct {
	core       decide.Core
	owners     map[scalar.ID]*file
	ownerOrder []scalar.ID // in the order of registration
	external   map[external]scalar.ID
	documents  map[scalar.ID]*Document

	questionnaires     map[scalar.ID]*asked
	questionnaireOrder []scalar.ID // in the order of creation
	entitlements       map[scalar.ID]*entitlement.Definition
	entitlementOrder   []scalar.ID
	triggers           map[scalar.ID]scalar.ID // the owner of each trigger
	// required counts, for each questionnaire, the open triggers that wait for a response.
	required map[scalar.ID]int

	webhooks   map[scalar.ID]*Webhook
	hooksOf    map[string][]scalar.ID // of a tenant, in the order of creation
	deliveries map[scalar.ID]*Delivery
	openOf     map[scalar.ID]map[scalar.ID]bool // the open deliveries of each webhook
	closed     closedDeliveries
	made       int64 // the number of deliveries created so far

	retention scalar.Time // a duration
	due       dueList
}

// NewState returns the state before genesis.
func NewState() *State {
	return &State{core: decide.NewCore(rulesSupported), owners: make(map[scalar.ID]*file), external: make(map[external]scalar.ID),
		documents: make(map[scalar.ID]*Document), questionnaires: make(map[scalar.ID]*asked),
		entitlements: make(map[scalar.ID]*entitlement.Definition), triggers: make(map[scalar.ID]scalar.ID), required: make(map[scalar.ID]int),
		webhooks: make(map[scalar.ID]*Webhook), hooksOf: make(map[string][]scalar.ID), deliveries: make(map[scalar.ID]*Delivery),
		openOf: make(map[scalar.ID]map[scalar.ID]bool), closed: closedDeliveries{keep: keptClosed}, retention: DefaultRetention, due: newDueList()}
}

// Evolve applies one valid record. The state shares no memory with events, since others read them concurrently.
func (s *State) Evolve(at decide.Stamp, c decide.Recorded, _ decide.Outcome, events []decide.Event) {
	s.core.Evolve(at, c, events)
	for n, e := range events {
		switch e := e.(type) {
		case *OwnerRegistered:
			s.setOwner(e.Owner.clone())
		case *OwnerChanged:
			s.setOwner(e.Owner.clone())
		case *DocumentAdded:
			s.addDocument(at.Time, e.Document.clone())
		case *DocumentChanged:
			s.changeDocument(e)
		case *ResponseAdded:
			s.apply(at, e.Ref, e)
		case *TriggerCreated:
			s.apply(at, e.Ref, e)
			s.createTrigger(e)
		case *TriggerMoved:
			s.follow(at, e.Ref, e.ID, e)
			s.scheduleTrigger(e)
		case *RequirementsChanged:
			s.follow(at, e.Ref, e.ID, e)
		case *NoticeGiven:
			s.apply(at, e.Ref, e)
			s.noteNotice(&e.Notice)
		case *decide.DueSetAside:
			s.due.setAside(e.Entry, e.Error)
		case *decide.DuePutBack:
			s.due.putBack(e.Entry)
		default:
			s.evolveErasure(at, e)
			s.evolveCatalogue(Place{at.Sequence, int64(n)}, e)
		}
	}
	s.forget()
}

// evolveCatalogue applies an event about questionnaires or entitlements.
func (s *State) evolveCatalogue(at Place, e decide.Event) {
	switch e := e.(type) {
	case *QuestionnaireCreated:
		s.setQuestionnaire(e.Questionnaire)
	case *QuestionnaireChanged:
		s.setQuestionnaire(e.Questionnaire)
	case *VersionAdded:
		s.addVersion(e.Version)
	case *QuestionnairePublished:
		s.publish(e)
	case *QuestionnaireUnpublished:
		s.unpublish(e)
	case *EntitlementCreated:
		s.setEntitlement(e.Definition)
	case *EntitlementChanged:
		s.setEntitlement(e.Definition)
	default:
		s.evolveWebhooks(at, e)
	}
}

// ActiveRules returns the number of the rules in force.
func (s *State) ActiveRules() int { return s.core.ActiveRules() }

// Remembers implements decide.Remembering.
func (s *State) Remembers(broker, command, key string) bool {
	return s.core.Remembers(broker, command, key)
}
