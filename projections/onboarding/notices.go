package onboarding

import (
	"context"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Notice is a notice to webhook receivers. After the erasure of the owner, the sealed part of its reason is nil.
type Notice struct {
	domain.Notice

	document domain.ExpiringDocument // zero for none
}

type noticeRow = projections.Row[Notice]

var notices = &projections.Table[Notice]{
	Name: "notices", Journal: journalName, Keys: []string{"sequence", "ordinal"},
	Columns: []c.Column[noticeRow]{
		c.Int("sequence", func(r *noticeRow) *int64 { return &r.Key.Sequence }),
		c.Small("ordinal", func(r *noticeRow) *int64 { return &r.Key.Ordinal }),
		c.ID("id", func(r *noticeRow) *scalar.ID { return &r.Value.Notice.ID }),
		c.Small("form", func(r *noticeRow) *int { return &r.Value.Form }),
		c.Text("type", func(r *noticeRow) *webhook.EventType { return &r.Value.Notice.Type }),
		c.Text("tenant", func(r *noticeRow) *string { return &r.Value.Tenant }),
		c.ID("owner_id", func(r *noticeRow) *scalar.ID { return &r.Value.Ref.ID }),
		c.NullText("owner_type", func(r *noticeRow) *owner.Type { return &r.Value.Ref.Type }),
		c.NullInt("number", func(r *noticeRow) *int64 { return &r.Value.Sequence }),
		c.Time("time", func(r *noticeRow) *scalar.Time { return &r.Value.Time }),
		c.ID("entitlement_trigger_id", func(r *noticeRow) *scalar.ID { return &r.Value.TriggerID }),
		c.ID("entitlement_id", func(r *noticeRow) *scalar.ID { return &r.Value.EntitlementID }),
		c.IDs("questionnaire_ids", func(r *noticeRow) *[]scalar.ID { return &r.Value.Pending }),
		c.NullText("code", func(r *noticeRow) *string { return &r.Value.Code }),
		c.NullText("reason_text", func(r *noticeRow) *string { return &r.Value.Reason.Text }),
		c.Bytes("reason", func(r *noticeRow) *domain.Sealed { return &r.Value.Reason.Sealed }),
		c.ID("document_id", func(r *noticeRow) *scalar.ID { return &r.Value.document.ID }),
		c.NullText("document_category", func(r *noticeRow) *document.Category { return &r.Value.document.Category }),
		c.Time("document_valid_until", func(r *noticeRow) *scalar.Time { return &r.Value.document.ValidUntil }),
	},
	Loaded: func(r *noticeRow) error {
		if d := r.Value.document; !d.ID.IsZero() {
			r.Value.Document = &d
		}
		r.Value.document = domain.ExpiringDocument{}
		return nil
	},
}

type noticeChanges struct{ notices projections.Adder[Notice] }

func newNotices(b *projections.Batch) *noticeChanges { return &noticeChanges{notices.Copy(b)} }

func (x *noticeChanges) add(at position, event decide.Event) {
	e, ok := event.(*domain.NoticeGiven)
	if !ok {
		return
	}
	n := Notice{Notice: e.Notice}
	if e.Document != nil {
		n.document = *e.Document
	}
	x.notices.Add(&noticeRow{Key: at.Key, Value: n})
}

func (x *noticeChanges) write(*projections.Batch) {}

// NoticeFilter restricts the feed.
type NoticeFilter struct {
	Viewer
	Type  webhook.EventType // empty: all
	Owner owner.Ref         // zero: all
}

// Notices returns a page of the feed. It includes notices about restricted and erased owners. The caller must decide
// which of their fields may be shown; OwnerStates helps with that.
func Notices(ctx context.Context, db projections.DB, f NoticeFilter, p projections.Page) (projections.Paged[Notice], error) {
	l := projections.List[Notice]{Table: notices}
	l.Where.AndText("tenant", f.Tenant)
	l.Where.AndText("type", string(f.Type))
	if f.Owner != (owner.Ref{}) {
		of(&l.Where, f.Owner)
	}
	return l.Page(ctx, db, p)
}

// NoticesByID returns the existing notices among the given ids, by id.
func NoticesByID(ctx context.Context, db projections.DB, ids []scalar.ID) (map[scalar.ID]*domain.Notice, error) {
	wanted := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		wanted[i] = c.UUID(id)
	}
	l := projections.List[Notice]{Table: notices, Order: "id"}
	l.Where.And("id = ANY(?)", wanted)
	found, _, err := l.All(ctx, db)
	out := make(map[scalar.ID]*domain.Notice, len(found))
	for i := range found {
		out[found[i].Notice.ID] = &found[i].Notice
	}
	return out, err
}

// AllNotices returns the table of notices.
func AllNotices() *projections.Table[Notice] { return notices }
