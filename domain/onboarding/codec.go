package onboarding

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/document/format"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// codecVersion is the number of the form that this file writes and reads. It is raised with every change of it, and of
// what a State holds: TestTheFormIsThatOfItsVersion says when.
const codecVersion = 5

// Codec writes and reads states of the onboarding journal.
func Codec() decide.StateCodec { return stateCodec{} }

type stateCodec struct{}

// Version implements decide.StateCodec.
func (stateCodec) Version() int { return codecVersion }

// about how many bytes things take.
const (
	ownerSize   = 400
	smallSize   = 150
	versionSize = 10_000
)

// Size implements decide.StateCodec.
func (stateCodec) Size(state decide.State) int {
	s := state.(*State)
	return (len(s.owners)+len(s.triggers))*ownerSize + (len(s.documents)+len(s.deliveries)+len(s.webhooks)+len(s.entitlements))*smallSize +
		len(s.questionnaires)*versionSize + pack.Size(s.core.Visit)
}

// Append implements decide.StateCodec.
func (stateCodec) Append(b []byte, state decide.State) []byte {
	s, w := state.(*State), &packer{pack.Writer{Bytes: b}}
	w.Len(len(s.ownerOrder))
	for _, id := range s.ownerOrder {
		w.file(s, s.owners[id])
	}
	w.Len(len(s.questionnaireOrder))
	for _, id := range s.questionnaireOrder {
		w.questionnaire(s.questionnaires[id])
	}
	w.Len(len(s.entitlementOrder))
	for _, id := range s.entitlementOrder {
		w.definition(s.entitlements[id])
	}
	tenants := slices.Sorted(maps.Keys(s.hooksOf))
	w.Len(len(tenants))
	for _, tenant := range tenants {
		w.Len(len(s.hooksOf[tenant]))
		for _, hook := range s.Webhooks(tenant) {
			w.webhook(hook)
		}
	}
	for _, deliveries := range [][]*Delivery{s.OpenDeliveries(), s.closedInOrder()} {
		w.Len(len(deliveries))
		each(deliveries, w.delivery)
	}
	w.Int(s.closed.forgotten)
	w.Int(s.made)
	w.Int(int64(s.retention))
	w.due(&s.due)
	w.Visit(s.core.Visit)
	return w.Bytes
}

func compareIDs(a, b scalar.ID) int { return bytes.Compare(a[:], b[:]) }

// packer writes what states are made of.
type packer struct{ pack.Writer }

func (w *packer) id(id scalar.ID)     { w.Raw(id[:]) }
func (w *packer) time(t scalar.Time)  { w.Int(int64(t)) }
func (w *packer) bytes(b []byte)      { w.String(string(b)) }
func (w *packer) ref(r owner.Ref)     { w.Word(string(r.Type)); w.id(r.ID) }
func (w *packer) ids(ids []scalar.ID) { w.Len(len(ids)); each(ids, w.id) }

func each[T any](all []T, write func(T)) {
	for _, one := range all {
		write(one)
	}
}

func (w *packer) file(s *State, f *file) {
	o := f.owner
	w.ref(o.Ref)
	w.Word(o.Tenant)
	w.bytes(o.ExternalID)
	w.Int(o.Revision)
	w.Word(string(o.State))
	w.time(o.Created)
	w.time(o.Updated)
	w.Len(len(f.documents))
	for _, id := range f.documents {
		w.document(s.documents[id])
	}
	w.Len(len(f.answered))
	for _, id := range slices.SortedFunc(maps.Keys(f.answered), compareIDs) {
		w.id(id)
		w.Int(int64(f.answered[id].Version))
		w.Int(f.answered[id].Sequence)
	}
	w.Len(len(f.triggers))
	each(f.triggers, w.trigger)
	w.Int(f.notices)
	w.Bool(f.held)
	w.Bool(f.erasure != nil)
	if x := f.erasure; x != nil {
		w.time(x.RequestedAt)
		w.String(x.RequestedBy)
		w.bytes(x.Reason)
		w.time(x.RetainUntil)
		w.time(x.ErasedAt)
		w.String(x.KeyID)
		w.time(x.KeyDestroyed)
		w.Len(len(x.Positions))
		each(x.Positions, w.Int)
	}
}

func (w *packer) document(k *Document) {
	w.id(k.ID)
	w.Word(string(k.Category))
	w.Word(string(k.Orientation))
	w.String(k.Source)
	w.bytes(k.SHA256)
	w.Int(k.Size)
	w.Word(string(k.Format))
	w.time(k.ValidUntil)
	w.time(k.Created)
}

func (w *packer) trigger(t *Trigger) {
	w.id(t.ID)
	w.id(t.EntitlementID)
	w.Word(string(t.Status))
	w.Word(string(t.Result))
	w.time(t.Created)
	w.time(t.Updated)
	w.time(t.Deadline)
	w.Int(t.Moved)
	w.Word(t.Terms.Name)
	w.Word(string(t.Terms.Approval))
	w.Bool(t.Terms.OpensTradingAccount)
	w.Len(len(t.Needs.Pinned))
	for _, p := range t.Needs.Pinned {
		w.id(p.QuestionnaireID)
		w.Int(int64(p.Version))
	}
	w.Len(len(t.Needs.Requests))
	for _, r := range t.Needs.Requests {
		w.id(r.ID)
		w.Int(r.Sequence)
		w.ids(r.Questionnaires)
	}
	w.Bool(t.Needs.VideoPlanned)
	w.Word(string(t.Needs.Video))
	w.Int(t.Needs.VideoSequence)
	w.Bool(t.Open != nil)
	w.Len(len(t.Open))
	for _, r := range t.Open {
		w.Word(string(r.Source))
		w.id(r.Request)
		w.Int(r.Sequence)
		w.ids(r.Questionnaires)
	}
}

func (w *packer) questionnaire(q *asked) {
	w.id(q.ID)
	w.String(q.Name)
	w.String(q.Description)
	w.Word(string(q.OwnerType))
	w.id(q.OwnerTypeID)
	w.Bool(q.IsPublished)
	w.time(q.Created)
	w.Len(len(q.versions))
	for i, v := range q.versions {
		w.Bool(q.published[i])
		w.id(v.ID)
		w.time(v.Created)
		w.Len(len(v.Questions))
		for _, one := range v.Questions {
			w.id(one.ID)
			w.String(one.Label)
			w.String(one.Value)
			w.Word(string(one.Type))
			w.Bool(one.IsOptional)
			w.Int(int64(one.Position))
			w.Len(len(one.Options))
			for _, o := range one.Options {
				w.id(o.ID)
				w.String(o.Label)
				w.String(o.Value)
				w.Int(int64(o.Position))
			}
		}
	}
}

func (w *packer) definition(e *entitlement.Definition) {
	w.id(e.ID)
	w.String(e.Name)
	w.String(e.Description)
	w.Word(string(e.OwnerType))
	w.Len(len(e.Questionnaires))
	for _, item := range e.Questionnaires {
		w.id(item.QuestionnaireID)
		w.Int(int64(item.Position))
	}
	w.Word(string(e.Approval))
	w.Bool(e.VideoIdentification)
	w.Int(e.DeadlineSeconds)
	w.Bool(e.OpensTradingAccount)
	w.time(e.Created)
	w.time(e.Updated)
}

func (w *packer) key(k SigningKey) {
	w.String(k.KeyID)
	w.bytes(k.Public)
	w.bytes(k.Private)
}

func (w *packer) webhook(h *Webhook) {
	w.id(h.ID)
	w.Word(h.Tenant)
	w.String(h.URL)
	w.Bool(h.All)
	w.Len(len(h.Types))
	for _, t := range h.Types {
		w.Word(string(t))
	}
	w.key(h.Key)
	w.Bool(h.Next != nil)
	if h.Next != nil {
		w.key(*h.Next)
	}
	w.time(h.NextFrom)
	w.time(h.Created)
	w.time(h.Disabled)
	w.time(h.Failing)
}

func (w *packer) delivery(v *Delivery) {
	w.id(v.ID)
	w.id(v.WebhookID)
	w.id(v.NoticeID)
	w.Word(v.Tenant)
	w.ref(v.Ref)
	w.Bool(v.Final)
	w.Word(string(v.Status))
	w.Int(int64(v.Attempts))
	w.Int(int64(v.Before))
	w.time(v.NextAttempt)
	w.Int(v.Made.Sequence)
	w.Int(v.Made.Ordinal)
	w.Int(v.Closed)
}

func (w *packer) due(l *dueList) {
	sorted := slices.SortedFunc(slices.Values(l.heap), (*dueEntry).compare)
	for _, entries := range [][]*dueEntry{sorted, l.aside} {
		w.Len(len(entries))
		for _, e := range entries {
			w.Byte(byte(e.kind))
			w.id(e.about)
			w.time(e.time)
			w.String(e.cause)
		}
	}
}

// unpacker reads what packer wrote.
type unpacker struct{ *pack.Reader }

func (r unpacker) id() (id scalar.ID) { r.Raw(id[:]); return id }
func (r unpacker) time() scalar.Time  { return scalar.Time(r.Int()) }
func (r unpacker) ref() owner.Ref     { return owner.Ref{Type: owner.Type(r.Word()), ID: r.id()} }
func (r unpacker) ids() []scalar.ID   { return list(r, idSize, r.id) }

// bytes returns nil for none.
func (r unpacker) bytes() []byte {
	if s := r.String(); s != "" {
		return []byte(s)
	}
	return nil
}

const idSize = len(scalar.ID{})

// list reads a list of what takes at least so many bytes each; nil for an empty one.
func list[T any](r unpacker, size int, read func() T) []T {
	var out []T
	for range r.Len(size) {
		out = append(out, read())
	}
	return out
}

// Read implements decide.StateCodec.
func (stateCodec) Read(b []byte) (decide.State, error) {
	s, r := NewState(), unpacker{pack.NewReader(b)}
	for range r.Len(idSize) {
		r.file(s)
	}
	for range r.Len(idSize) {
		r.questionnaire(s)
	}
	for range r.Len(idSize) {
		e := r.definition()
		r.refuse(s.entitlements[e.ID] != nil)
		s.entitlements[e.ID] = e
		s.entitlementOrder = append(s.entitlementOrder, e.ID)
	}
	for range r.Len(1) {
		for range r.Len(idSize) {
			w := r.webhook()
			r.refuse(s.webhooks[w.ID] != nil)
			s.addWebhook(w)
		}
	}
	r.deliveries(s)
	s.made = r.Int()
	s.retention = r.time()
	r.due(s)
	r.Visit(s.core.Visit)
	r.refuse(r.Err() == nil && !s.coherent())
	if err := r.Done(); err != nil {
		return nil, fmt.Errorf("onboarding: %w", err)
	}
	return s, nil
}

// coherent reports whether all that is named is there: rules take that for granted.
func (s *State) coherent() bool {
	for _, f := range s.owners {
		if (f.owner.State == owner.Active) != (f.erasure == nil) {
			return false
		}
		for _, t := range f.triggers {
			if s.entitlements[t.EntitlementID] == nil {
				return false
			}
		}
	}
	for _, e := range s.entitlements {
		for _, item := range e.Questionnaires {
			if s.questionnaires[item.QuestionnaireID] == nil {
				return false
			}
		}
	}
	for hook := range s.openOf {
		if s.webhooks[hook] == nil {
			return false
		}
	}
	for k := range s.due.known {
		if !s.concerns(k) {
			return false
		}
	}
	return true
}

// concerns reports whether what due work is about is there, and as the work takes it to be.
func (s *State) concerns(k dueKey) bool {
	switch k.kind {
	case dueStart:
		t, known := s.Trigger(k.about)
		return known && t.Status == entitlement.Pending
	case dueDeadline:
		t, known := s.Trigger(k.about)
		return known && t.Status.IsOpen()
	case dueDocument:
		return s.documents[k.about] != nil
	case dueRotation:
		w := s.webhooks[k.about]
		return w != nil && w.Next != nil
	}
	f := s.owners[k.about]
	return f != nil && f.owner.State == owner.Restricted
}

// refuse fails the reader if what it read is there already, or otherwise cannot be.
func (r unpacker) refuse(wrong bool) {
	if wrong {
		r.Fail(pack.ErrForm)
	}
}

func (r unpacker) file(s *State) {
	o := &Owner{Ref: r.ref(), Tenant: r.Word(), ExternalID: r.bytes(), Revision: r.Int(), State: owner.State(r.Word()), Created: r.time(), Updated: r.time()}
	_, taken := s.external[externalKey(o)]
	r.refuse(s.owners[o.ID] != nil || o.ExternalID != nil && (taken || len(o.ExternalID) != sha256.Size))
	s.setOwner(o)
	f := s.owners[o.ID]
	for range r.Len(idSize) {
		k := r.document(o.Ref)
		r.refuse(s.documents[k.ID] != nil)
		s.documents[k.ID] = k
		f.documents = append(f.documents, k.ID)
	}
	for range r.Len(idSize) {
		f.answered[r.id()] = entitlement.Answered{Version: r.Small(), Sequence: r.Int()}
	}
	for range r.Len(idSize) {
		t := r.trigger(o.Ref)
		_, known := s.triggers[t.ID]
		r.refuse(known)
		f.triggers = append(f.triggers, t)
		s.triggers[t.ID] = o.ID
		for _, q := range t.requires() {
			s.required[q]++
		}
	}
	f.notices, f.held = r.Int(), r.Bool()
	if r.Bool() {
		f.erasure = &Erasure{RequestedAt: r.time(), RequestedBy: r.String(), Reason: r.bytes(), RetainUntil: r.time(), ErasedAt: r.time(),
			KeyID: r.String(), KeyDestroyed: r.time(), Positions: list(r, 1, r.Int)}
	}
}

func (r unpacker) document(ref owner.Ref) *Document {
	return &Document{ID: r.id(), Ref: ref, Category: document.Category(r.Word()), Orientation: document.Orientation(r.Word()), Source: r.String(),
		SHA256: r.bytes(), Size: r.Int(), Format: format.Format(r.Word()), ValidUntil: r.time(), Created: r.time()}
}

func (r unpacker) trigger(ref owner.Ref) *Trigger {
	t := &Trigger{ID: r.id(), EntitlementID: r.id(), Ref: ref, Status: entitlement.Status(r.Word()), Result: entitlement.Result(r.Word()),
		Created: r.time(), Updated: r.time(), Deadline: r.time(), Moved: r.Int()}
	t.Terms = Terms{Name: r.Word(), Approval: entitlement.Approval(r.Word()), OpensTradingAccount: r.Bool()}
	t.Needs.Pinned = list(r, idSize, func() entitlement.Pinned {
		return entitlement.Pinned{QuestionnaireID: r.id(), Version: r.Small()}
	})
	t.Needs.Requests = list(r, idSize, func() entitlement.Request {
		return entitlement.Request{ID: r.id(), Sequence: r.Int(), Questionnaires: r.ids()}
	})
	t.Needs.VideoPlanned, t.Needs.Video, t.Needs.VideoSequence = r.Bool(), entitlement.Video(r.Word()), r.Int()
	some := r.Bool()
	t.Open = list(r, idSize, func() entitlement.Requirement {
		return entitlement.Requirement{Source: entitlement.Source(r.Word()), Request: r.id(), Sequence: r.Int(), Questionnaires: r.ids()}
	})
	if some && t.Open == nil {
		t.Open = []entitlement.Requirement{}
	}
	return t
}

func (r unpacker) questionnaire(s *State) {
	q := &asked{Questionnaire: &questionnaire.Questionnaire{ID: r.id(), Name: r.String(), Description: r.String(), OwnerType: owner.Type(r.Word()),
		OwnerTypeID: r.id(), IsPublished: r.Bool(), Created: r.time()}}
	for n := range r.Len(idSize) {
		q.published = append(q.published, r.Bool())
		v := &questionnaire.Version{ID: r.id(), Number: n + 1, QuestionnaireID: q.ID, Created: r.time()}
		v.Questions = list(r, idSize, r.question)
		q.versions = append(q.versions, v)
	}
	r.refuse(s.questionnaires[q.ID] != nil)
	s.questionnaires[q.ID] = q
	s.questionnaireOrder = append(s.questionnaireOrder, q.ID)
}

func (r unpacker) question() questionnaire.Question {
	q := questionnaire.Question{ID: r.id(), Label: r.String(), Value: r.String(), Type: questionnaire.QuestionType(r.Word()), IsOptional: r.Bool(),
		Position: r.Small(), Options: []questionnaire.Option{}}
	for range r.Len(idSize) {
		q.Options = append(q.Options, questionnaire.Option{ID: r.id(), Label: r.String(), Value: r.String(), Position: r.Small()})
	}
	return q
}

func (r unpacker) definition() *entitlement.Definition {
	e := &entitlement.Definition{ID: r.id(), Name: r.String(), Description: r.String(), OwnerType: owner.Type(r.Word()), Questionnaires: []entitlement.Item{}}
	for range r.Len(idSize) {
		e.Questionnaires = append(e.Questionnaires, entitlement.Item{QuestionnaireID: r.id(), Position: r.Small()})
	}
	e.Approval, e.VideoIdentification, e.DeadlineSeconds = entitlement.Approval(r.Word()), r.Bool(), r.Int()
	e.OpensTradingAccount, e.Created, e.Updated = r.Bool(), r.time(), r.time()
	return e
}

func (r unpacker) key() SigningKey {
	return SigningKey{KeyID: r.String(), Public: r.bytes(), Private: r.bytes()}
}

func (r unpacker) webhook() *Webhook {
	w := &Webhook{ID: r.id(), Tenant: r.Word(), URL: r.String(), All: r.Bool(), Types: []webhook.EventType{}}
	for range r.Len(1) {
		w.Types = append(w.Types, webhook.EventType(r.Word()))
	}
	w.Key = r.key()
	if r.Bool() {
		next := r.key()
		w.Next = &next
	}
	w.NextFrom, w.Created, w.Disabled, w.Failing = r.time(), r.time(), r.time(), r.time()
	return w
}

// deliveries reads those that are open and then those that are closed, in their order.
func (r unpacker) deliveries(s *State) {
	for _, open := range []bool{true, false} {
		for range r.Len(idSize) {
			v := r.delivery()
			r.refuse(s.deliveries[v.ID] != nil || v.Status.IsOpen() != open || open != (v.Closed == 0))
			if open {
				s.addDelivery(v)
			} else {
				s.deliveries[v.ID] = v
				s.addClosed(v.Closed, v)
			}
		}
	}
	s.closed.forgotten = r.Int()
}

func (r unpacker) delivery() *Delivery {
	return &Delivery{ID: r.id(), WebhookID: r.id(), NoticeID: r.id(), Tenant: r.Word(), Ref: r.ref(), Final: r.Bool(), Status: webhook.Status(r.Word()),
		Attempts: r.Small(), Before: r.Small(), NextAttempt: r.time(),
		Made: Place{Sequence: r.Int(), Ordinal: r.Int()}, Closed: r.Int()}
}

func (r unpacker) due(s *State) {
	for n := range 2 {
		for range r.Len(idSize) {
			e := &dueEntry{dueKey: dueKey{dueKind(r.Byte()), r.id()}, time: r.time(), cause: r.String()}
			r.refuse(int(e.kind) >= len(dueNames) || s.due.known[e.dueKey] != nil)
			if r.Err() != nil {
				return
			}
			s.due.restore(e, n == 1)
		}
	}
}
