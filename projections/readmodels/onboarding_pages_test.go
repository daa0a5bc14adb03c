package readmodels_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
)

// grownOnboarding makes a database as that of a venue that has onboarded for years, by shape: almost all is delivered and
// finished, nine tenths go to one receiver, few questionnaires are for one owner, and one owner has very much of everything. The
// database counts what it is given.
const grownOnboarding = `
INSERT INTO owners SELECT md5('owner' || i)::uuid, CASE WHEN i % 10 = 3 THEN 'corporate' ELSE 'person' END, CASE WHEN i % 100 = 7 THEN 'beta' ELSE 'alpha' END,
	CASE WHEN i % 50 = 9 THEN 'erased' WHEN i % 1000 = 4 THEN 'restricted' ELSE 'active' END, NULL, NULL, 1, false, now(), now(), i, 0, i
FROM generate_series(0, size) i;
INSERT INTO triggers SELECT md5('trigger' || i)::uuid, md5('entitlement' || CASE WHEN i % 700 = 3 THEN 1 ELSE 0 END)::uuid,
	md5('owner' || CASE WHEN i % 2 = 0 THEN 100 ELSE i % 5000 END)::uuid, 'person',
	CASE WHEN i % 100 = 7 THEN 'beta' ELSE 'alpha' END, CASE WHEN i % 5000 IN (3, 4) THEN 'ongoing' WHEN i % 1000 = 5 THEN 'canceled' ELSE 'finished' END,
	NULL, NULL, NULL, NULL, NULL, 'name', 'manual', false, '[]', false, NULL, NULL, '[]', now(), now(), i, 1, NULL, NULL, i
FROM generate_series(0, size) i;
INSERT INTO trigger_events SELECT md5('trigger' || i)::uuid, i, 0, md5('owner100')::uuid, 'person', 'entitlement_trigger.moved', 'request_information', 'ongoing',
	NULL, 'operator', 'o', 'C', NULL, NULL, NULL, md5('request' || i)::uuid, '{}', NULL, NULL, '[]', NULL, NULL, now()
FROM generate_series(0, size, 4) i;
INSERT INTO documents SELECT md5('document' || i)::uuid, md5('owner100')::uuid, 'person', 'alpha', 'poa', 'front', NULL, 'x', 'x', 1, 'pdf', NULL, now(), now(), i, 0, i, i / 2 + 1
FROM generate_series(0, size, 2) i;
INSERT INTO responses SELECT md5('response' || i)::uuid, md5('questionnaire1')::uuid, md5('version')::uuid, 1, md5('owner100')::uuid, 'person', 'alpha', '{}', NULL,
	now(), i, 0, i / 2 + 1 FROM generate_series(0, size, 2) i;
INSERT INTO questionnaires SELECT md5('questionnaire' || i)::uuid, 'name', '', CASE WHEN i % 10 = 3 THEN 'corporate' ELSE 'person' END,
	CASE WHEN i % 100 = 4 THEN md5('owner' || i % 3000)::uuid END, i % 7 <> 2, now(), i, 2, i
FROM generate_series(0, size) i;
INSERT INTO webhooks SELECT md5('webhook' || i)::uuid, 'alpha', 'https://x', true, '{}', 'k', 'k', 'k', NULL, NULL, NULL, NULL, NULL, now(), i, 0, i FROM generate_series(0, 19) i;
INSERT INTO deliveries SELECT md5('delivery' || i)::uuid, md5('webhook' || CASE WHEN i % 10 = 9 THEN i % 19 + 1 ELSE 0 END)::uuid, 'alpha', md5('notice' || i)::uuid,
	'entitlementCompleted', md5('owner' || i % 5000)::uuid, 'person', false,
	CASE WHEN i % 5000 = 3 THEN 'retrying' WHEN i % 1000 = 5 THEN 'dead' WHEN i % 9000 = 1 THEN 'pending' WHEN i % 500 = 6 THEN 'canceled' ELSE 'delivered' END,
	1, NULL, now(), i, 3, i
FROM generate_series(0, size) i;
INSERT INTO delivery_attempts SELECT md5('delivery' || i)::uuid, 1, now(), 5, 200, NULL, NULL, 'delivered', now(), i FROM generate_series(0, size) i;
INSERT INTO notices SELECT i, 0, md5('notice' || i)::uuid, CASE WHEN i % 20000 = 8 THEN 'documentExpiring' ELSE 'entitlementCompleted' END,
	CASE WHEN i % 100 = 7 THEN 'beta' ELSE 'alpha' END, md5('owner' || i % 5000)::uuid, 'person', 1, 1, now(), NULL, NULL, '{}', NULL, NULL, NULL, NULL, NULL, NULL
FROM generate_series(0, size) i;
INSERT INTO checkpoints VALUES ('onboarding', 0, size, size, sha256(''), now());
ANALYZE`

// numbered is a list, the condition that says which rows are in it, and what they are sorted by if not newest first.
type numbered struct {
	what, table, condition string
	page                   func(db projections.DB, size, offset int) (ids []scalar.ID, total int, err error)
	order                  string
}

// ids turns an answer of rows into one of their ids.
func ids[T any](id func(*T) scalar.ID) func(rows []T, total int, asOf int64, err error) ([]scalar.ID, int, error) {
	return func(rows []T, total int, _ int64, err error) ([]scalar.ID, int, error) {
		out := make([]scalar.ID, len(rows))
		for i := range rows {
			out[i] = id(&rows[i])
		}
		return out, total, err
	}
}

// hash returns the id that a database makes of a word.
func hash(t *testing.T, db projections.Querier, word string) (id scalar.ID) {
	t.Helper()
	var text string
	must(t, db.QueryRow(t.Context(), "SELECT md5($1)::uuid::text", word).Scan(&text))
	id, err := scalar.ParseID(text)
	must(t, err)
	return id
}

func countedLists(t *testing.T, db projections.Querier) []numbered {
	t.Helper()
	ctx := t.Context()
	var all []numbered
	for _, statuses := range [][]webhook.Status{nil, {webhook.Delivered}, {webhook.Dead, webhook.Retrying}, {webhook.Pending}} {
		for _, word := range []string{"", "webhook0", "webhook5"} {
			f, condition := onboarding.DeliveryFilter{Statuses: statuses}, "true"
			if word != "" {
				f.WebhookID = hash(t, db, word)
				condition = "webhook_id = md5('" + word + "')::uuid"
			}
			all = append(all, numbered{fmt.Sprint("deliveries ", statuses, word), "deliveries", condition + among("status", statuses),
				func(db projections.DB, size, offset int) ([]scalar.ID, int, error) {
					return ids(func(d *onboarding.Delivery) scalar.ID { return d.ID })(onboarding.Deliveries(ctx, db, f, size, offset))
				}, ""})
		}
	}
	for _, statuses := range [][]entitlement.Status{nil, onboarding.OpenCases(), {entitlement.Finished}, {entitlement.Failed}} {
		for _, tenant := range []string{"", "alpha", "beta"} {
			for _, word := range []string{"", "entitlement0", "entitlement1"} {
				f := onboarding.TriggerFilter{Tenant: tenant, Statuses: statuses, OldestFirst: word != "" || tenant == "alpha"}
				if word != "" {
					f.EntitlementID = hash(t, db, word)
				}
				all = append(all, triggersOf(ctx, f))
			}
		}
	}
	for _, of := range []owner.Type{owner.PersonType, owner.CorporateType} {
		special := hash(t, db, "owner104")
		for _, f := range []onboarding.QuestionnaireFilter{{Type: of}, {Type: of, All: true}, {Type: of, Owner: special}} {
			condition := is("owner_type", string(of))
			switch {
			case !f.Owner.IsZero():
				condition = "is_published AND (owner_type_id = md5('owner104')::uuid OR owner_type_id IS NULL AND " + condition + ")"
			case !f.All:
				condition += " AND is_published AND owner_type_id IS NULL"
			}
			all = append(all, numbered{fmt.Sprintf("questionnaires %+v", f), "questionnaires", condition,
				func(db projections.DB, size, offset int) ([]scalar.ID, int, error) {
					return ids(func(q *onboarding.Questionnaire) scalar.ID { return q.ID })(onboarding.Questionnaires(ctx, db, f, size, offset))
				}, ""})
		}
		for _, f := range []onboarding.OwnerFilter{{}, {Viewer: onboarding.Viewer{Tenant: "alpha"}}, {Viewer: onboarding.Viewer{Tenant: "beta"}},
			{Viewer: onboarding.Viewer{Tenant: "nobody"}}, {Of: "beta"}} {
			for _, states := range [][]owner.State{nil, {owner.Restricted, owner.Erased}} {
				f := f
				f.Type, f.States = of, states
				condition := is("type", string(of)) + among("state", states) + " AND " + is("tenant", f.Tenant+f.Of)
				if f.Tenant != "" {
					condition += " AND state = 'active'"
				}
				all = append(all, numbered{fmt.Sprintf("owners %+v", f), "owners", condition,
					func(db projections.DB, size, offset int) ([]scalar.ID, int, error) {
						return ids(func(o *onboarding.Owner) scalar.ID { return o.Ref.ID })(onboarding.Owners(ctx, db, f, size, offset))
					}, ""})
			}
		}
	}
	return all
}

// triggersOf is the list of triggers of a filter.
func triggersOf(ctx context.Context, f onboarding.TriggerFilter) numbered {
	l := numbered{what: fmt.Sprintf("triggers %+v", f), table: "triggers", condition: is("tenant", f.Tenant) + among("status", f.Statuses)}
	if !f.EntitlementID.IsZero() {
		l.condition += " AND " + is("entitlement_id", f.EntitlementID.String())
	}
	if f.OldestFirst {
		l.order = "created_sequence, created_ordinal"
	}
	l.page = func(db projections.DB, size, offset int) ([]scalar.ID, int, error) {
		return ids(func(d *onboarding.Trigger) scalar.ID { return d.ID })(onboarding.Triggers(ctx, db, f, size, offset))
	}
	return l
}

// ownersLists are the lists of what hangs on one owner.
func ownersLists(ctx context.Context, ref owner.Ref) []numbered {
	v, all := onboarding.Operator, []numbered{}
	add := func(table, more, order string, page func(db projections.DB, size, offset int) ([]scalar.ID, int, error)) {
		all = append(all, numbered{table + " of " + ref.String() + more, table, is("owner_id", ref.ID.String()) + more, page, order})
	}
	add("documents", "", "", func(db projections.DB, size, offset int) ([]scalar.ID, int, error) {
		return ids(func(d *onboarding.Document) scalar.ID { return d.Document.ID })(onboarding.Documents(ctx, db, v, ref, size, offset))
	})
	add("responses", "", "sequence DESC, ordinal DESC", func(db projections.DB, size, offset int) ([]scalar.ID, int, error) {
		return ids(func(r *onboarding.Response) scalar.ID { return r.ResponseAdded.ID })(onboarding.Responses(ctx, db, v, ref, size, offset))
	})
	add("triggers", "", "", func(db projections.DB, size, offset int) ([]scalar.ID, int, error) {
		return ids(func(d *onboarding.Trigger) scalar.ID { return d.ID })(onboarding.TriggersOf(ctx, db, v, ref, size, offset))
	})
	for _, f := range []onboarding.TriggerFilter{{}, {OldestFirst: true}, {Statuses: onboarding.OpenCases()}} {
		order := ""
		if f.OldestFirst {
			order = "created_sequence, created_ordinal"
		}
		add("triggers", among("status", f.Statuses), order, func(db projections.DB, size, offset int) ([]scalar.ID, int, error) {
			return ids(func(d *onboarding.Trigger) scalar.ID { return d.ID })(onboarding.Cases(ctx, db, onboarding.CaseFilter{TriggerFilter: f, OwnerID: ref.ID}, size, offset))
		})
	}
	for _, f := range []onboarding.DeliveryFilter{{}, {Statuses: []webhook.Status{webhook.Pending, webhook.Delivered}}} {
		f.OwnerID = ref.ID
		add("deliveries", among("status", f.Statuses), "", func(db projections.DB, size, offset int) ([]scalar.ID, int, error) {
			return ids(func(d *onboarding.Delivery) scalar.ID { return d.ID })(onboarding.Deliveries(ctx, db, f, size, offset))
		})
	}
	return all
}

func is(column, value string) string {
	if value == "" {
		return "true"
	}
	return column + " = '" + value + "'"
}

func among[S ~string](column string, values []S) string {
	if len(values) == 0 {
		return ""
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = "'" + string(v) + "'"
	}
	return " AND " + column + " IN (" + strings.Join(texts, ", ") + ")"
}

// holds sees that a page is the very one of the whole list.
func (l *numbered) holds(t *testing.T, pool projections.Querier, db projections.DB, size, offset int) {
	t.Helper()
	got, total, err := l.page(db, size, offset)
	must(t, err)
	var want int
	must(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM "+l.table+" WHERE "+l.condition).Scan(&want))
	if total != want {
		t.Errorf("%s has %d rows, want %d", l.what, total, want)
	}
	rows, err := pool.Query(t.Context(), fmt.Sprintf("SELECT id::text FROM %s WHERE %s ORDER BY %s LIMIT %d OFFSET %d",
		l.table, l.condition, cmp.Or(l.order, "created_sequence DESC, created_ordinal DESC"), size, offset))
	must(t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	found := make([]string, len(got))
	for i, id := range got {
		found[i] = id.String()
	}
	if !slices.Equal(found, texts) {
		t.Errorf("%s: the page of %d after %d rows is %v, want %v", l.what, size, offset, found, texts)
	}
}

// TestCountedPagesAreThoseOfTheList reads pages of every counted list of a random history, anywhere, and wants those that a
// reading of the whole list gives.
func TestCountedPagesAreThoseOfTheList(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 9))
	r, pool := onboarded(t, seed, 1200)
	for _, l := range countedLists(t, pool) {
		_, total, err := l.page(pool, 1, 0)
		must(t, err)
		for range 3 {
			l.holds(t, pool, pool, 1+random.IntN(60), random.IntN(total+5))
		}
	}
	// Of one entitlement, one owner and one registration, too.
	for _, id := range r.Entitlements[:min(3, len(r.Entitlements))] {
		for _, f := range []onboarding.TriggerFilter{{}, {Tenant: "alpha", OldestFirst: true}, {Tenant: "beta", Statuses: onboarding.OpenCases(), OldestFirst: true},
			{Statuses: []entitlement.Status{entitlement.Finished}}} {
			f.EntitlementID = id
			l := triggersOf(t.Context(), f)
			l.holds(t, pool, pool, 1+random.IntN(20), random.IntN(20))
		}
	}
	for _, ref := range r.Owners[:min(5, len(r.Owners))] {
		for _, l := range ownersLists(t.Context(), ref) {
			l.holds(t, pool, pool, 1+random.IntN(10), random.IntN(10))
		}
	}
	for _, id := range r.Webhooks[:min(5, len(r.Webhooks))] {
		l := numbered{"deliveries to " + id.String(), "deliveries", "webhook_id = '" + id.String() + "'", func(db projections.DB, size, offset int) ([]scalar.ID, int, error) {
			return ids(func(d *onboarding.Delivery) scalar.ID { return d.ID })(onboarding.Deliveries(t.Context(), db, onboarding.DeliveryFilter{WebhookID: id}, size, offset))
		}, ""}
		l.holds(t, pool, pool, 1+random.IntN(60), random.IntN(20))
	}
}

// TestPagesOfLongListsArePlannedOnce: to plan a page takes longer than to read it, so that is done once, however long the list is.
func TestPagesOfLongListsArePlannedOnce(t *testing.T) {
	ctx, pool := t.Context(), projectiontest.Database(t)
	_, err := pool.Exec(ctx, `INSERT INTO questionnaires SELECT md5('questionnaire' || i)::uuid, 'name', '', 'person', NULL, true, now(), i, 2, i FROM generate_series(1, 20000) i;
		ANALYZE`)
	must(t, err)
	conn, err := pool.Acquire(ctx)
	must(t, err)
	defer conn.Release()
	for n := range 10 {
		_, _, _, err := onboarding.Questionnaires(ctx, conn, onboarding.QuestionnaireFilter{Type: owner.PersonType}, 50, 1000*n)
		must(t, err)
	}
	var statements, each int
	must(t, conn.QueryRow(ctx, "SELECT count(*), sum(custom_plans) FROM pg_prepared_statements WHERE statement LIKE 'WITH page AS%'").Scan(&statements, &each))
	if statements != 1 || each != 0 {
		t.Errorf("%d statements were planned %d times more", statements, each)
	}
}

// TestOnboardingListsStayNarrow: no list reads a whole table, whichever of its pages is asked for, and whoever asks.
func TestOnboardingListsStayNarrow(t *testing.T) {
	ctx, pool := t.Context(), projectiontest.Database(t)
	const size = 40_000 // a reading of a whole table looks at more pages than may be
	if _, err := pool.Exec(ctx, strings.ReplaceAll(grownOnboarding, "size", strconv.Itoa(size))); err != nil {
		t.Fatal(err)
	}
	broken, err := readmodels.Broken(ctx, pool)
	must(t, err)
	if i := slices.IndexFunc(broken, func(s string) bool { return strings.HasPrefix(s, "list:") }); i >= 0 {
		t.Fatal(broken[i])
	}
	db := &planned{Pool: pool, t: t}
	much := owner.Ref{Type: owner.PersonType, ID: hash(t, pool, "owner100")}
	for _, l := range slices.Concat(countedLists(t, pool), ownersLists(ctx, much)) {
		_, total, err := l.page(pool, 1, 0)
		must(t, err)
		if strings.Contains(l.condition, "owner_id") && strings.Contains(l.condition, "status") {
			continue // what one owner has is counted
		}
		for _, offset := range []int{0, total / 2} {
			db.what = fmt.Sprintf("%s, after %d rows", l.what, offset)
			_, _, err := l.page(db, 50, offset)
			must(t, err)
		}
	}
	_, err = pool.Exec(ctx, `INSERT INTO history_bounds VALUES ('onboarding', -1, -1, $1) ON CONFLICT (journal) DO UPDATE SET kept = -1, built = -1, written = $1`, size)
	must(t, err)
	asked := onboardingQuestions(t, pool)
	for what, question := range asked {
		db.what = what
		must(t, question(db))
	}
}

// onboardingQuestions are all that handlers ask beside counted lists.
func onboardingQuestions(t *testing.T, pool projections.Querier) map[string]func(db projections.DB) error {
	t.Helper()
	ctx := t.Context()
	ref, delivery, trigger := owner.Ref{Type: owner.PersonType, ID: hash(t, pool, "owner100")}, hash(t, pool, "delivery77"), hash(t, pool, "trigger77")
	alpha := onboarding.Viewer{Tenant: "alpha"}
	asked := map[string]func(db projections.DB) error{
		"an owner": func(db projections.DB) error { _, _, _, err := onboarding.OneOwner(ctx, db, alpha, ref); return err },
		"an owner's triggers": func(db projections.DB) error {
			_, _, _, err := onboarding.TriggersOf(ctx, db, alpha, ref, 50, 0)
			return err
		},
		"a trigger": func(db projections.DB) error {
			_, _, _, err := onboarding.OneTrigger(ctx, db, alpha, ref, trigger)
			return err
		},
		"a timeline": func(db projections.DB) error { _, _, err := onboarding.Timeline(ctx, db, trigger); return err },
		"pending requirements": func(db projections.DB) error {
			_, _, err := onboarding.PendingRequirements(ctx, db, alpha, ref)
			return err
		},
		"an owner's deliveries": func(db projections.DB) error {
			_, _, _, err := onboarding.Deliveries(ctx, db, onboarding.DeliveryFilter{OwnerID: ref.ID}, 50, 0)
			return err
		},
		"a delivery": func(db projections.DB) error {
			_, _, _, err := onboarding.OneDelivery(ctx, db, alpha, delivery)
			return err
		},
		"attempts": func(db projections.DB) error {
			_, err := onboarding.Attempts(ctx, db, []onboarding.Delivery{{ID: delivery, Attempts: 1}})
			return err
		},
		"webhooks": func(db projections.DB) error { _, _, _, err := onboarding.Webhooks(ctx, db, alpha, 50, 0); return err },
	}
	for _, tenant := range []string{"", "alpha"} { // the cost is that of the rows of that time
		asked["owners as of an early record, of "+tenant] = func(db projections.DB) error {
			_, _, err := onboarding.OwnersAsOf(ctx, db, onboarding.OwnerFilter{Type: owner.PersonType, Of: tenant}, []owner.State{owner.Active, owner.Restricted}, 50, 0, 40)
			return err
		}
		for _, id := range []scalar.ID{{}, hash(t, pool, "entitlement0")} {
			asked[fmt.Sprintf("triggers as of an early record, of %s %v", tenant, id)] = func(db projections.DB) error {
				_, _, err := onboarding.CasesAsOf(ctx, db, onboarding.CaseFilter{TriggerFilter: onboarding.TriggerFilter{Tenant: tenant, EntitlementID: id}}, 50, 0, 40)
				return err
			}
		}
	}
	for _, f := range []onboarding.NoticeFilter{{}, {Viewer: alpha}, {Viewer: onboarding.Viewer{Tenant: "beta"}}, {Viewer: alpha, Type: webhook.DocumentExpiring}, {Owner: ref}} {
		for name, p := range map[string]projections.Page{"the first": {Size: 50}, "in the middle": {Size: 50, After: &projections.Key{Sequence: size / 2}}} {
			asked[fmt.Sprintf("notices %+v, %s", f, name)] = func(db projections.DB) error { _, err := onboarding.Notices(ctx, db, f, p); return err }
		}
	}
	return asked
}
