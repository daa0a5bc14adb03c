package onboarding

import (
	"cmp"
	"context"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Owner is a person or a corporate. Once it is erased it has neither an ExternalID nor Fields.
type Owner struct {
	domain.Owner
	Fields   domain.Sealed
	Held     bool
	Sequence int64 // of the record that changed it last
}

type ownerRow = projections.Row[Owner]

var owners = &projections.Table[Owner]{
	Name: "owners", Journal: journalName, Keys: []string{"created_sequence", "created_ordinal"},
	Columns: []c.Column[ownerRow]{
		c.ID("id", func(r *ownerRow) *scalar.ID { return &r.Value.ID }).Key(),
		c.Text("type", func(r *ownerRow) *owner.Type { return &r.Value.Type }).Fixed(),
		c.Text("tenant", func(r *ownerRow) *string { return &r.Value.Tenant }).Fixed(),
		c.Text("state", func(r *ownerRow) *owner.State { return &r.Value.State }),
		c.Bytes("external_id", func(r *ownerRow) *[]byte { return &r.Value.ExternalID }),
		c.Bytes("fields", func(r *ownerRow) *domain.Sealed { return &r.Value.Fields }),
		c.Int("revision", func(r *ownerRow) *int64 { return &r.Value.Revision }),
		c.Bool("held", func(r *ownerRow) *bool { return &r.Value.Held }),
		c.Time("created_at", func(r *ownerRow) *scalar.Time { return &r.Value.Created }).Fixed(),
		c.Time("updated_at", func(r *ownerRow) *scalar.Time { return &r.Value.Updated }),
		c.Int("created_sequence", func(r *ownerRow) *int64 { return &r.Key.Sequence }).Fixed(),
		c.Small("created_ordinal", func(r *ownerRow) *int64 { return &r.Key.Ordinal }).Fixed(),
		c.Int("sequence", func(r *ownerRow) *int64 { return &r.Value.Sequence }),
	},
}

// ownerHistory has the earlier states of owners. Sealed values in it are removed with those of the owner.
var ownerHistory = projections.NewHistory(owners, "owner_history")

// The groups of columns of an owner that change together.
const (
	ownerFields = iota
	ownerState
	ownerHeld
)

// ownerChanges are the owners, and the ends of owners, that a batch changes.
type ownerChanges struct {
	owners     versioned[Owner]
	erasures   projections.Latest[scalar.ID, changed[Erasure]]
	holds      projections.Adder[Hold]
	retentions projections.Adder[Retention]
}

func newOwners(b *projections.Batch) *ownerChanges {
	return &ownerChanges{holds: holds.Copy(b), retentions: retentions.Copy(b)}
}

func (x *ownerChanges) slot(at position, ref owner.Ref, group int) *Owner {
	r := x.owners.slot(at, ref.ID, group)
	r.Value.Ref, r.Value.Sequence = ref, at.Sequence
	return &r.Value
}

func (x *ownerChanges) add(at position, event decide.Event) {
	switch e := event.(type) {
	case *domain.OwnerRegistered:
		x.owners.make(at, e.ID, ownerRow{Key: at.Key, Value: Owner{Owner: e.Owner, Fields: e.Fields, Sequence: at.Sequence}})
	case *domain.OwnerChanged:
		o := x.slot(at, e.Ref, ownerFields)
		o.ExternalID, o.Fields, o.Revision, o.Updated = e.ExternalID, e.Fields, e.Revision, e.Updated
	case *domain.OwnerRestricted:
		x.move(at, e.Ref, owner.Restricted)
		x.restrict(at, e)
	case *domain.OwnerErased:
		x.move(at, e.Ref, owner.Erased)
		x.erase(at, e)
	case *domain.KeyDestroyed:
		x.move(at, e.Ref, owner.Erased)
		x.destroy(at, e)
	case *domain.OwnerHeld:
		x.slot(at, e.Ref, ownerHeld).Held = true
		x.holds.Add(&holdRow{Key: at.Key, Value: Hold{Ref: e.Ref, Held: true, Reason: e.Reason, Actor: at.actor(), Time: e.Time}})
	case *domain.OwnerReleased:
		x.slot(at, e.Ref, ownerHeld).Held = false
		x.holds.Add(&holdRow{Key: at.Key, Value: Hold{Ref: e.Ref, Reason: e.Reason, Actor: at.actor(), Time: e.Time}})
	case *domain.RetentionSet:
		x.retentions.Add(&retentionRow{Key: at.Key, Value: Retention{Seconds: e.Seconds, Actor: at.actor(), Time: e.Time}})
	}
}

func (x *ownerChanges) move(at position, ref owner.Ref, to owner.State) {
	o := x.slot(at, ref, ownerState)
	o.State, o.Updated = to, at.entry.Record.Time
}

func (x *ownerChanges) write(b *projections.Batch) {
	x.owners.write(b, ownerHistory,
		[]string{"external_id", "fields", "revision", "updated_at", "sequence"}, []string{"state", "updated_at", "sequence"}, []string{"held", "sequence"})
	x.writeErasures(b)
}

// OwnerFilter narrows a list of owners.
type OwnerFilter struct {
	Viewer
	Type   owner.Type
	States []owner.State // nil: all that the viewer sees
	Then   []owner.State // as of a past record, the states at that time, instead of States; nil: any but erased
	Of     string        // a tenant whose owners alone an operator wants; empty: every tenant's
}

// Owners returns a numbered page of the owners of a type, newest first, and how many there are. A tenant sees active ones only.
func Owners(ctx context.Context, db projections.DB, f OwnerFilter, size, offset int) (rows []Owner, total int, asOf int64, err error) {
	l := projections.Counted[Owner]{Table: owners}
	list := "owners/" + string(f.Type)
	of := cmp.Or(f.Tenant, f.Of)
	for _, state := range []owner.State{owner.Active, owner.Restricted, owner.Erased} {
		if f.Tenant != "" && state != owner.Active || f.States != nil && !slices.Contains(f.States, state) {
			continue
		}
		name := list + "/" + string(state)
		if of != "" {
			name += "/" + of
		}
		l.Names = append(l.Names, name)
		l.Parts = append(l.Parts, func(w *projections.Where) {
			w.AndText("tenant", of)
			w.And("type = ?", string(f.Type))
			w.And("state = ?", string(state))
		})
	}
	if of == "" && f.States == nil {
		l.Names = []string{list}
	}
	return l.Numbered(ctx, db, size, offset)
}

// OneOwner returns an owner. A tenant finds its own active ones only.
func OneOwner(ctx context.Context, db projections.DB, v Viewer, ref owner.Ref) (o Owner, found bool, asOf int64, err error) {
	l := projections.List[Owner]{Table: owners, Order: "id"}
	l.Where.And("id = ?", c.UUID(ref.ID))
	l.Where.And("type = ?", string(ref.Type))
	if v.Tenant != "" {
		l.Where.And("tenant = ?", v.Tenant)
		l.Where.And("state = ?", string(owner.Active))
	}
	return l.One(ctx, db)
}

// AllOwners returns the table of owners.
func AllOwners() *projections.Table[Owner] { return owners }
