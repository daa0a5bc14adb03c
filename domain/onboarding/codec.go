package onboarding

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// codecVersion is the version of the encoding in this file. It MUST change with the encoding and with the fields of
// State. TestTheFormIsThatOfItsVersion detects such changes.
const codecVersion = 8

// Codec returns the codec for states of the onboarding journal.
func Codec() decide.StateCodec {
	return decide.VisitCodec[*State]{Journal: "onboarding", Number: codecVersion, New: NewState, Visit: func(s *State, c *pack.Coder) {
		s.visit(c)
		if c.Reading() {
			c.Check(c.Err() != nil || s.coherent())
		}
	}}
}

const deliverySize = 150 // about how many bytes a delivery takes

// visit visits the whole state. What is read goes into s, which is new.
func (s *State) visit(c *pack.Coder) {
	pack.Ordered(c, &s.ownerOrder, s.owners, func(f *file) scalar.ID { return s.visitFile(c, f) })
	pack.Ordered(c, &s.questionnaireOrder, s.questionnaires, func(q *versioned) scalar.ID { return q.visit(c) })
	pack.Ordered(c, &s.entitlementOrder, s.entitlements, func(e *entitlement.Definition) scalar.ID {
		visitDefinition(e, c)
		return e.ID
	})
	tenants := slices.Sorted(maps.Keys(s.hooksOf)) // none while reading
	for n := range c.Len(len(tenants)) {
		var hooks []*Webhook
		if !c.Reading() {
			hooks = s.Webhooks(tenants[n])
		}
		pack.List(c, &hooks, func(w *Webhook) {
			w.visit(c)
			if c.Reading() {
				c.Check(s.webhooks[w.ID] == nil)
				s.addWebhook(w)
			}
		})
		if c.Err() != nil {
			return
		}
	}
	s.visitDeliveries(c)
	pack.Int(c, &s.made)
	pack.Int(c, &s.retention)
	s.due.visit(c)
	s.core.Visit(c)
}

func compareIDs(a, b scalar.ID) int { return bytes.Compare(a[:], b[:]) }

// packer writes the parts of a state.
func visitID(id *scalar.ID, c *pack.Coder) { c.Raw(id[:]) }

func visitRef(r *owner.Ref, c *pack.Coder) {
	pack.Word(c, &r.Type)
	c.Raw(r.ID[:])
}

// visitFile visits all that belongs to an owner, and returns the owner's id.
func (s *State) visitFile(c *pack.Coder, f *file) scalar.ID {
	if c.Reading() {
		f.owner, f.answered = new(Owner), make(map[scalar.ID]entitlement.Answered)
	}
	o := f.owner
	visitRef(&o.Ref, c)
	pack.Word(c, &o.Tenant)
	pack.Bytes(c, &o.ExternalID)
	pack.Int(c, &o.Revision)
	pack.Word(c, &o.State)
	pack.Int(c, &o.Created)
	pack.Int(c, &o.Updated)
	if c.Reading() && o.ExternalID != nil {
		_, taken := s.external[externalKey(o)]
		c.Check(!taken && len(o.ExternalID) == sha256.Size)
		s.external[externalKey(o)] = o.ID
	}
	pack.Ordered(c, &f.documents, s.documents, func(d *Document) scalar.ID {
		if c.Reading() {
			d.Ref = o.Ref
		}
		d.visit(c)
		return d.ID
	})
	pack.Map(c, &f.answered, compareIDs, func(id scalar.ID, a entitlement.Answered) (scalar.ID, entitlement.Answered) {
		c.Raw(id[:])
		pack.Small(c, &a.Version)
		pack.Int(c, &a.Sequence)
		return id, a
	})
	pack.List(c, &f.triggers, func(t *Trigger) {
		t.visit(c)
		if c.Reading() {
			t.Ref = o.Ref
			s.readTrigger(c, f, t)
		}
	})
	pack.Int(c, &f.notices)
	c.Bool(&f.held)
	pack.Optional(c, &f.erasure, (*Erasure).visit)
	return o.ID
}

// readTrigger notes a trigger that was read.
func (s *State) readTrigger(c *pack.Coder, f *file, t *Trigger) {
	_, known := s.triggers[t.ID]
	c.Check(!known)
	s.triggers[t.ID] = f.owner.ID
	for _, q := range t.requires() {
		s.required[q]++
	}
}

func (x *Erasure) visit(c *pack.Coder) {
	pack.Int(c, &x.RequestedAt)
	pack.String(c, &x.RequestedBy)
	pack.Bytes(c, &x.Reason)
	pack.Int(c, &x.RetainUntil)
	pack.Int(c, &x.ErasedAt)
	pack.String(c, &x.KeyID)
	pack.Int(c, &x.KeyDestroyed)
	pack.Slice(c, &x.Positions, func(p *int64, c *pack.Coder) { pack.Int(c, p) })
}

func (d *Document) visit(c *pack.Coder) {
	c.Raw(d.ID[:])
	pack.Word(c, &d.Category)
	pack.Word(c, &d.Orientation)
	pack.String(c, &d.Source)
	pack.Bytes(c, &d.SHA256)
	pack.Int(c, &d.Size)
	pack.Word(c, &d.Format)
	pack.Int(c, &d.ValidUntil)
	pack.Int(c, &d.Created)
}

func (t *Trigger) visit(c *pack.Coder) {
	c.Raw(t.ID[:])
	c.Raw(t.EntitlementID[:])
	pack.Word(c, &t.Status)
	pack.Word(c, &t.Result)
	for _, time := range [...]*scalar.Time{&t.Created, &t.Updated, &t.Deadline} {
		pack.Int(c, time)
	}
	pack.Int(c, &t.Moved)
	pack.Word(c, &t.Terms.Name)
	pack.Word(c, &t.Terms.Approval)
	c.Bool(&t.Terms.OpensTradingAccount)
	pack.Slice(c, &t.Needs.Pinned, func(p *entitlement.Pinned, c *pack.Coder) {
		c.Raw(p.QuestionnaireID[:])
		pack.Small(c, &p.Version)
	})
	pack.Slice(c, &t.Needs.Requests, func(r *entitlement.Request, c *pack.Coder) {
		c.Raw(r.ID[:])
		pack.Int(c, &r.Sequence)
		pack.Slice(c, &r.Questionnaires, visitID)
	})
	c.Bool(&t.Needs.VideoPlanned)
	pack.Word(c, &t.Needs.Video)
	pack.Int(c, &t.Needs.VideoSequence)
	present := t.Open != nil // JSON tells an empty list from none
	c.Bool(&present)
	if c.Reading() && present {
		t.Open = []entitlement.Requirement{}
	}
	pack.Slice(c, &t.Open, func(r *entitlement.Requirement, c *pack.Coder) {
		pack.Word(c, &r.Source)
		c.Raw(r.Request[:])
		pack.Int(c, &r.Sequence)
		pack.Slice(c, &r.Questionnaires, visitID)
	})
}

// visit visits a questionnaire with its versions, and returns its id.
func (q *versioned) visit(c *pack.Coder) scalar.ID {
	if c.Reading() {
		q.Questionnaire = new(questionnaire.Questionnaire)
	}
	c.Raw(q.ID[:])
	pack.String(c, &q.Name)
	pack.String(c, &q.Description)
	pack.Word(c, &q.OwnerType)
	c.Raw(q.OwnerTypeID[:])
	c.Bool(&q.IsPublished)
	pack.Int(c, &q.Created)
	pack.List(c, &q.versions, func(v *questionnaire.Version) {
		if c.Reading() {
			q.published = append(q.published, false)
			v.Number, v.QuestionnaireID = len(q.published), q.ID
		}
		c.Bool(&q.published[v.Number-1])
		c.Raw(v.ID[:])
		pack.Int(c, &v.Created)
		pack.Slice(c, &v.Questions, visitQuestion)
	})
	return q.ID
}

func visitQuestion(q *questionnaire.Question, c *pack.Coder) {
	c.Raw(q.ID[:])
	pack.String(c, &q.Label)
	pack.String(c, &q.Value)
	pack.Word(c, &q.Type)
	c.Bool(&q.IsOptional)
	pack.Small(c, &q.Position)
	if c.Reading() {
		q.Options = []questionnaire.Option{}
	}
	pack.Slice(c, &q.Options, func(o *questionnaire.Option, c *pack.Coder) {
		c.Raw(o.ID[:])
		pack.String(c, &o.Label)
		pack.String(c, &o.Value)
		pack.Small(c, &o.Position)
	})
}

func visitDefinition(e *entitlement.Definition, c *pack.Coder) {
	c.Raw(e.ID[:])
	pack.String(c, &e.Name)
	pack.String(c, &e.Description)
	pack.Word(c, &e.OwnerType)
	if c.Reading() {
		e.Questionnaires = []entitlement.Item{}
	}
	pack.Slice(c, &e.Questionnaires, func(item *entitlement.Item, c *pack.Coder) {
		c.Raw(item.QuestionnaireID[:])
		pack.Small(c, &item.Position)
	})
	pack.Word(c, &e.Approval)
	c.Bool(&e.VideoIdentification)
	pack.Int(c, &e.DeadlineSeconds)
	c.Bool(&e.OpensTradingAccount)
	pack.Int(c, &e.Created)
	pack.Int(c, &e.Updated)
}

func (k *SigningKey) visit(c *pack.Coder) {
	pack.String(c, &k.KeyID)
	pack.Bytes(c, &k.Public)
	pack.Bytes(c, &k.Private)
}

func (w *Webhook) visit(c *pack.Coder) {
	c.Raw(w.ID[:])
	pack.Word(c, &w.Tenant)
	pack.String(c, &w.URL)
	c.Bool(&w.All)
	if c.Reading() {
		w.Types = []webhook.EventType{}
	}
	pack.Slice(c, &w.Types, func(t *webhook.EventType, c *pack.Coder) { pack.Word(c, t) })
	w.Key.visit(c)
	pack.Optional(c, &w.Next, (*SigningKey).visit)
	for _, time := range [...]*scalar.Time{&w.NextFrom, &w.Created, &w.Disabled, &w.Failing} {
		pack.Int(c, time)
	}
}

// visitDeliveries visits the open deliveries and then the closed ones, in their order.
func (s *State) visitDeliveries(c *pack.Coder) {
	if c.Sizing() { // putting them in order takes too long
		c.Add(len(s.deliveries) * deliverySize)
		return
	}
	open, closed := s.OpenDeliveries(), s.closedInOrder() // none while reading
	pack.List(c, &open, func(d *Delivery) {
		d.visit(c)
		if c.Reading() {
			c.Check(s.deliveries[d.ID] == nil && d.Status.IsOpen() && d.Closed == 0)
			s.addDelivery(d)
		}
	})
	pack.List(c, &closed, func(d *Delivery) {
		d.visit(c)
		if c.Reading() {
			c.Check(s.deliveries[d.ID] == nil && !d.Status.IsOpen() && d.Closed != 0)
			s.deliveries[d.ID] = d
			s.addClosed(d.Closed, d)
		}
	})
	pack.Int(c, &s.closed.forgotten)
}

func (d *Delivery) visit(c *pack.Coder) {
	for _, id := range [...]*scalar.ID{&d.ID, &d.WebhookID, &d.NoticeID} {
		c.Raw(id[:])
	}
	pack.Word(c, &d.Tenant)
	visitRef(&d.Ref, c)
	c.Bool(&d.Final)
	pack.Word(c, &d.Status)
	pack.Small(c, &d.Attempts)
	pack.Small(c, &d.Before)
	pack.Int(c, &d.NextAttempt)
	pack.Int(c, &d.Made.Sequence)
	pack.Int(c, &d.Made.Ordinal)
	pack.Int(c, &d.Closed)
}

// visit visits the scheduled entries in their order, and then those that were set aside.
func (l *dueList) visit(c *pack.Coder) {
	sorted := l.queue.Entries()
	if !c.Sizing() {
		sorted = l.queue.Sorted()
	}
	for n, entries := range [...][]*dueEntry{sorted, l.aside} {
		pack.List(c, &entries, func(e *dueEntry) {
			pack.Byte(c, &e.Kind)
			c.Raw(e.about[:])
			pack.Int(c, &e.Time)
			pack.String(c, &e.cause)
			c.Check(int(e.Kind) < len(dueNames))
			if c.Reading() && c.Err() == nil {
				c.Check(l.known[e.key()] == nil)
				l.restore(e, n == 1)
			}
		})
	}
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

// concerns reports whether the subject of due work exists and is in the state that the work expects.
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
