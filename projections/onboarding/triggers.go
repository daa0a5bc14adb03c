package onboarding

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Trigger is a case. Needs.Requests is always empty: the requests are in the timeline.
type Trigger struct {
	domain.Trigger
	Tenant string
	Code   string        // the reason code of its end
	Reason domain.Reason // of its end; the sealed part is nil after the erasure of the owner
	// Started is the sequence of the record that started it, or 0 before that.
	Started  int64
	Sequence int64 // of the record that last changed it

	pinned, open string
}

type triggerRow = projections.Row[Trigger]

var triggers = &projections.Table[Trigger]{
	Name: "triggers", Journal: journalName, Keys: []string{"created_sequence", "created_ordinal"},
	Columns: []c.Column[triggerRow]{
		c.ID("id", func(r *triggerRow) *scalar.ID { return &r.Value.ID }).Key(),
		c.ID("entitlement_id", func(r *triggerRow) *scalar.ID { return &r.Value.EntitlementID }).Fixed(),
		c.ID("owner_id", func(r *triggerRow) *scalar.ID { return &r.Value.Ref.ID }).Fixed(),
		c.Text("owner_type", func(r *triggerRow) *owner.Type { return &r.Value.Type }).Fixed(),
		c.Text("tenant", func(r *triggerRow) *string { return &r.Value.Tenant }).Fixed(),
		c.Text("status", func(r *triggerRow) *entitlement.Status { return &r.Value.Status }),
		c.NullText("result", func(r *triggerRow) *entitlement.Result { return &r.Value.Result }),
		c.NullText("code", func(r *triggerRow) *string { return &r.Value.Code }),
		c.NullText("reason_text", func(r *triggerRow) *string { return &r.Value.Reason.Text }),
		c.Bytes("reason", func(r *triggerRow) *domain.Sealed { return &r.Value.Reason.Sealed }),
		c.Time("deadline", func(r *triggerRow) *scalar.Time { return &r.Value.Deadline }),
		c.NullText("name", func(r *triggerRow) *string { return &r.Value.Terms.Name }),
		c.NullText("approval", func(r *triggerRow) *entitlement.Approval { return &r.Value.Terms.Approval }),
		c.Bool("opens_trading_account", func(r *triggerRow) *bool { return &r.Value.Terms.OpensTradingAccount }),
		c.JSON("pinned", func(r *triggerRow) *string { return &r.Value.pinned }),
		c.Bool("video_planned", func(r *triggerRow) *bool { return &r.Value.Needs.VideoPlanned }),
		c.NullText("video", func(r *triggerRow) *entitlement.Video { return &r.Value.Needs.Video }),
		c.NullInt("video_sequence", func(r *triggerRow) *int64 { return &r.Value.Needs.VideoSequence }),
		c.JSON("open", func(r *triggerRow) *string { return &r.Value.open }),
		c.Time("created_at", func(r *triggerRow) *scalar.Time { return &r.Value.Created }).Fixed(),
		c.Time("updated_at", func(r *triggerRow) *scalar.Time { return &r.Value.Updated }),
		c.Int("created_sequence", func(r *triggerRow) *int64 { return &r.Key.Sequence }).Fixed(),
		c.Small("created_ordinal", func(r *triggerRow) *int64 { return &r.Key.Ordinal }).Fixed(),
		c.NullInt("moved_sequence", func(r *triggerRow) *int64 { return &r.Value.Moved }),
		c.NullInt("started_sequence", func(r *triggerRow) *int64 { return &r.Value.Started }),
		c.Int("sequence", func(r *triggerRow) *int64 { return &r.Value.Sequence }),
	},
	Loaded: func(r *triggerRow) error {
		t := &r.Value
		if err := json.Unmarshal([]byte(t.pinned), &t.Needs.Pinned); err != nil {
			return fmt.Errorf("what trigger %s has pinned: %w", t.ID, err)
		}
		if err := json.Unmarshal([]byte(t.open), &t.Open); err != nil {
			return fmt.Errorf("what is open of trigger %s: %w", t.ID, err)
		}
		if len(t.Needs.Pinned) == 0 {
			t.Needs.Pinned = nil
		}
		t.pinned, t.open = "", ""
		return nil
	},
}

// triggerHistory has the earlier states of triggers. Reasons in it are removed with those of the trigger.
var triggerHistory = projections.NewHistory(triggers, "trigger_history")

// The groups of columns of a trigger that change together.
const (
	triggerMoved = iota
	triggerStarted
	triggerVideo
	triggerVideoPassed
	triggerOpen
)

type triggerChanges struct {
	triggers versioned[Trigger]
}

func newTriggers(*projections.Batch) *triggerChanges { return &triggerChanges{} }

func (x *triggerChanges) slot(at position, id scalar.ID, group int) *Trigger {
	r := x.triggers.slot(at, id, group)
	r.Value.ID, r.Value.Sequence = id, at.Sequence
	return &r.Value
}

func (x *triggerChanges) add(at position, event decide.Event) {
	switch e := event.(type) {
	case *domain.TriggerCreated:
		x.triggers.make(at, e.ID, triggerRow{Key: at.Key, Value: Trigger{Trigger: domain.Trigger{ID: e.ID,
			EntitlementID: e.EntitlementID, Ref: e.Ref, Status: e.Status, Created: e.Created, Updated: e.Created, Deadline: e.Deadline},
			Tenant: at.tenant(), Sequence: at.Sequence, pinned: "[]", open: "[]"}})
	case *domain.TriggerMoved:
		x.move(at, e)
	case *domain.RequirementsChanged:
		x.slot(at, e.ID, triggerOpen).open = texts(e.Open)
	}
}

// texts returns the JSON text of a list. For an empty list it is [] and not null.
func texts[T any](list []T) string {
	if len(list) == 0 {
		return "[]"
	}
	return text(list)
}

func (x *triggerChanges) move(at position, e *domain.TriggerMoved) {
	t := x.slot(at, e.ID, triggerMoved)
	t.Status, t.Result, t.Updated, t.Deadline, t.Moved = e.Status, e.Result, e.Time, e.Deadline, at.Sequence
	t.Code, t.Reason = "", domain.Reason{}
	if !e.Status.IsOpen() {
		t.Code, t.Reason = e.Code, e.Reason
	}
	switch e.Action {
	case entitlement.Start:
		x.slot(at, e.ID, triggerStarted)
		if e.Terms != nil {
			t.Terms = *e.Terms
		}
		t.pinned, t.Needs.VideoPlanned, t.Started = texts(e.Pinned), e.VideoPlanned, at.Sequence
	case entitlement.RequestVideoIdentification:
		x.slot(at, e.ID, triggerVideo)
		t.Needs.Video, t.Needs.VideoSequence = entitlement.VideoAsked, at.Sequence
	case entitlement.CompleteVideoIdentification:
		if e.Outcome == domain.Passed {
			x.slot(at, e.ID, triggerVideoPassed).Needs.Video = entitlement.VideoPassed
		}
	}
}

func (x *triggerChanges) write(b *projections.Batch) {
	x.triggers.write(b, triggerHistory,
		[]string{"status", "result", "code", "reason_text", "reason", "deadline", "updated_at", "moved_sequence", "sequence"},
		[]string{"name", "approval", "opens_trading_account", "pinned", "video_planned", "started_sequence"},
		[]string{"video", "video_sequence"},
		[]string{"video"},
		[]string{"open", "sequence"})
}

// TriggerFilter restricts a list of triggers of the whole venue.
type TriggerFilter struct {
	Tenant        string               // empty for all tenants
	Statuses      []entitlement.Status // empty for all
	EntitlementID scalar.ID            // zero for all
	OldestFirst   bool                 // instead of newest first
}

// list returns the name under which the triggers with a status are counted, or the name for the total if status is "".
func (f *TriggerFilter) list(status string) string {
	if f.EntitlementID.IsZero() {
		return listName("triggers", status, f.Tenant)
	}
	return strings.Join([]string{"triggers", status, f.Tenant, f.EntitlementID.String()}, "/")
}

// OpenCases returns the statuses of open cases.
func OpenCases() []entitlement.Status {
	return []entitlement.Status{entitlement.Pending, entitlement.Ongoing, entitlement.Blocked}
}

func allStatuses() []entitlement.Status {
	return append(OpenCases(), entitlement.Finished, entitlement.Failed, entitlement.Canceled, entitlement.Terminated)
}

// Triggers returns a numbered page of the venue's triggers, newest first unless the filter says otherwise, and the
// length of the list. It is for operators.
func Triggers(ctx context.Context, db projections.DB, f TriggerFilter, size, offset int) (rows []Trigger, total int, asOf int64, err error) {
	l := projections.Counted[Trigger]{Table: triggers, OldestFirst: f.OldestFirst}
	for _, status := range allStatuses() {
		if len(f.Statuses) > 0 && !slices.Contains(f.Statuses, status) {
			continue
		}
		l.Names = append(l.Names, f.list(string(status)))
		l.Parts = append(l.Parts, func(w *projections.Where) {
			w.AndText("tenant", f.Tenant)
			if !f.EntitlementID.IsZero() {
				w.And("entitlement_id = ?", c.UUID(f.EntitlementID))
			}
			w.And("status = ?", string(status))
		})
	}
	if len(f.Statuses) == 0 {
		l.Names = []string{f.list("")}
	}
	return l.Numbered(ctx, db, size, offset)
}

// listName returns the name under which the rows of a table with a status are counted. If of is not empty, only the
// rows of one tenant or owner are counted.
func listName(table, status, of string) string {
	switch {
	case of != "":
		return table + "/" + status + "/" + of
	case status != "":
		return table + "/" + status
	}
	return table
}

// TriggersOf returns a numbered page of an owner's triggers, newest first, and the length of the list.
func TriggersOf(ctx context.Context, db projections.DB, v Viewer, ref owner.Ref, size, offset int) (rows []Trigger, total int, asOf int64, err error) {
	return numberedOf(ctx, db, triggers, v, ref, size, offset)
}

// OneTrigger returns a trigger. Unless the reference is zero, the trigger must belong to that owner.
func OneTrigger(ctx context.Context, db projections.DB, v Viewer, ref owner.Ref, id scalar.ID) (t Trigger, found bool, asOf int64, err error) {
	l := projections.List[Trigger]{Table: triggers, Order: "id"}
	l.Where.And("id = ?", c.UUID(id))
	v.confine(&l.Where, "owner_id")
	if ref != (owner.Ref{}) {
		of(&l.Where, ref)
	}
	return l.One(ctx, db)
}

// AllTriggers returns the table of triggers.
func AllTriggers() *projections.Table[Trigger] { return triggers }
