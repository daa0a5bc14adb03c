package onboarding

import (
	"cmp"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The commands and events about retention and erasure.
const (
	CommandEraseOwner   = "owner.erase"
	CommandHoldOwner    = "owner.hold"
	CommandReleaseOwner = "owner.release_hold"
	CommandConfirmKey   = "owner.confirm_key_destroyed"
	CommandSetRetention = "retention.set"

	TypeOwnerRestricted = "owner.restricted"
	TypeOwnerHeld       = "owner.held"
	TypeOwnerReleased   = "owner.hold_released"
	TypeOwnerErased     = "owner.erased"
	TypeKeyDestroyed    = "owner.key_destroyed"
	TypeRetentionSet    = "retention.set"
)

// DefaultRetention is the default time for which an owner's data is kept after the end of the owner's last trigger: five
// years, with two days for leap years.
const DefaultRetention = 5*365*scalar.Day + 2*scalar.Day

const maxRetention = 100 * 366 * scalar.Day

// Erasure is the state of an owner's erasure, from which its certificate is made.
type Erasure struct {
	RequestedAt scalar.Time
	RequestedBy string
	// Reason is sealed with the venue's key, since it must stay readable after the owner's key is destroyed.
	Reason       Sealed
	RetainUntil  scalar.Time
	ErasedAt     scalar.Time // zero: not yet erased
	KeyID        string      // of the destroyed key; empty: not yet destroyed
	KeyDestroyed scalar.Time
	Positions    []int64 // of the records about the erasure
}

// SetRetention asks to change how long the data of owners is kept. It affects owners who are restricted later.
//
// Event: retention.set. Refusals: Invalid.
type SetRetention struct{ Seconds int64 }

// CommandType returns the type of the command.
func (*SetRetention) CommandType() string { return CommandSetRetention }

func (*SetRetention) givenBy() ActorKind { return ByOperator }

func (p *SetRetention) decide(d *draft) error {
	if p.Seconds < 0 || p.Seconds > int64(maxRetention/scalar.Second) {
		return decide.InvalidField("seconds", "must be from 0 to 100 years")
	}
	d.add(&RetentionSet{Seconds: p.Seconds, Time: d.at.Time})
	return nil
}

// EraseOwner asks to erase an owner as soon as the law allows it. Until then, the owner is restricted. Its open triggers
// are terminated.
//
// Events: owner.restricted, and the ends of the triggers; owner.erased in a step at the end of the retention. Refusals:
// NotFound; Invalid; Conflict OWNER_RESTRICTED.
type EraseOwner struct {
	owner.Ref
	Reason Sealed // sealed with the venue's key
}

// CommandType returns the type of the command.
func (*EraseOwner) CommandType() string { return CommandEraseOwner }

func (*EraseOwner) givenBy() ActorKind { return ByOperator }

func (p *EraseOwner) decide(d *draft) error {
	f, err := d.operator(p.Ref)
	if err != nil {
		return err
	}
	if err := checkReason(p.Reason); err != nil {
		return err
	}
	for _, t := range slices.Clone(f.triggers) {
		if t.Status.IsOpen() {
			d.end(t, entitlement.Terminate, OwnerErasedCode)
		}
	}
	last := f.owner.Created
	for _, t := range f.triggers { // all of which have ended
		last = max(last, t.Updated)
	}
	d.add(&OwnerRestricted{Ref: p.Ref, Tenant: f.owner.Tenant, Reason: slices.Clone(p.Reason), RequestedBy: cmp.Or(d.actor.Sub, d.actor.System), RetainUntil: last + d.state.retention,
		Time: d.at.Time})
	return nil
}

func checkReason(reason Sealed) error {
	if len(reason) == 0 || len(reason) > MaxReason {
		return decide.InvalidField("reason", "the sealed reason is missing or too long")
	}
	return nil
}

// HoldOwner asks not to erase an owner until the hold is released, even after the end of the retention.
//
// Event: owner.held. Refusals: NotFound; Invalid; Conflict OWNER_HELD.
type HoldOwner struct {
	owner.Ref
	Reason Sealed // sealed with the venue's key
}

// CommandType returns the type of the command.
func (*HoldOwner) CommandType() string { return CommandHoldOwner }

func (*HoldOwner) givenBy() ActorKind { return ByOperator }

func (p *HoldOwner) decide(d *draft) error {
	hold, held, err := d.hold(p.Ref, p.Reason)
	switch {
	case err != nil:
		return err
	case held:
		return decide.Refuse(decide.Conflict, "OWNER_HELD", "the owner is held already")
	}
	d.add(&OwnerHeld{hold})
	return nil
}

// ReleaseOwner asks to release a hold. If the owner's retention has ended, its erasure is due immediately.
//
// Event: owner.hold_released. Refusals: NotFound; Invalid; Conflict OWNER_NOT_HELD.
type ReleaseOwner struct {
	owner.Ref
	Reason Sealed // sealed with the venue's key
}

// CommandType returns the type of the command.
func (*ReleaseOwner) CommandType() string { return CommandReleaseOwner }

func (*ReleaseOwner) givenBy() ActorKind { return ByOperator }

func (p *ReleaseOwner) decide(d *draft) error {
	hold, held, err := d.hold(p.Ref, p.Reason)
	switch {
	case err != nil:
		return err
	case !held:
		return decide.Refuse(decide.Conflict, "OWNER_NOT_HELD", "the owner is not held")
	}
	d.add(&OwnerReleased{hold})
	return nil
}

// hold returns the data of an event about a hold on an owner, and whether the owner is held.
func (d *draft) hold(ref owner.Ref, reason Sealed) (h Hold, held bool, err error) {
	f, err := d.unerased(ref)
	if err != nil {
		return Hold{}, false, err
	}
	if err := checkReason(reason); err != nil {
		return Hold{}, false, err
	}
	return Hold{Ref: ref, Tenant: f.owner.Tenant, Reason: slices.Clone(reason), Time: d.at.Time}, f.held, nil
}

// unerased returns the file of an owner that is not erased. The owner may be restricted.
func (d *draft) unerased(ref owner.Ref) (*file, error) {
	f, known := d.state.owners[ref.ID]
	if !known || f.owner.Ref != ref || f.owner.State == owner.Erased {
		return nil, ownerNotFound(ref.Type)
	}
	return f, nil
}

// KeyDestroyedCode is the refusal code of a second confirmation.
const KeyDestroyedCode = "KEY_DESTROYED"

// ConfirmKeyDestroyed reports that the key of an erased owner is destroyed. From then on, its data cannot be decrypted.
//
// Event: owner.key_destroyed. Refusals: NotFound; Invalid; Conflict OWNER_NOT_ERASED, KEY_DESTROYED.
type ConfirmKeyDestroyed struct {
	owner.Ref
	KeyID string
}

// CommandType returns the type of the command.
func (*ConfirmKeyDestroyed) CommandType() string { return CommandConfirmKey }

func (*ConfirmKeyDestroyed) givenBy() ActorKind { return BySystem }

func (p *ConfirmKeyDestroyed) decide(d *draft) error {
	f, known := d.state.owners[p.Ref.ID]
	switch {
	case !known || f.owner.Ref != p.Ref:
		return ownerNotFound(p.Type)
	case p.KeyID == "" || !isText(p.KeyID, maxName):
		return decide.InvalidField("key_id", "the key's id must be 1 to 255 characters")
	case f.owner.State != owner.Erased:
		return decide.Refuse(decide.Conflict, "OWNER_NOT_ERASED", "the owner is not erased")
	case f.erasure.KeyID != "":
		return decide.Refuse(decide.Conflict, KeyDestroyedCode, "the key is known to be destroyed")
	}
	d.add(&KeyDestroyed{Ref: p.Ref, Tenant: f.owner.Tenant, KeyID: p.KeyID, Time: d.at.Time})
	return nil
}

// erase decides the erasure of an owner at the end of the retention.
func (d *draft) erase(id scalar.ID) {
	o := d.state.owners[id].owner
	d.add(&OwnerErased{Ref: o.Ref, Tenant: o.Tenant, Time: d.at.Time})
}

// RetentionSet says how long the data of owners who are restricted later is kept.
type RetentionSet struct {
	Seconds int64       `json:"seconds"`
	Time    scalar.Time `json:"time"`
}

// EventType returns retention.set.
func (*RetentionSet) EventType() string { return TypeRetentionSet }

// OwnerRestricted says that an owner is hidden from everyone except operators, and until when its data is kept.
type OwnerRestricted struct {
	owner.Ref
	Tenant      string      `json:"tenant"`
	Reason      Sealed      `json:"reason"`
	RequestedBy string      `json:"requested_by"`
	RetainUntil scalar.Time `json:"retain_until"`
	Time        scalar.Time `json:"requested_at"`
}

// EventType returns owner.restricted.
func (*OwnerRestricted) EventType() string { return TypeOwnerRestricted }

// Hold is the data of the events about a hold on an owner.
type Hold struct {
	owner.Ref
	Tenant string      `json:"tenant"`
	Reason Sealed      `json:"reason"`
	Time   scalar.Time `json:"time"`
}

// OwnerHeld says that an owner must not be erased until the hold is released.
type OwnerHeld struct{ Hold }

// EventType returns owner.held.
func (*OwnerHeld) EventType() string { return TypeOwnerHeld }

// OwnerReleased says that the hold on an owner was released.
type OwnerReleased struct{ Hold }

// EventType returns owner.hold_released.
func (*OwnerReleased) EventType() string { return TypeOwnerReleased }

// OwnerErased says that an owner's key must be destroyed and that its external id may be used again. Its open deliveries
// are canceled, except for the final ones: those that report the end of a trigger caused by the erasure.
type OwnerErased struct {
	owner.Ref
	Tenant string      `json:"tenant"`
	Time   scalar.Time `json:"erased_at"`
}

// EventType returns owner.erased.
func (*OwnerErased) EventType() string { return TypeOwnerErased }

// KeyDestroyed says that an owner's key was destroyed.
type KeyDestroyed struct {
	owner.Ref
	Tenant string      `json:"tenant"`
	KeyID  string      `json:"key_id"`
	Time   scalar.Time `json:"destroyed_at"`
}

// EventType returns owner.key_destroyed.
func (*KeyDestroyed) EventType() string { return TypeKeyDestroyed }

func (f *fold) retentionSet(e *RetentionSet) { f.retention = scalar.Time(e.Seconds) * scalar.Second }

func (f *fold) ownerRestricted(e *OwnerRestricted) {
	f.changeErasure(f.at, e.Ref, owner.Restricted, func(_ *file, x *Erasure) {
		x.RequestedAt, x.RequestedBy, x.Reason, x.RetainUntil = e.Time, e.RequestedBy, slices.Clone(e.Reason), e.RetainUntil
	})
}

func (f *fold) ownerErased(e *OwnerErased) {
	f.changeErasure(f.at, e.Ref, owner.Erased, func(of *file, x *Erasure) {
		x.ErasedAt = e.Time
		f.cancelAbout(f.at.Sequence, of.owner)
	})
}

func (f *fold) keyDestroyed(e *KeyDestroyed) {
	f.changeErasure(f.at, e.Ref, owner.Erased, func(_ *file, x *Erasure) { x.KeyID, x.KeyDestroyed = e.KeyID, e.Time })
}

func (f *fold) ownerHeld(e *OwnerHeld) { f.hold(e.Ref, true) }

func (f *fold) ownerReleased(e *OwnerReleased) { f.hold(e.Ref, false) }

// changeErasure applies an event about the erasure of an owner.
func (s *State) changeErasure(at decide.Stamp, ref owner.Ref, to owner.State, change func(*file, *Erasure)) {
	f, known := s.owners[ref.ID]
	if !known {
		return
	}
	x := new(Erasure)
	if f.erasure != nil {
		*x = *f.erasure // readers may hold the old value
	}
	x.Positions = append(slices.Clone(x.Positions), at.Sequence)
	change(f, x)
	f.erasure = x
	o := f.owner.clone()
	o.State, o.Updated = to, at.Time
	if to == owner.Erased {
		o.ExternalID = nil
	}
	s.setOwner(o)
	for _, id := range f.documents { // reminders must not be sent any more
		s.due.drop(dueKey{dueDocument, id})
	}
	s.scheduleErasure(f)
}

func (s *State) hold(ref owner.Ref, held bool) {
	if f, known := s.owners[ref.ID]; known {
		f.held = held
		s.scheduleErasure(f)
	}
}

// scheduleErasure updates the due list: an owner is erased at the end of the retention, unless it is held.
func (s *State) scheduleErasure(f *file) {
	entry := dueKey{dueErase, f.owner.ID}
	s.due.drop(entry)
	if f.owner.State == owner.Restricted && !f.held {
		s.due.set(entry, f.erasure.RetainUntil)
	}
}

// cancelAbout cancels the open deliveries about an owner, except for the final ones.
func (s *State) cancelAbout(at int64, o *Owner) {
	for _, w := range s.hooksOf[o.Tenant] {
		for _, v := range s.openTo(w, func(v *Delivery) bool { return v.Ref == o.Ref && !v.Final }) {
			s.cancelDelivery(at, v)
		}
	}
}

// Erasure returns the state of an owner's erasure, or false if it was never requested.
func (s *State) Erasure(ref owner.Ref) (*Erasure, bool) {
	f, known := s.owners[ref.ID]
	if !known || f.owner.Ref != ref || f.erasure == nil {
		return nil, false
	}
	return f.erasure, true
}

// Held reports whether an owner is held.
func (s *State) Held(ref owner.Ref) bool {
	f, known := s.owners[ref.ID]
	return known && f.owner.Ref == ref && f.held
}

// Retention returns how long the data of owners who are restricted later is kept.
func (s *State) Retention() scalar.Time { return s.retention }
