package onboarding

import (
	"context"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Erasure is the state of an owner's erasure: its certificate. Times and sequences are zero until their step has
// happened.
type Erasure struct {
	owner.Ref
	Tenant       string
	RequestedAt  scalar.Time
	RequestedBy  string
	Reason       domain.Sealed // sealed with the venue's key
	RetainUntil  scalar.Time
	ErasedAt     scalar.Time
	KeyID        string
	KeyDestroyed scalar.Time
	// Requested, Erased and Destroyed are the sequences of the records of these steps.
	Requested, Erased, Destroyed int64
}

// Positions returns the sequences of the erasure's records.
func (e *Erasure) Positions() []int64 {
	all := []int64{e.Requested}
	for _, sequence := range []int64{e.Erased, e.Destroyed} {
		if sequence != 0 {
			all = append(all, sequence)
		}
	}
	return all
}

// Hold is a record that holds or releases an owner.
type Hold struct {
	owner.Ref
	Held   bool
	Reason domain.Sealed // sealed with the venue's key
	Actor  string
	Time   scalar.Time
}

// Retention is the retention period for the data of owners erased from a time on.
type Retention struct {
	Seconds int64
	Actor   string
	Time    scalar.Time
}

type (
	erasureRow   = projections.Row[Erasure]
	holdRow      = projections.Row[Hold]
	retentionRow = projections.Row[Retention]
)

var erasures = &projections.Table[Erasure]{
	Name: "erasures", Journal: journalName,
	Columns: []c.Column[erasureRow]{
		c.ID("owner_id", func(r *erasureRow) *scalar.ID { return &r.Value.ID }).Key(),
		c.Text("owner_type", func(r *erasureRow) *owner.Type { return &r.Value.Type }).Fixed(),
		c.Text("tenant", func(r *erasureRow) *string { return &r.Value.Tenant }).Fixed(),
		c.Time("requested_at", func(r *erasureRow) *scalar.Time { return &r.Value.RequestedAt }).Fixed(),
		c.Text("requested_by", func(r *erasureRow) *string { return &r.Value.RequestedBy }).Fixed(),
		c.Bytes("reason", func(r *erasureRow) *domain.Sealed { return &r.Value.Reason }).Fixed(),
		c.Time("retain_until", func(r *erasureRow) *scalar.Time { return &r.Value.RetainUntil }).Fixed(),
		c.Time("erased_at", func(r *erasureRow) *scalar.Time { return &r.Value.ErasedAt }),
		c.NullText("key_id", func(r *erasureRow) *string { return &r.Value.KeyID }),
		c.Time("destroyed_at", func(r *erasureRow) *scalar.Time { return &r.Value.KeyDestroyed }),
		c.Int("requested_sequence", func(r *erasureRow) *int64 { return &r.Value.Requested }).Fixed(),
		c.NullInt("erased_sequence", func(r *erasureRow) *int64 { return &r.Value.Erased }),
		c.NullInt("destroyed_sequence", func(r *erasureRow) *int64 { return &r.Value.Destroyed }),
	},
}

var holds = &projections.Table[Hold]{
	Name: "holds", Journal: journalName, Keys: []string{"sequence", "ordinal"},
	Columns: []c.Column[holdRow]{
		c.Int("sequence", func(r *holdRow) *int64 { return &r.Key.Sequence }),
		c.Small("ordinal", func(r *holdRow) *int64 { return &r.Key.Ordinal }),
		c.ID("owner_id", func(r *holdRow) *scalar.ID { return &r.Value.ID }),
		c.Text("owner_type", func(r *holdRow) *owner.Type { return &r.Value.Type }),
		c.Bool("held", func(r *holdRow) *bool { return &r.Value.Held }),
		c.Bytes("reason", func(r *holdRow) *domain.Sealed { return &r.Value.Reason }),
		c.Text("actor", func(r *holdRow) *string { return &r.Value.Actor }),
		c.Time("time", func(r *holdRow) *scalar.Time { return &r.Value.Time }),
	},
}

var retentions = &projections.Table[Retention]{
	Name: "retentions", Journal: journalName, Keys: []string{"sequence", "ordinal"},
	Columns: []c.Column[retentionRow]{
		c.Int("sequence", func(r *retentionRow) *int64 { return &r.Key.Sequence }),
		c.Small("ordinal", func(r *retentionRow) *int64 { return &r.Key.Ordinal }),
		c.Int("seconds", func(r *retentionRow) *int64 { return &r.Value.Seconds }),
		c.Text("actor", func(r *retentionRow) *string { return &r.Value.Actor }),
		c.Time("time", func(r *retentionRow) *scalar.Time { return &r.Value.Time }),
	},
}

// The groups of columns of an erasure that change together.
const (
	endErased = iota
	endDestroyed
)

func (x *ownerChanges) restrict(at position, e *domain.OwnerRestricted) {
	x.erasures.Put(e.ID, changed[Erasure]{made: true, Row: erasureRow{Value: Erasure{Ref: e.Ref, Tenant: e.Tenant, RequestedAt: e.Time,
		RequestedBy: e.RequestedBy, Reason: e.Reason, RetainUntil: e.RetainUntil, Requested: at.Sequence}}})
}

func (x *ownerChanges) erase(at position, e *domain.OwnerErased) {
	r, _ := x.erasures.Slot(e.ID)
	r.groups |= 1 << endErased
	r.Value.Ref, r.Value.ErasedAt, r.Value.Erased = e.Ref, e.Time, at.Sequence
}

func (x *ownerChanges) destroy(at position, e *domain.KeyDestroyed) {
	r, _ := x.erasures.Slot(e.ID)
	r.groups |= 1 << endDestroyed
	r.Value.Ref, r.Value.KeyID, r.Value.KeyDestroyed, r.Value.Destroyed = e.Ref, e.KeyID, e.Time, at.Sequence
}

func (x *ownerChanges) writeErasures(b *projections.Batch) {
	put(b, erasures, x.erasures.Rows(), []string{"erased_at", "erased_sequence"}, []string{"key_id", "destroyed_at", "destroyed_sequence"})
}

// erasing removes the ciphertexts of erased owners from all rows. The record contains one event for an owner and none
// for the rows: erasing changes the rows from before the erasure, independent of the rest of the batch. A receiver's
// reply may be sealed after the erasure and before the key is destroyed, so KeyDestroyed removes the ciphertexts again.
type erasing struct {
	emptied doomed
}

// doomed contains the ids of owners or webhooks, and the sequences of the records that ended them.
type doomed struct {
	ids       []pgtype.UUID
	sequences []int64
}

func (d *doomed) add(at position, id scalar.ID) {
	d.ids, d.sequences = append(d.ids, c.UUID(id)), append(d.sequences, at.Sequence)
}

// queue adds a statement in which n is a table of the ids and sequences.
func (d *doomed) queue(b *projections.Batch, sql string) {
	if len(d.ids) > 0 {
		b.Queue("WITH n AS (SELECT * FROM unnest($1::uuid[], $2::bigint[]) AS n (id, sequence)) "+sql, d.ids, d.sequences)
	}
}

func (x *erasing) add(at position, event decide.Event) {
	switch e := event.(type) {
	case *domain.OwnerErased:
		x.emptied.add(at, e.ID)
	case *domain.KeyDestroyed:
		x.emptied.add(at, e.ID)
	}
}

// ciphertexts are the statements that remove the ciphertexts.
var ciphertexts = []string{
	`UPDATE owners t SET external_id = NULL, fields = NULL FROM n WHERE t.id = n.id`,
	`UPDATE owner_history t SET external_id = NULL, fields = NULL FROM n WHERE t.id = n.id`,
	`UPDATE documents t SET name = NULL FROM n WHERE t.owner_id = n.id AND t.created_sequence < n.sequence`,
	`UPDATE responses t SET answers = NULL FROM n WHERE t.owner_id = n.id AND t.sequence < n.sequence`,
	`UPDATE triggers t SET reason = NULL FROM n WHERE t.owner_id = n.id AND t.created_sequence < n.sequence`,
	`UPDATE trigger_history t SET reason = NULL FROM n, triggers o WHERE o.owner_id = n.id AND t.id = o.id AND o.created_sequence < n.sequence`,
	`UPDATE trigger_events t SET reason = NULL, internal_reason = NULL, external_reference = NULL FROM n
		WHERE t.owner_id = n.id AND t.sequence < n.sequence`,
	`UPDATE notices t SET reason = NULL FROM n WHERE t.owner_id = n.id AND t.sequence < n.sequence`,
	`UPDATE delivery_attempts t SET response = NULL FROM n, deliveries d
		WHERE d.owner_id = n.id AND t.delivery_id = d.id AND t.sequence < n.sequence`,
}

func (x *erasing) write(b *projections.Batch) {
	for _, sql := range ciphertexts {
		x.emptied.queue(b, sql)
	}
}

// OneErasure returns the erasure of an owner, which is the certificate after the owner is erased. It is for operators.
func OneErasure(ctx context.Context, db projections.DB, ref owner.Ref) (e Erasure, found bool, asOf int64, err error) {
	l := projections.List[Erasure]{Table: erasures, Order: "owner_id"}
	of(&l.Where, ref)
	return l.One(ctx, db)
}

// Holds returns all holds and releases of an owner, oldest first. It is for operators.
func Holds(ctx context.Context, db projections.DB, ref owner.Ref) ([]Hold, int64, error) {
	l := projections.List[Hold]{Table: holds, Order: holds.OldestFirst()}
	of(&l.Where, ref)
	return l.All(ctx, db)
}

// RetentionInForce returns the retention that was set last. found is false if it is still the default.
func RetentionInForce(ctx context.Context, db projections.DB) (r Retention, found bool, asOf int64, err error) {
	return projections.List[Retention]{Table: retentions, Order: retentions.NewestFirst()}.One(ctx, db)
}

// AllErasures returns the table of erasures.
func AllErasures() *projections.Table[Erasure] { return erasures }
