package onboarding

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Delivery is the delivery of a notice to a webhook, which may be deleted already. A test delivery has no owner.
type Delivery struct {
	ID        scalar.ID
	WebhookID scalar.ID
	Tenant    string
	NoticeID  scalar.ID
	Type      webhook.EventType
	owner.Ref
	Final       bool
	Status      webhook.Status
	Attempts    int         // so far
	NextAttempt scalar.Time // while it is being retried
	Created     scalar.Time
	Sequence    int64 // of the record that last changed it
	// Key is its unique order among all deliveries.
	projections.Key
}

// Domain returns the delivery in the form of the state. The number of attempts before its last replay is missing: rows
// do not contain it.
func (d *Delivery) Domain() domain.Delivery {
	v := domain.Delivery{ID: d.ID, WebhookID: d.WebhookID, NoticeID: d.NoticeID, Tenant: d.Tenant, Ref: d.Ref, Final: d.Final, Status: d.Status,
		Attempts: d.Attempts, NextAttempt: d.NextAttempt, Made: domain.EventPosition{Sequence: d.Key.Sequence, Ordinal: d.Key.Ordinal}}
	if !d.Status.IsOpen() {
		v.Closed = d.Sequence
	}
	return v
}

// Attempt is the receipt of an attempt. It has no Reply after the erasure of the owner.
type Attempt struct {
	DeliveryID scalar.ID
	Number     int
	Started    scalar.Time
	DurationMS int64
	StatusCode int // 0 if there was no answer
	Error      string
	Reply      domain.Sealed
	Status     webhook.Status // of the delivery after this attempt
	Time       scalar.Time
	Sequence   int64
}

type (
	deliveryRow = projections.Row[Delivery]
	attemptRow  = projections.Row[Attempt]
)

var deliveries = &projections.Table[Delivery]{
	Name: "deliveries", Journal: journalName, Keys: []string{"created_sequence", "created_ordinal"},
	Columns: []c.Column[deliveryRow]{
		c.ID("id", func(r *deliveryRow) *scalar.ID { return &r.Value.ID }).Key(),
		c.ID("webhook_id", func(r *deliveryRow) *scalar.ID { return &r.Value.WebhookID }).Fixed(),
		c.Text("tenant", func(r *deliveryRow) *string { return &r.Value.Tenant }).Fixed(),
		c.ID("notice_id", func(r *deliveryRow) *scalar.ID { return &r.Value.NoticeID }).Fixed(),
		c.Text("type", func(r *deliveryRow) *webhook.EventType { return &r.Value.Type }).Fixed(),
		c.ID("owner_id", func(r *deliveryRow) *scalar.ID { return &r.Value.Ref.ID }).Fixed(),
		c.NullText("owner_type", func(r *deliveryRow) *owner.Type { return &r.Value.Ref.Type }).Fixed(),
		c.Bool("final", func(r *deliveryRow) *bool { return &r.Value.Final }).Fixed(),
		c.Text("status", func(r *deliveryRow) *webhook.Status { return &r.Value.Status }),
		c.Small("attempts", func(r *deliveryRow) *int { return &r.Value.Attempts }),
		c.Time("next_attempt_at", func(r *deliveryRow) *scalar.Time { return &r.Value.NextAttempt }),
		c.Time("created_at", func(r *deliveryRow) *scalar.Time { return &r.Value.Created }).Fixed(),
		c.Int("created_sequence", func(r *deliveryRow) *int64 { return &r.Key.Sequence }).Fixed(),
		c.Small("created_ordinal", func(r *deliveryRow) *int64 { return &r.Key.Ordinal }).Fixed(),
		c.Int("sequence", func(r *deliveryRow) *int64 { return &r.Value.Sequence }),
	},
	Loaded: func(r *deliveryRow) error {
		r.Value.Key = r.Key
		return nil
	},
}

var attempts = &projections.Table[Attempt]{
	Name: "delivery_attempts", Journal: journalName,
	Columns: []c.Column[attemptRow]{
		c.ID("delivery_id", func(r *attemptRow) *scalar.ID { return &r.Value.DeliveryID }),
		c.Small("number", func(r *attemptRow) *int { return &r.Value.Number }),
		c.Time("started_at", func(r *attemptRow) *scalar.Time { return &r.Value.Started }),
		c.Int("duration_ms", func(r *attemptRow) *int64 { return &r.Value.DurationMS }),
		c.NullSmall("status_code", func(r *attemptRow) *int { return &r.Value.StatusCode }),
		c.NullText("error", func(r *attemptRow) *string { return &r.Value.Error }),
		c.Bytes("response", func(r *attemptRow) *domain.Sealed { return &r.Value.Reply }),
		c.Text("status", func(r *attemptRow) *webhook.Status { return &r.Value.Status }),
		c.Time("time", func(r *attemptRow) *scalar.Time { return &r.Value.Time }),
		c.Int("sequence", func(r *attemptRow) *int64 { return &r.Value.Sequence }),
	},
}

type deliveryChanges struct {
	deliveries projections.Latest[scalar.ID, changed[Delivery]]
	attempts   projections.Adder[Attempt]
	deleted    doomed // webhooks
	erased     doomed // owners
}

func newDeliveries(b *projections.Batch) *deliveryChanges {
	return &deliveryChanges{attempts: attempts.Copy(b)}
}

func (x *deliveryChanges) add(at position, event decide.Event) {
	switch e := event.(type) {
	case *domain.DeliveryCreated:
		x.deliveries.Put(e.ID, changed[Delivery]{made: true, Row: deliveryRow{Key: at.Key, Value: Delivery{ID: e.ID, WebhookID: e.WebhookID, Tenant: e.Tenant,
			NoticeID: e.NoticeID, Type: e.Type, Ref: e.Ref, Final: e.Final, Status: webhook.Pending, Created: e.Created, Sequence: at.Sequence}}})
	case *domain.DeliveryAttempted:
		x.attempts.Add(&attemptRow{Value: Attempt{DeliveryID: e.ID, Number: e.Number, Started: e.Started, DurationMS: e.DurationMS,
			StatusCode: e.StatusCode, Error: e.Error, Reply: e.Reply, Status: e.Status, Time: e.Time, Sequence: at.Sequence}})
		v := x.slot(at, e.ID)
		v.Status, v.Attempts, v.NextAttempt = e.Status, e.Number, e.NextAttempt
	case *domain.DeliveryReplayed:
		v := x.slot(at, e.ID)
		v.Status, v.Attempts, v.NextAttempt = webhook.Pending, e.Attempts, 0
	case *domain.WebhookDeleted:
		x.deleted.add(at, e.ID)
	case *domain.OwnerErased:
		x.erased.add(at, e.ID)
	}
}

func (x *deliveryChanges) slot(at position, id scalar.ID) *Delivery {
	r, _ := x.deliveries.Slot(id)
	r.groups |= 1
	r.Value.ID, r.Value.Sequence = id, at.Sequence
	return &r.Value
}

func (x *deliveryChanges) write(b *projections.Batch) {
	put(b, deliveries, x.deliveries.Rows(), nil)
	x.cancel(b)
}

// cancel cancels the open deliveries to deleted webhooks and about erased owners. It does not touch later changes of a
// delivery in the same batch, after the id of a webhook was used again. A delivery that loses both is canceled by the
// earlier record, so one statement handles both.
func (x *deliveryChanges) cancel(b *projections.Batch) {
	if len(x.deleted.ids)+len(x.erased.ids) == 0 {
		return
	}
	b.Queue(`WITH n AS (
			SELECT d.id, n.sequence FROM unnest($1::uuid[], $2::bigint[]) AS n (id, sequence) JOIN deliveries d ON d.webhook_id = n.id
				WHERE d.status IN ('pending', 'retrying') AND d.sequence < n.sequence
			UNION ALL
			SELECT d.id, n.sequence FROM unnest($3::uuid[], $4::bigint[]) AS n (id, sequence) JOIN deliveries d ON d.owner_id = n.id
				WHERE d.status IN ('pending', 'retrying') AND d.sequence < n.sequence AND NOT d.final)
		UPDATE deliveries t SET status = 'canceled', next_attempt_at = NULL, sequence = n.sequence
		FROM (SELECT id, min(sequence) AS sequence FROM n GROUP BY id) n WHERE t.id = n.id`,
		x.deleted.ids, x.deleted.sequences, x.erased.ids, x.erased.sequences)
}

// DeliveryFilter restricts a list of deliveries.
type DeliveryFilter struct {
	WebhookID scalar.ID        // zero for the whole venue
	Statuses  []webhook.Status // empty for all
	OwnerID   scalar.ID        // zero for all
}

func deliveryStatuses() []webhook.Status {
	return []webhook.Status{webhook.Pending, webhook.Retrying, webhook.Delivered, webhook.Dead, webhook.Canceled}
}

// Deliveries returns a numbered page of deliveries, newest first, and the length of the list. The caller must have
// checked that the viewer may see the webhook; the list of the whole venue is for operators. The time does not depend
// on the number of deliveries, except that the deliveries about one owner are counted.
func Deliveries(ctx context.Context, db projections.DB, f DeliveryFilter, size, offset int) (rows []Delivery, total int, asOf int64, err error) {
	if !f.OwnerID.IsZero() {
		return deliveriesAbout(ctx, db, f, size, offset)
	}
	l := projections.Counted[Delivery]{Table: deliveries}
	of := ""
	if !f.WebhookID.IsZero() {
		of = f.WebhookID.String()
	}
	for _, status := range deliveryStatuses() {
		if len(f.Statuses) > 0 && !slices.Contains(f.Statuses, status) {
			continue
		}
		l.Names = append(l.Names, listName("deliveries", string(status), of))
		l.Parts = append(l.Parts, func(w *projections.Where) {
			if of != "" {
				w.And("webhook_id = ?", c.UUID(f.WebhookID))
			}
			w.And("status = ?", string(status))
		})
	}
	if len(f.Statuses) == 0 {
		l.Names = []string{listName("deliveries", "", of)}
	}
	return l.Numbered(ctx, db, size, offset)
}

// deliveriesAbout is Deliveries for one owner.
func deliveriesAbout(ctx context.Context, db projections.DB, f DeliveryFilter, size, offset int) (rows []Delivery, total int, asOf int64, err error) {
	l := projections.List[Delivery]{Table: deliveries, Order: newest}
	l.Where.And("owner_id = ?", c.UUID(f.OwnerID))
	if !f.WebhookID.IsZero() {
		l.Where.And("webhook_id = ?", c.UUID(f.WebhookID))
	}
	projections.AndAnyOf(&l.Where, "status", f.Statuses)
	return l.Numbered(ctx, db, size, offset)
}

// OneDelivery returns a delivery.
func OneDelivery(ctx context.Context, db projections.DB, v Viewer, id scalar.ID) (d Delivery, found bool, asOf int64, err error) {
	l := projections.List[Delivery]{Table: deliveries, Order: "id"}
	l.Where.And("id = ?", c.UUID(id))
	l.Where.AndText("tenant", v.Tenant)
	return l.One(ctx, db)
}

// Attempts returns the attempts of deliveries, by delivery, in order. They have a separate position: for each delivery,
// Attempts omits those that came after the given row.
func Attempts(ctx context.Context, db projections.DB, of []Delivery) (map[scalar.ID][]Attempt, error) {
	ids, known := make([]pgtype.UUID, len(of)), make(map[scalar.ID]int, len(of))
	for i := range of {
		ids[i], known[of[i].ID] = c.UUID(of[i].ID), of[i].Attempts
	}
	l := projections.List[Attempt]{Table: attempts, Order: "delivery_id, number"}
	l.Where.And("delivery_id = ANY(?)", ids)
	rows, _, err := l.All(ctx, db)
	out := make(map[scalar.ID][]Attempt, len(of))
	for _, a := range rows {
		if a.Number <= known[a.DeliveryID] {
			out[a.DeliveryID] = append(out[a.DeliveryID], a)
		}
	}
	return out, err
}

// AllDeliveries returns the table of deliveries.
func AllDeliveries() *projections.Table[Delivery] { return deliveries }
