package readmodels_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
)

// pastCases compares rows of the onboarding journal as of past records with a fold to that record.
type pastCases struct {
	*testing.T
	pool   *pgxpool.Pool
	end    *domain.State // at the end of the log
	state  *domain.State
	born   map[scalar.ID]int64 // by the id of an owner, a document, a trigger, or a response
	sealed map[scalar.ID]domain.Sealed
	// The ids of each owner's objects, oldest first.
	documents, triggers, responses map[owner.Ref][]scalar.ID
	requests                       map[scalar.ID]domain.Reason
	events                         map[scalar.ID]int // by trigger
	cases                          []scalar.ID       // all triggers, oldest first
}

func newPastCases(t *testing.T, pool *pgxpool.Pool, end *domain.State) *pastCases {
	return &pastCases{T: t, pool: pool, end: end, state: domain.NewState(), born: make(map[scalar.ID]int64), sealed: make(map[scalar.ID]domain.Sealed),
		documents: make(map[owner.Ref][]scalar.ID), triggers: make(map[owner.Ref][]scalar.ID), responses: make(map[owner.Ref][]scalar.ID),
		requests: make(map[scalar.ID]domain.Reason), events: make(map[scalar.ID]int)}
}

// see folds an event.
func (p *pastCases) see(sequence int64, event decide.Event) {
	switch e := event.(type) {
	case *domain.OwnerRegistered:
		p.born[e.ID], p.sealed[e.ID] = sequence, e.Fields
	case *domain.OwnerChanged:
		p.sealed[e.ID] = e.Fields
	case *domain.DocumentAdded:
		p.born[e.Document.ID], p.documents[e.Ref] = sequence, append(p.documents[e.Ref], e.Document.ID)
	case *domain.ResponseAdded:
		p.born[e.ID], p.responses[e.Ref], p.sealed[e.ID] = sequence, append(p.responses[e.Ref], e.ID), e.Answers
	case *domain.TriggerCreated:
		p.born[e.ID], p.triggers[e.Ref] = sequence, append(p.triggers[e.Ref], e.ID)
		p.cases = append(p.cases, e.ID)
		p.events[e.ID]++
	case *domain.TriggerMoved:
		p.events[e.ID]++
		if e.Request != nil {
			p.requests[e.Request.ID] = e.Reason
		}
	case *domain.RequirementsChanged:
		p.events[e.ID]++
	case *domain.NoticeGiven:
		p.events[e.TriggerID]++
	}
}

// isErased reports whether an owner is erased at the end of the log.
func (p *pastCases) isErased(ref owner.Ref) bool {
	o, known := p.end.Owner(ref)
	return known && o.State == owner.Erased
}

// compare compares everything about an owner.
func (p *pastCases) compare(ref owner.Ref, sequence int64) {
	p.Helper()
	what := fmt.Sprintf(" of %s as of %d", ref, sequence)
	o, born, err := onboarding.OwnerAsOf(p.Context(), p.pool, ref, sequence)
	must(p.T, err)
	check(p.T, "registration"+what, born, p.born[ref.ID])
	known, _ := p.state.Owner(ref)
	want, sealed := *known, p.sealed[ref.ID]
	if p.isErased(ref) {
		want.ExternalID, sealed = nil, nil
	}
	equalRows(p.T, "owner"+what, o.Owner, want)
	equalRows(p.T, "data"+what, o.Fields, sealed)
	check(p.T, "hold"+what, o.Held, p.state.Held(ref))
	p.compareTriggers(ref, sequence, what)
	p.compareOthers(ref, sequence, what)
}

// compareLists compares a page of the list of owners, and one of the list of triggers, with random filters.
func (p *pastCases) compareLists(random *rand.Rand, registered []owner.Ref, sequence int64) {
	p.Helper()
	what := fmt.Sprintf(" as of %d", sequence)
	some, _ := p.state.Owner(registered[random.IntN(len(registered))])
	tenant := []string{"", some.Tenant}[random.IntN(2)]
	f := onboarding.OwnerFilter{Type: some.Type, Of: tenant, Then: [][]owner.State{nil, {owner.Active}, {owner.Restricted}}[random.IntN(3)]}
	may := []owner.State{owner.Active, owner.Restricted, owner.Erased}[:1+random.IntN(3)]
	var refs, foundRefs []owner.Ref
	for _, ref := range slices.Backward(registered) {
		then, _ := p.state.Owner(ref)
		now, _ := p.end.Owner(ref)
		listed := then.State != owner.Erased && (f.Then == nil || slices.Contains(f.Then, then.State)) && slices.Contains(may, now.State)
		if listed && ref.Type == f.Type && (tenant == "" || then.Tenant == tenant) {
			refs = append(refs, ref)
		}
	}
	offset := random.IntN(3)
	owners, total, err := onboarding.OwnersAsOf(p.Context(), p.pool, f, may, 10, offset, sequence)
	must(p.T, err)
	for _, o := range owners {
		foundRefs = append(foundRefs, o.Ref)
		then, _ := p.state.Owner(o.Ref)
		check(p.T, "state of "+o.Ref.String()+what, o.State, then.State)
	}
	check(p.T, "number of owners"+what, total, len(refs))
	equalRows(p.T, "owners"+what, foundRefs, slice(refs, offset, 10))

	cases := onboarding.CaseFilter{TriggerFilter: onboarding.TriggerFilter{Tenant: tenant, OldestFirst: random.IntN(2) == 0}}
	if random.IntN(2) == 0 {
		cases.Statuses = onboarding.OpenCases()
	}
	if random.IntN(3) == 0 {
		cases.OwnerID = some.ID
	}
	var ids, foundIDs []scalar.ID
	for _, id := range p.cases {
		known, _ := p.state.Trigger(id)
		of, _ := p.state.Owner(known.Ref)
		if (tenant == "" || of.Tenant == tenant) && (cases.Statuses == nil || slices.Contains(cases.Statuses, known.Status)) && (cases.OwnerID.IsZero() || of.ID == some.ID) {
			ids = append(ids, id)
		}
	}
	if !cases.OldestFirst {
		slices.Reverse(ids)
	}
	triggers, total, err := onboarding.CasesAsOf(p.Context(), p.pool, cases, 10, offset, sequence)
	must(p.T, err)
	for i := range triggers {
		foundIDs = append(foundIDs, triggers[i].ID)
		known, _ := p.state.Trigger(triggers[i].ID)
		check(p.T, "status"+what, triggers[i].Status, known.Status)
	}
	check(p.T, "number of triggers"+what, total, len(ids))
	equalRows(p.T, "triggers"+what, foundIDs, slice(ids, offset, 10))
}

// slice returns a page of a list, nil if it is empty.
func slice[T any](all []T, offset, size int) (page []T) {
	return append(page, all[min(offset, len(all)):min(offset+size, len(all))]...)
}

func (p *pastCases) compareTriggers(ref owner.Ref, sequence int64, what string) {
	p.Helper()
	found, total, born, err := onboarding.TriggersAsOf(p.Context(), p.pool, ref, 100, 0, sequence)
	must(p.T, err)
	check(p.T, "registration"+what, born, p.born[ref.ID])
	check(p.T, "number of triggers"+what, total, len(p.triggers[ref]))
	slices.Reverse(found)
	open := 0
	for i, id := range p.triggers[ref] {
		known, _ := p.state.Trigger(id)
		want, got := *known, found[i].Trigger
		want.Needs.Requests = nil
		for _, list := range []*[]entitlement.Requirement{&want.Open, &got.Open} {
			if len(*list) == 0 {
				*list = nil
			}
		}
		equalRows(p.T, "trigger "+id.String()+what, got, want)
		if known.Status.IsOpen() {
			open += len(known.Open)
		}
		one, made, err := onboarding.TriggerAsOf(p.Context(), p.pool, ref, id, sequence)
		must(p.T, err)
		equalRows(p.T, "trigger alone"+what, one, found[i])
		check(p.T, "creation"+what, made, p.born[id])
		events, err := onboarding.TimelineAsOf(p.Context(), p.pool, id, sequence)
		must(p.T, err)
		check(p.T, "events"+what, len(events), p.events[id])
	}
	pending, _, err := onboarding.PendingAsOf(p.Context(), p.pool, ref, sequence)
	must(p.T, err)
	check(p.T, "open requirements"+what, len(pending), open)
	for _, r := range pending {
		if reason, asked := p.requests[r.Request]; asked && !p.isErased(ref) {
			equalRows(p.T, "reason"+what, r.Reason, reason)
		}
	}
}

func (p *pastCases) compareOthers(ref owner.Ref, sequence int64, what string) {
	p.Helper()
	documents, total, _, err := onboarding.DocumentsAsOf(p.Context(), p.pool, ref, 1000, 0, sequence)
	must(p.T, err)
	check(p.T, "number of documents"+what, total, len(p.documents[ref]))
	slices.Reverse(documents)
	for i, id := range p.documents[ref] {
		known, _ := p.state.Document(id)
		equalRows(p.T, "document"+what, documents[i].Document, *known)
		one, made, err := onboarding.DocumentAsOf(p.Context(), p.pool, ref, id, sequence)
		must(p.T, err)
		equalRows(p.T, "document alone"+what, one, documents[i])
		check(p.T, "its arrival"+what, made, p.born[id])
	}
	responses, total, _, err := onboarding.ResponsesAsOf(p.Context(), p.pool, ref, 1000, 0, sequence)
	must(p.T, err)
	check(p.T, "number of responses"+what, total, len(p.responses[ref]))
	slices.Reverse(responses)
	for i, id := range p.responses[ref] {
		want := p.sealed[id]
		if p.isErased(ref) {
			want = nil
		}
		check(p.T, "response"+what, responses[i].ID, id)
		equalRows(p.T, "answers"+what, responses[i].Answers, want)
	}
}

// TestOnboardingRowsAsOfEqualAFold compares rows as of a thousand random records with a fold to each of them: a random owner,
// all of the owner's documents, responses, triggers, and requirements, and the lists of owners and triggers. The log is applied in random cuts.
func TestOnboardingRowsAsOfEqualAFold(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	r, pool := projectiontest.NewRegistrar(t, seed), projectiontest.Database(t)
	r.Play(2500)
	for n := random.IntN(40); n < len(r.Entries); n += 1 + random.IntN(400) {
		apply(t, pool, "onboarding", readmodels.Onboarding(), r.Entries[:n+1])
	}
	apply(t, pool, "onboarding", readmodels.Onboarding(), r.Entries)
	wanted := make(map[int64]bool)
	for range 1000 {
		wanted[random.Int64N(int64(len(r.Entries)))] = true
	}
	p, registered := newPastCases(t, pool, r.State), 0
	for _, e := range r.Entries {
		p.state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		for _, event := range e.Record.Events {
			p.see(e.Record.Sequence, event)
		}
		for registered < len(r.Owners) && p.born[r.Owners[registered].ID] > 0 {
			registered++
		}
		if wanted[e.Record.Sequence] && registered > 0 {
			p.compare(r.Owners[random.IntN(registered)], e.Record.Sequence)
			p.compareLists(random, r.Owners[:registered], e.Record.Sequence)
		}
	}
	for _, ref := range r.Owners[1:] { // before the registration
		at := p.born[ref.ID] - 1
		o, born, err := onboarding.OwnerAsOf(t.Context(), pool, ref, at)
		must(t, err)
		equalRows(t, "an owner before the registration", o, onboarding.Owner{})
		check(t, "the registration", born, at+1)
	}
	_, _, err := onboarding.OwnerAsOf(t.Context(), pool, r.Owners[0], int64(len(r.Entries)))
	check(t, "after the last record", err, projections.ErrAhead)
}

// TestOnboardingVersions checks the intervals of the versions of owners, documents, and triggers, however the log is cut, that
// nothing sealed is left of erased owners, and that an earlier build's records make a gap.
func TestOnboardingVersions(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r, pool := projectiontest.NewRegistrar(t, seed), projectiontest.Database(t)
	r.Play(1500)
	for _, n := range []int{400, 401, len(r.Entries)} {
		apply(t, pool, "onboarding", readmodels.Onboarding(), r.Entries[:n])
	}
	once := projectiontest.Database(t)
	apply(t, once, "onboarding", readmodels.Onboarding(), r.Entries)
	whole := projectiontest.Digests(t, once)
	for table, digest := range projectiontest.Digests(t, pool) {
		check(t, "the rows of "+table, digest, whole[table])
	}
	for _, table := range []string{"owner", "document", "trigger"} {
		versions := fmt.Sprintf("SELECT id::text AS key, since, until FROM %[1]s_history UNION ALL SELECT id::text, sequence, NULL FROM %[1]ss", table)
		rows, err := pool.Query(t.Context(), fmt.Sprintf(intervals, versions))
		must(t, err)
		wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		check(t, "wrong intervals of "+table, len(wrong), 0)
	}
	admin := asAdmin(t, pool)
	for _, ref := range r.Owners {
		if o, _ := r.State.Owner(ref); o.State != owner.Erased {
			continue
		}
		var left int
		must(t, admin.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM owner_history WHERE id = $1 AND (fields IS NOT NULL OR external_id IS NOT NULL)) +
			(SELECT count(*) FROM trigger_history h JOIN triggers t USING (id) WHERE t.owner_id = $1 AND h.reason IS NOT NULL)`, column.UUID(ref.ID)).Scan(&left))
		check(t, "sealed values of an erased owner", left, 0)
	}
	_, err := pool.Exec(t.Context(), "UPDATE history_bounds SET written = 700 WHERE journal = 'onboarding'")
	must(t, err)
	r.Play(1)
	apply(t, pool, "onboarding", readmodels.Onboarding(), r.Entries)
	_, _, err = onboarding.OwnerAsOf(t.Context(), pool, r.Owners[0], 700)
	begins := int64(len(r.Entries))
	if gap, ok := err.(*projections.HistoryError); !ok || gap.Journal != "onboarding" || gap.Dropped || gap.From >= begins || gap.From < 701 { //nolint:errorlint // not wrapped
		t.Errorf("before the gap: %v", err)
	}
	must(t, projections.Forget(t.Context(), pool, "onboarding", readmodels.Onboarding()...))
	apply(t, pool, "onboarding", readmodels.Onboarding(), r.Entries)
	_, _, err = onboarding.OwnerAsOf(t.Context(), pool, r.Owners[0], 700)
	must(t, err)
}
