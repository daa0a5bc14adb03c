package onboarding

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The commands and events about owners.
const (
	CommandRegisterOwner = "owner.register"
	CommandChangeOwner   = "owner.change"

	TypeOwnerRegistered = "owner.registered"
	TypeOwnerChanged    = "owner.changed"
)

// CodeOwnerChanged is the refusal code of a change that is based on an outdated revision of the fields.
const CodeOwnerChanged = "OWNER_CHANGED"

// RegisterOwner asks to register a person or corporate of the client's tenant.
//
// Event: owner.registered. Refusals: Conflict EXTERNAL_ID_TAKEN, OWNER_ID_TAKEN.
type RegisterOwner struct {
	owner.Ref
	ExternalID []byte // the HMAC of the external id
	Fields     Sealed
}

// CommandType returns the type of the command.
func (*RegisterOwner) CommandType() string { return CommandRegisterOwner }

func (*RegisterOwner) givenBy() ActorKind { return ByClient }

func (p *RegisterOwner) decide(d *draft) error {
	if !p.Type.Valid() || p.ID.IsZero() {
		return decide.InvalidField("owner", "an owner is a person or a corporate with an id")
	}
	if err := checkFields(p.ExternalID, p.Fields); err != nil {
		return err
	}
	if _, taken := d.state.owners[p.ID]; taken {
		return decide.Refuse(decide.Conflict, "OWNER_ID_TAKEN", "there is an owner with this id")
	}
	o := Owner{Ref: p.Ref, Tenant: d.actor.Broker, ExternalID: slices.Clone(p.ExternalID), Revision: 1, State: owner.Active,
		Created: d.at.Time, Updated: d.at.Time}
	if _, taken := d.state.external[externalKey(&o)]; taken {
		return externalTaken()
	}
	d.add(&OwnerRegistered{Owner: o, Fields: slices.Clone(p.Fields)})
	return nil
}

// ChangeOwner asks to replace the fields of an owner. It contains all fields, since the rules cannot decrypt and merge
// them.
//
// Event: owner.changed. Refusals: NotFound; Conflict EXTERNAL_ID_TAKEN; Conflict OWNER_CHANGED if the fields were
// changed after the client read the revision.
type ChangeOwner struct {
	owner.Ref
	Revision   int64 // the revision of the fields that the client read
	ExternalID []byte
	Fields     Sealed
}

// CommandType returns the type of the command.
func (*ChangeOwner) CommandType() string { return CommandChangeOwner }

func (*ChangeOwner) givenBy() ActorKind { return ByClient }

func (p *ChangeOwner) decide(d *draft) error {
	f, err := d.client(p.Ref)
	if err != nil {
		return err
	}
	if err := checkFields(p.ExternalID, p.Fields); err != nil {
		return err
	}
	o := f.owner.clone()
	o.ExternalID = slices.Clone(p.ExternalID)
	if holder, taken := d.state.external[externalKey(o)]; taken && holder != o.ID {
		return externalTaken()
	}
	// Of two concurrent changes of the same revision, the second would undo the first.
	if p.Revision != o.Revision {
		return decide.Refuse(decide.Conflict, CodeOwnerChanged, "the owner was changed meanwhile")
	}
	o.Revision, o.Updated = o.Revision+1, d.at.Time
	d.add(&OwnerChanged{Owner: *o, Fields: slices.Clone(p.Fields)})
	return nil
}

func checkFields(externalID []byte, fields Sealed) error {
	switch {
	case len(externalID) != sha256.Size:
		return decide.InvalidField("external_id", "the HMAC of the external id must have 32 bytes")
	case len(fields) == 0 || len(fields) > MaxFields:
		return decide.InvalidField("fields", "the sealed fields are missing or too long")
	}
	return nil
}

func externalTaken() error {
	return &decide.Refusal{Kind: decide.Conflict, Code: "EXTERNAL_ID_TAKEN", Field: "external_id", Message: "there is an owner with this external id"}
}

// OwnerRegistered says that an owner was registered.
type OwnerRegistered struct {
	Owner
	Fields Sealed `json:"fields"`
}

// EventType returns owner.registered.
func (*OwnerRegistered) EventType() string { return TypeOwnerRegistered }

// OwnerChanged contains the complete owner after the change.
type OwnerChanged struct {
	Owner
	Fields Sealed `json:"fields"`
}

// EventType returns owner.changed.
func (*OwnerChanged) EventType() string { return TypeOwnerChanged }

// external is the key of an owner by its tenant's external id.
type external struct {
	tenant string
	kind   owner.Type
	hmac   [sha256.Size]byte
}

func externalKey(o *Owner) external {
	k := external{tenant: o.Tenant, kind: o.Type}
	copy(k.hmac[:], o.ExternalID)
	return k
}

func (s *State) setOwner(o *Owner) {
	f, known := s.owners[o.ID]
	if !known {
		f = &file{answered: make(map[scalar.ID]entitlement.Answered)}
		s.owners[o.ID] = f
		s.ownerOrder = append(s.ownerOrder, o.ID)
	} else if f.owner.ExternalID != nil {
		delete(s.external, externalKey(f.owner))
	}
	f.owner = o
	if o.ExternalID != nil {
		s.external[externalKey(o)] = o.ID
	}
}

// Owner returns a person or a corporate of any tenant.
func (s *State) Owner(ref owner.Ref) (*Owner, bool) {
	f, known := s.owners[ref.ID]
	if !known || f.owner.Type != ref.Type {
		return nil, false
	}
	return f.owner, true
}

// client returns the file of an owner that the client may see: an active owner of the client's tenant.
func (d *draft) client(ref owner.Ref) (*file, error) {
	f, known := d.state.owners[ref.ID]
	if !known || f.owner.Ref != ref || f.owner.Tenant != d.actor.Broker || f.owner.State != owner.Active {
		return nil, ownerNotFound(ref.Type)
	}
	return d.open(f), nil
}

// operator returns the file of an owner that an operator may change. A restricted owner may only be read.
func (d *draft) operator(ref owner.Ref) (*file, error) {
	f, known := d.state.owners[ref.ID]
	if !known || f.owner.Ref != ref || f.owner.State == owner.Erased {
		return nil, ownerNotFound(ref.Type)
	}
	if f.owner.State == owner.Restricted {
		return nil, ownerRestricted()
	}
	return d.open(f), nil
}

func ownerRestricted() error {
	return decide.Refuse(decide.Conflict, "OWNER_RESTRICTED", "the owner's data is restricted")
}

func ownerNotFound(t owner.Type) error {
	return decide.Refuse(decide.NotFound, strings.ToUpper(string(t))+"_NOT_FOUND", "there is no such "+string(t))
}
