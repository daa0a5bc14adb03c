package readmodels_test

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// told is what events say of the columns that no fold keeps, one event after the other.
type told struct {
	fields     map[scalar.ID]domain.Sealed
	names      map[scalar.ID]domain.Sealed
	responses  map[scalar.ID]*onboarding.Response
	ends       map[scalar.ID]*onboarding.Trigger // code, reason and start alone
	timeline   []*onboarding.TriggerEvent
	deliveries map[scalar.ID]*onboarding.Delivery // notice, type, time and next attempt alone
	attempts   []*onboarding.Attempt
	notices    []*domain.Notice
	holds      []onboarding.Hold
	retentions []onboarding.Retention
	tenants    map[scalar.ID]string // of owners
}

func tell(entries []record.Entry) *told {
	x := &told{fields: map[scalar.ID]domain.Sealed{}, names: map[scalar.ID]domain.Sealed{}, responses: map[scalar.ID]*onboarding.Response{},
		ends: map[scalar.ID]*onboarding.Trigger{}, deliveries: map[scalar.ID]*onboarding.Delivery{}, tenants: map[scalar.ID]string{}}
	for _, e := range entries {
		by := e.Record.Command.Actor.Sub + e.Record.Command.Actor.System
		for i, event := range e.Record.Events {
			x.owners(e.Record.Sequence, by, event)
			x.cases(e.Record.Sequence, by, event)
			x.told(projections.Key{Sequence: e.Record.Sequence, Ordinal: int64(i)}, event)
		}
	}
	return x
}

func (x *told) owners(sequence int64, by string, event decide.Event) {
	switch e := event.(type) {
	case *domain.OwnerRegistered:
		x.fields[e.ID], x.tenants[e.ID] = e.Fields, e.Tenant
	case *domain.OwnerChanged:
		x.fields[e.ID] = e.Fields
	case *domain.DocumentAdded:
		x.names[e.Document.ID] = e.Name
	case *domain.ResponseAdded:
		x.responses[e.ID] = &onboarding.Response{ResponseAdded: *e, Tenant: x.tenants[e.Ref.ID], Sequence: sequence}
	case *domain.OwnerHeld:
		x.holds = append(x.holds, onboarding.Hold{Ref: e.Ref, Held: true, Reason: e.Reason, Actor: by, Time: e.Time})
	case *domain.OwnerReleased:
		x.holds = append(x.holds, onboarding.Hold{Ref: e.Ref, Reason: e.Reason, Actor: by, Time: e.Time})
	case *domain.RetentionSet:
		x.retentions = append(x.retentions, onboarding.Retention{Seconds: e.Seconds, Actor: by, Time: e.Time})
	case *domain.OwnerErased:
		x.empty(e.Ref)
	case *domain.KeyDestroyed:
		x.empty(e.Ref)
	}
}

// empty takes out whatever was sealed with an owner's key.
func (x *told) empty(ref owner.Ref) {
	x.fields[ref.ID] = nil
	for _, r := range x.responses {
		if r.Ref == ref {
			r.Answers = nil
		}
	}
	for _, v := range x.timeline {
		if v.Ref == ref {
			v.Reason.Sealed, v.InternalReason, v.ExternalReference = nil, nil, nil
		}
	}
	for _, t := range x.ends {
		if t.Ref == ref {
			t.Reason.Sealed = nil
		}
	}
	for _, n := range x.notices {
		if n.Ref == ref {
			n.Reason.Sealed = nil
		}
	}
	for _, a := range x.attempts {
		if x.deliveries[a.DeliveryID].Ref == ref {
			a.Reply = nil
		}
	}
}

func (x *told) cases(sequence int64, by string, event decide.Event) {
	switch e := event.(type) {
	case *domain.TriggerCreated:
		x.ends[e.ID] = &onboarding.Trigger{Trigger: domain.Trigger{Ref: e.Ref}}
		x.timeline = append(x.timeline, &onboarding.TriggerEvent{Sequence: sequence, TriggerID: e.ID, Ref: e.Ref, Type: e.EventType(), Status: e.Status,
			By: e.By, Actor: by, Time: e.Created})
	case *domain.TriggerMoved:
		t := x.ends[e.ID]
		if e.Action == entitlement.Start {
			t.Started = sequence
		}
		if !e.Status.IsOpen() {
			t.Code, t.Reason = e.Code, e.Reason
		}
		v := &onboarding.TriggerEvent{Sequence: sequence, TriggerID: e.ID, Ref: e.Ref, Type: e.EventType(), Action: e.Action, Status: e.Status,
			Result: e.Result, By: e.By, Actor: by, Code: e.Code, Reason: e.Reason, InternalReason: e.InternalReason, Outcome: e.Outcome,
			ExternalReference: e.ExternalReference, Time: e.Time}
		if e.Request != nil {
			v.RequestID, v.Questionnaires = e.Request.ID, e.Request.Questionnaires
		}
		x.timeline = append(x.timeline, v)
	case *domain.RequirementsChanged:
		x.timeline = append(x.timeline, &onboarding.TriggerEvent{Sequence: sequence, TriggerID: e.ID, Ref: e.Ref, Type: e.EventType(),
			By: domain.BySystem, Actor: by, Open: e.Open, Time: e.Time})
	case *domain.NoticeGiven:
		if !e.TriggerID.IsZero() {
			x.timeline = append(x.timeline, &onboarding.TriggerEvent{Sequence: sequence, TriggerID: e.TriggerID, Ref: e.Ref, Type: e.EventType(),
				By: domain.BySystem, Actor: by, NoticeID: e.Notice.ID, NoticeType: e.Notice.Type, Time: e.Notice.Time})
		}
	}
}

func (x *told) told(at projections.Key, event decide.Event) {
	switch e := event.(type) {
	case *domain.NoticeGiven:
		n := e.Notice
		x.notices = append(x.notices, &n)
	case *domain.DeliveryCreated:
		x.deliveries[e.ID] = &onboarding.Delivery{ID: e.ID, Ref: e.Ref, NoticeID: e.NoticeID, Type: e.Type, Created: e.Created, Key: at}
	case *domain.DeliveryAttempted:
		x.deliveries[e.ID].NextAttempt = e.NextAttempt
		x.attempts = append(x.attempts, &onboarding.Attempt{DeliveryID: e.ID, Number: e.Number, Started: e.Started, DurationMS: e.DurationMS,
			StatusCode: e.StatusCode, Error: e.Error, Reply: e.Reply, Status: e.Status, Time: e.Time, Sequence: at.Sequence})
	}
}

// rowsBy returns all rows of a table by a key.
func rowsBy[T any, K comparable](t *testing.T, pool *pgxpool.Pool, table *projections.Table[T], key func(*T) K) map[K]T {
	t.Helper()
	rows := make(map[K]T)
	_, err := table.Each(t.Context(), pool, func(row *T) { rows[key(row)] = *row })
	must(t, err)
	return rows
}

func equalRows[T any](t *testing.T, what any, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v:\n%#v, want\n%#v", what, got, want)
	}
}

// TestOnboardingRowsSayWhatTheEventsSay holds what no fold keeps against the events: sealed columns, reasons, timelines, notices
// and receipts; and that nothing sealed is left of who is erased.
func TestOnboardingRowsSayWhatTheEventsSay(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r, pool := onboarded(t, seed, 1500)
	want := tell(r.Entries)
	id := func(ref owner.Ref) scalar.ID { return ref.ID }
	for k, o := range rowsBy(t, pool, onboarding.AllOwners(), func(o *onboarding.Owner) scalar.ID { return id(o.Ref) }) {
		equalRows(t, "fields", o.Fields, want.fields[k])
	}
	for k, d := range rowsBy(t, pool, onboarding.AllDocuments(), func(d *onboarding.Document) scalar.ID { return d.Document.ID }) {
		name := want.names[k]
		if want.fields[d.Ref.ID] == nil {
			name = nil // the owner is erased
		}
		equalRows(t, "name", d.Name, name)
		equalRows(t, "tenant", d.Tenant, want.tenants[d.Ref.ID])
	}
	got := rowsBy(t, pool, onboarding.AllResponses(), func(r *onboarding.Response) scalar.ID { return r.ResponseAdded.ID })
	check(t, "responses", len(got), len(want.responses))
	for k, r := range got {
		if len(want.responses[k].Documents) == 0 {
			want.responses[k].Documents = nil
		}
		equalRows(t, "response", &r, want.responses[k])
	}
	for k, v := range rowsBy(t, pool, onboarding.AllTriggers(), func(t *onboarding.Trigger) scalar.ID { return t.ID }) {
		w := want.ends[k]
		equalRows(t, "the end of a trigger", []any{v.Code, v.Reason, v.Started}, []any{w.Code, w.Reason, w.Started})
	}
	testTimelines(t, pool, r.Triggers, want)
	testTold(t, pool, want)
	testHolds(t, pool, want.holds)
	equalRows(t, "retentions", retentions(t, pool), want.retentions)
}

// testHolds reads the holds and releases of each owner.
func testHolds(t *testing.T, pool *pgxpool.Pool, want []onboarding.Hold) {
	t.Helper()
	of := make(map[owner.Ref][]onboarding.Hold)
	for _, h := range want {
		of[h.Ref] = append(of[h.Ref], h)
	}
	for ref, want := range of {
		got, _, err := onboarding.Holds(t.Context(), pool, ref)
		must(t, err)
		equalRows(t, "holds", got, want)
	}
	check(t, "number of holds", rowsIn(t, pool, "holds"), len(want))
}

// retentions reads all retentions in the order in which they were set.
func retentions(t *testing.T, pool *pgxpool.Pool) []onboarding.Retention {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT seconds, actor, (extract(epoch FROM time) * 1000000)::bigint FROM retentions ORDER BY sequence`)
	must(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[onboarding.Retention])
	must(t, err)
	return all
}

// rowsIn returns the number of rows of a table.
func rowsIn(t *testing.T, pool *pgxpool.Pool, table string) (n int) {
	t.Helper()
	must(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM "+pgx.Identifier{table}.Sanitize()).Scan(&n))
	return n
}

// testTimelines reads the timeline of each trigger.
func testTimelines(t *testing.T, pool *pgxpool.Pool, triggers []scalar.ID, want *told) {
	t.Helper()
	for _, id := range triggers {
		rows, _, err := onboarding.Timeline(t.Context(), pool, id)
		must(t, err)
		var events []onboarding.TriggerEvent
		for _, v := range want.timeline {
			if v.TriggerID == id {
				events = append(events, *v)
			}
		}
		for i := range rows {
			if len(rows[i].Open) == 0 && i < len(events) && len(events[i].Open) == 0 {
				rows[i].Open, events[i].Open = nil, nil
			}
		}
		equalRows(t, "the timeline of "+id.String(), rows, events)
	}
}

func testTold(t *testing.T, pool *pgxpool.Pool, want *told) {
	t.Helper()
	notices := rowsBy(t, pool, onboarding.AllNotices(), func(n *onboarding.Notice) scalar.ID { return n.Notice.ID })
	check(t, "notices", len(notices), len(want.notices))
	for _, n := range want.notices {
		if len(n.Pending) == 0 {
			n.Pending = nil
		}
		equalRows(t, "notice", notices[n.ID].Notice, *n)
	}
	deliveries := rowsBy(t, pool, onboarding.AllDeliveries(), func(d *onboarding.Delivery) scalar.ID { return d.ID })
	for k, d := range deliveries {
		w := want.deliveries[k]
		next := w.NextAttempt
		if d.Status != webhook.Retrying { // replayed or canceled since
			next = 0
		}
		equalRows(t, "delivery", []any{d.NoticeID, d.Type, d.Created, d.NextAttempt, d.Key}, []any{w.NoticeID, w.Type, w.Created, next, w.Key})
	}
	type number struct {
		delivery scalar.ID
		n        int
	}
	attempts := make(map[number]onboarding.Attempt)
	made, err := onboarding.Attempts(t.Context(), pool, slices.Collect(maps.Values(deliveries)))
	must(t, err)
	for _, all := range made {
		for _, a := range all {
			attempts[number{a.DeliveryID, a.Number}] = a
		}
	}
	check(t, "attempts", []int{len(attempts), rowsIn(t, pool, "delivery_attempts")}, []int{len(want.attempts), len(want.attempts)})
	for _, a := range want.attempts {
		equalRows(t, "attempt", attempts[number{a.DeliveryID, a.Number}], *a)
	}
}
