package onboarding

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// RecordLimit is the greatest size of a record's value in bytes. A response of 1 MiB in the clear fits after sealing.
const RecordLimit = 3 << 20

// rulesSupported is the highest number of rules that this build supports.
const rulesSupported = rulesOfReasons

// Rules returns the rules of the onboarding journal.
func Rules() decide.Rules { return rules{} }

type rules struct{}

func (rules) Journal() string            { return "onboarding" }
func (rules) NewState() decide.State     { return NewState() }
func (rules) Limit() int                 { return RecordLimit }
func (rules) Newest() int                { return rulesSupported }
func (rules) Registry() *decide.Registry { return eventTable.Registry() }

// State is the fold of the onboarding journal. The objects that its methods return are shared: callers MUST NOT change
// them.
//
// The state contains no sealed data of owners, since the rules could not use it.
type State struct {
	decide.Facts
	core       decide.Core
	owners     map[scalar.ID]*file
	ownerOrder []scalar.ID // in the order of registration
	external   map[external]scalar.ID
	documents  map[scalar.ID]*Document

	questionnaires     map[scalar.ID]*versioned
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
	s := &State{core: decide.NewCore(decide.Numbers{Newest: rulesSupported, Commitments: rulesOfInputs, FourEyes: rulesOfFourEyes, Reasons: rulesOfReasons, CheckpointKeys: rulesOfFourEyes}), owners: make(map[scalar.ID]*file), external: make(map[external]scalar.ID),
		documents: make(map[scalar.ID]*Document), questionnaires: make(map[scalar.ID]*versioned),
		entitlements: make(map[scalar.ID]*entitlement.Definition), triggers: make(map[scalar.ID]scalar.ID), required: make(map[scalar.ID]int),
		webhooks: make(map[scalar.ID]*Webhook), hooksOf: make(map[string][]scalar.ID), deliveries: make(map[scalar.ID]*Delivery),
		openOf: make(map[scalar.ID]map[scalar.ID]bool), closed: closedDeliveries{keep: keptClosed}, retention: DefaultRetention, due: newDueList()}
	s.Facts = &s.core
	return s
}

// Evolve applies one valid record. The state shares no memory with events, since others read them concurrently.
func (s *State) Evolve(at decide.Stamp, c decide.Recorded, _ decide.Outcome, events []decide.Event) {
	s.core.Touch(at, events, touched)
	s.core.Evolve(at, c, events)
	f := &fold{State: s, at: at}
	for n, e := range events {
		f.position = EventPosition{at.Sequence, int64(n)}
		eventTable.Apply(f, e)
	}
	s.forget()
}

// fold applies one record to the state.
type fold struct {
	*State
	at       decide.Stamp
	position EventPosition // of the event that is being applied
}

// eventTable is the table of the journal's events.
var eventTable = decide.NewEvents(
	decide.Unapplied[*fold, Step](),
	decide.On((*fold).ownerRegistered),
	decide.On((*fold).ownerChanged),
	decide.On((*fold).documentAdded),
	decide.On((*fold).documentChanged),
	decide.On((*fold).questionnaireCreated),
	decide.On((*fold).questionnaireChanged),
	decide.On((*fold).versionAdded),
	decide.On((*fold).questionnairePublished),
	decide.On((*fold).questionnaireUnpublished),
	decide.On((*fold).responseAdded),
	decide.On((*fold).entitlementCreated),
	decide.On((*fold).entitlementChanged),
	decide.On((*fold).triggerCreated),
	decide.On((*fold).triggerMoved),
	decide.On((*fold).requirementsChanged),
	decide.On((*fold).noticeGiven),
	decide.On((*fold).webhookCreated),
	decide.On((*fold).webhookDeleted),
	decide.On((*fold).rotationBegun),
	decide.On((*fold).webhookRotated),
	decide.On((*fold).webhookEnabled),
	decide.On((*fold).webhookDisabled),
	decide.On((*fold).deliveryCreated),
	decide.On((*fold).deliveryAttempted),
	decide.On((*fold).deliveryReplayed).Zero(func() decide.Event { return &DeliveryReplayed{Reopened: new(Reopened)} }),
	decide.Old[*fold](TypeDeliveryReplayed, 1, readReplayed1),
	decide.On((*fold).retentionSet),
	decide.On((*fold).ownerRestricted),
	decide.On((*fold).ownerHeld),
	decide.On((*fold).ownerReleased),
	decide.On((*fold).ownerErased),
	decide.On((*fold).keyDestroyed),
	decide.On((*fold).dueSetAside),
	decide.On((*fold).duePutBack),
)

func (f *fold) ownerRegistered(e *OwnerRegistered) { f.setOwner(e.Owner.clone()) }

func (f *fold) ownerChanged(e *OwnerChanged) { f.setOwner(e.Owner.clone()) }

func (f *fold) documentAdded(e *DocumentAdded) { f.addDocument(f.at.Time, e.Document.clone()) }

func (f *fold) responseAdded(e *ResponseAdded) { f.apply(f.at, e.Ref, e) }

func (f *fold) triggerCreated(e *TriggerCreated) {
	f.apply(f.at, e.Ref, e)
	f.createTrigger(e)
}

func (f *fold) triggerMoved(e *TriggerMoved) {
	f.follow(f.at, e.Ref, e.ID, e)
	f.scheduleTrigger(e)
}

func (f *fold) requirementsChanged(e *RequirementsChanged) { f.follow(f.at, e.Ref, e.ID, e) }

func (f *fold) noticeGiven(e *NoticeGiven) {
	f.apply(f.at, e.Ref, e)
	f.noteNotice(&e.Notice)
}

func (f *fold) questionnaireCreated(e *QuestionnaireCreated) { f.setQuestionnaire(e.Questionnaire) }

func (f *fold) questionnaireChanged(e *QuestionnaireChanged) { f.setQuestionnaire(e.Questionnaire) }

func (f *fold) versionAdded(e *VersionAdded) { f.addVersion(e.Version) }

func (f *fold) entitlementCreated(e *EntitlementCreated) { f.setEntitlement(e.Definition) }

func (f *fold) entitlementChanged(e *EntitlementChanged) { f.setEntitlement(e.Definition) }

func (f *fold) dueSetAside(e *decide.DueSetAside) { f.due.setAside(e.Entry, e.Error) }

func (f *fold) duePutBack(e *decide.DuePutBack) { f.due.putBack(e.Entry) }
