package onboarding

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Entitlement is a definition of an entitlement.
type Entitlement struct {
	entitlement.Definition
	Sequence int64 // of the record that changed it last

	questionnaires string
}

type entitlementRow = projections.Row[Entitlement]

var entitlements = &projections.Table[Entitlement]{
	Name: "entitlements", Journal: journalName, Keys: []string{"created_sequence", "created_ordinal"},
	Columns: []c.Column[entitlementRow]{
		c.ID("id", func(r *entitlementRow) *scalar.ID { return &r.Value.ID }).Key(),
		c.Text("name", func(r *entitlementRow) *string { return &r.Value.Name }),
		c.Text("description", func(r *entitlementRow) *string { return &r.Value.Description }),
		c.Text("owner_type", func(r *entitlementRow) *owner.Type { return &r.Value.OwnerType }).Fixed(),
		c.JSON("questionnaires", func(r *entitlementRow) *string { return &r.Value.questionnaires }),
		c.Text("approval", func(r *entitlementRow) *entitlement.Approval { return &r.Value.Approval }),
		c.Bool("video_identification", func(r *entitlementRow) *bool { return &r.Value.VideoIdentification }),
		c.Int("deadline_seconds", func(r *entitlementRow) *int64 { return &r.Value.DeadlineSeconds }),
		c.Bool("opens_trading_account", func(r *entitlementRow) *bool { return &r.Value.OpensTradingAccount }),
		c.Time("created_at", func(r *entitlementRow) *scalar.Time { return &r.Value.Created }).Fixed(),
		c.Time("updated_at", func(r *entitlementRow) *scalar.Time { return &r.Value.Updated }),
		c.Int("created_sequence", func(r *entitlementRow) *int64 { return &r.Key.Sequence }).Fixed(),
		c.Small("created_ordinal", func(r *entitlementRow) *int64 { return &r.Key.Ordinal }).Fixed(),
		c.Int("sequence", func(r *entitlementRow) *int64 { return &r.Value.Sequence }),
	},
	Loaded: func(r *entitlementRow) error {
		if err := json.Unmarshal([]byte(r.Value.questionnaires), &r.Value.Questionnaires); err != nil {
			return fmt.Errorf("the questionnaires of entitlement %s: %w", r.Value.ID, err)
		}
		r.Value.questionnaires = ""
		return nil
	},
}

type entitlementChanges struct {
	entitlements projections.Latest[scalar.ID, changed[Entitlement]]
}

func newEntitlements(*projections.Batch) *entitlementChanges { return &entitlementChanges{} }

func (x *entitlementChanges) add(at position, event decide.Event) {
	set := func(d entitlement.Definition, made bool) {
		r, again := x.entitlements.Slot(d.ID)
		if !again {
			r.Key, r.made = at.Key, made
		}
		r.groups |= 1
		r.Value = Entitlement{d, at.Sequence, text(d.Questionnaires)}
	}
	switch e := event.(type) {
	case *domain.EntitlementCreated:
		set(e.Definition, true)
	case *domain.EntitlementChanged:
		set(e.Definition, false)
	}
}

func (x *entitlementChanges) write(b *projections.Batch) {
	put(b, entitlements, x.entitlements.Rows(), nil)
}

// Entitlements returns a numbered page of the entitlements for a type of owner, newest first, and how many there are.
func Entitlements(ctx context.Context, db projections.DB, t owner.Type, size, offset int) (rows []Entitlement, total int, asOf int64, err error) {
	l := projections.List[Entitlement]{Table: entitlements, Order: newest}
	l.Where.AndText("owner_type", string(t))
	return l.Numbered(ctx, db, size, offset)
}

// OneEntitlement returns an entitlement, with the record that last changed it.
func OneEntitlement(ctx context.Context, db projections.DB, id scalar.ID) (e Entitlement, found bool, asOf int64, err error) {
	l := projections.List[Entitlement]{Table: entitlements, Order: "id"}
	l.Where.And("id = ?", c.UUID(id))
	return l.One(ctx, db)
}

// AllEntitlements returns the table of entitlements.
func AllEntitlements() *projections.Table[Entitlement] { return entitlements }
