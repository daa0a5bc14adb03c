package explain_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/onboarding/explain"
	"github.com/perpetua-exchange/perpetua/handlers/web/explanations"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

// deciding calls each with every record and the state that it met.
func deciding(t *testing.T, entries []record.Entry, each func(past.Met)) {
	t.Helper()
	state := onboarding.NewState()
	before := record.Before
	var at scalar.Time
	for _, e := range entries {
		var err error
		if e.Value, err = record.Encode(nil, e.Record); err != nil {
			t.Fatal(err)
		}
		each(past.Met{State: state, Before: before, Time: at, Entry: e, Build: "build/1"})
		state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		before, at = e.Position, e.Record.Time
	}
}

// facts are what the events of a journal say about a trigger. They use no rule.
type facts struct {
	owner.Ref
	tenant string
	// entitlement is that of the trigger.
	entitlement scalar.ID
	status      entitlement.Status
	result      entitlement.Result
	deadline    scalar.Time
	automatic   bool
	started     int64
	pinned      map[scalar.ID]int
	requests    map[string]int64 // by questionnaire and sequence
	open        []entitlement.Requirement
	records     []int64 // about it
}

// journal are the facts of a journal so far.
type journal struct {
	t         *testing.T
	triggers  map[scalar.ID]*facts
	order     []scalar.ID
	tenants   map[scalar.ID]string
	responses map[owner.Ref][]view.Response
	added     map[scalar.ID]int64 // the records of documents
	defined   map[scalar.ID]int64 // the last records of definitions
}

func newJournal(t *testing.T) *journal {
	return &journal{t: t, triggers: map[scalar.ID]*facts{}, tenants: map[scalar.ID]string{}, responses: map[owner.Ref][]view.Response{}, added: map[scalar.ID]int64{},
		defined: map[scalar.ID]int64{}}
}

// learn reads a record, and returns the triggers that it is about.
func (j *journal) learn(r *record.Record) (about []scalar.ID) {
	note := func(id scalar.ID) *facts {
		if !slices.Contains(about, id) {
			about = append(about, id)
			j.triggers[id].records = append(j.triggers[id].records, r.Sequence)
		}
		return j.triggers[id]
	}
	for _, e := range r.Events {
		switch e := e.(type) {
		case *onboarding.OwnerRegistered:
			j.tenants[e.Ref.ID] = e.Tenant
		case *onboarding.DocumentAdded:
			j.added[e.ID] = r.Sequence
		case *onboarding.EntitlementCreated:
			j.defined[e.ID] = r.Sequence
		case *onboarding.EntitlementChanged:
			j.defined[e.ID] = r.Sequence
		case *onboarding.ResponseAdded:
			j.responses[e.Ref] = append(j.responses[e.Ref], view.Response{ResponseAdded: *e, Sequence: r.Sequence})
		case *onboarding.TriggerCreated:
			j.triggers[e.ID] = &facts{Ref: e.Ref, tenant: j.tenants[e.Ref.ID], entitlement: e.EntitlementID, status: e.Status, deadline: e.Deadline, pinned: map[scalar.ID]int{}, requests: map[string]int64{}}
			j.order = append(j.order, e.ID)
			note(e.ID)
		case *onboarding.TriggerMoved:
			f := note(e.ID)
			f.status, f.result, f.deadline = e.Status, e.Result, e.Deadline
			if e.Action == entitlement.Start {
				f.started, f.automatic = r.Sequence, e.Terms.Approval == entitlement.Automatic
				for _, p := range e.Pinned {
					f.pinned[p.QuestionnaireID] = p.Version
				}
			}
			if e.Request != nil {
				for _, q := range e.Request.Questionnaires {
					f.requests[q.String()+" after "+strconv.FormatInt(r.Sequence, 10)] = r.Sequence
				}
			}
		case *onboarding.RequirementsChanged:
			note(e.ID).open = e.Open
		case *onboarding.NoticeGiven:
			if !e.TriggerID.IsZero() {
				note(e.TriggerID)
			}
		}
	}
	return about
}

// answered returns the newest version of a questionnaire that an owner has answered, and the sequence of the latest response.
func (j *journal) answered(ref owner.Ref, questionnaire string) (version int, sequence int64) {
	for _, r := range j.responses[ref] {
		if r.QuestionnaireID.String() == questionnaire {
			version, sequence = max(version, r.Number), r.Sequence
		}
	}
	return version, sequence
}

// evidence returns the counting responses of an owner, and their documents, from the events alone.
func (j *journal) evidence(ref owner.Ref) (e view.Evidence) {
	all := j.responses[ref]
	for i, r := range all {
		later := func(counts func(view.Response) bool) bool {
			return slices.ContainsFunc(all[i+1:], func(o view.Response) bool { return o.QuestionnaireID == r.QuestionnaireID && counts(o) })
		}
		newest, _ := j.answered(ref, r.QuestionnaireID.String())
		latest := !later(func(view.Response) bool { return true })
		counts := latest || r.Number == newest && !later(func(o view.Response) bool { return o.Number == newest })
		if !counts {
			continue
		}
		e.Responses = append(e.Responses, view.CountingResponse{ID: r.ResponseAdded.ID, QuestionnaireID: r.QuestionnaireID, Number: r.Number, Documents: r.Documents,
			Created: r.Created, Sequence: r.Sequence})
		for _, id := range r.Documents {
			if !slices.ContainsFunc(e.Documents, func(d view.NamedDocument) bool { return d.ID == id }) {
				e.Documents = append(e.Documents, view.NamedDocument{ID: id, Added: j.added[id]})
			}
		}
	}
	slices.SortFunc(e.Documents, func(a, b view.NamedDocument) int { return int(a.Added - b.Added) })
	return e
}

// value returns a number of a line.
func value(l arithmetic.Line, name string) string {
	for _, v := range l.Values {
		if v.Name == name {
			return v.Text
		}
	}
	return ""
}

func unix(at scalar.Time) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%06d", at/scalar.Second, at%scalar.Second), "0"), ".")
}

// check compares every number of an explanation with the events.
func (j *journal) check(x *explain.Explanation, r *record.Record, seen map[string]int) {
	j.t.Helper()
	f := j.triggers[x.TriggerID]
	wrong := func(format string, args ...any) {
		j.t.Helper()
		text, _ := json.Marshal(x)
		j.t.Fatalf("record %d: %s\n%s", r.Sequence, fmt.Sprintf(format, args...), text)
	}
	approved, due := false, false // by the rules
	for _, e := range r.Events {
		if e, ok := e.(*onboarding.TriggerMoved); ok && e.ID == x.TriggerID && e.By == onboarding.BySystem {
			approved = approved || e.Action == entitlement.Approve
			due = due || e.Action == entitlement.RequestVideoIdentification
		}
	}
	for _, l := range x.Arithmetic {
		if seen[l.Name]++; l.Result == "true" || l.Result == "false" {
			seen[l.Name+" "+l.Result]++
		}
		if err := l.Check(); err != nil {
			wrong("%v", err)
		}
		questionnaire, _, _ := strings.Cut(l.Subject, " ")
		version, sequence := j.answered(x.Ref, questionnaire)
		var got, want string
		switch l.Name {
		case entitlement.LineDefinitionMet:
			id, _ := scalar.ParseID(questionnaire)
			got, want = value(l, "answered_version")+" "+value(l, "required_version"), fmt.Sprint(version, " ", f.pinned[id])
		case entitlement.LineRequestMet:
			got, want = value(l, "response_sequence")+" "+value(l, "request_sequence"), fmt.Sprint(sequence, " ", f.requests[l.Subject])
		case entitlement.LineOpen:
			if got, want = l.Result, strconv.Itoa(len(f.open)); due && l.Subject == "" { // before the video identification
				want = "0"
			}
		case entitlement.LineVideoDue:
			got, want = l.Result, strconv.FormatBool(due)
		case entitlement.LineApproval:
			got, want = l.Result+" "+value(l, "approval_is_automatic"), fmt.Sprint(approved, map[bool]int{true: 1}[f.automatic])
		case entitlement.LineMet, onboarding.LineTriggerAllowed, onboarding.LineRequestsAllowed:
			got, want = l.Result, "true"
		case onboarding.LineDeadline:
			got, want = l.Result, unix(f.deadline)
		case onboarding.LineDeadlinePassed:
			got, want = l.Result+value(l, "time")+value(l, "deadline"), "true"+unix(r.Time)+unix(f.deadline)
		case onboarding.LineAnswered:
			got, want = l.Result, strconv.Itoa(version)
		case onboarding.LineAnswerable:
			got, want = l.Result, strconv.FormatBool(f.status != entitlement.Failed || r.Command.Actor != decide.Engine)
			if l.Result == "true" && f.status == entitlement.Failed { // another questionnaire of the definition can't be answered
				want = "true"
			}
		default:
			wrong("a calculation %s", l.Name)
		}
		if got != want {
			wrong("%s of %s is %s and not %s", l.Name, l.Subject, got, want)
		}
	}
	if x.After.Status != f.status || x.After.Result != nil && *x.After.Result != f.result || x.After.Result == nil && f.result != "" ||
		x.After.Deadline != nil && *x.After.Deadline != f.deadline || x.After.Deadline == nil && f.deadline != 0 {
		wrong("the state afterwards is not %s, %s, %s", f.status, f.result, f.deadline)
	}
	if d := x.Met.Definition; d != nil && (d.Position == nil || d.Position.Sequence != j.defined[x.EntitlementID]) {
		wrong("the definition is of record %d", j.defined[x.EntitlementID])
	}
	j.checkRequirements(x, wrong)
	counting := j.evidence(x.Ref)
	for _, a := range x.Responses {
		if !slices.ContainsFunc(counting.Responses, func(c view.CountingResponse) bool {
			return c.ID == a.ID && c.QuestionnaireID == a.QuestionnaireID && c.Number == a.Number && c.Sequence == a.Position.Sequence && c.Created == a.Created && slices.Equal(c.Documents, a.Documents)
		}) {
			wrong("the response %s", a.ID)
		}
	}
	for _, d := range x.Documents {
		if j.added[d.ID] != d.Position.Sequence || d.Expired != (d.ValidUntil != nil && *d.ValidUntil <= r.Time) {
			wrong("the document %s", d.ID)
		}
		seen[fmt.Sprint("document expired ", d.Expired)]++
	}
}

// checkRequirements compares the requirements after a record with the events: those that are not met are the open ones.
func (j *journal) checkRequirements(x *explain.Explanation, wrong func(string, ...any)) {
	f := j.triggers[x.TriggerID]
	var lacking, open []string
	for _, q := range x.After.Requirements {
		text := fmt.Sprintf("%s %d", q.Source, q.Position.Sequence)
		if q.QuestionnaireID != nil {
			version, sequence := j.answered(x.Ref, q.QuestionnaireID.String())
			if (q.AnsweredVersion == nil) != (version == 0) || q.AnsweredVersion != nil && (*q.AnsweredVersion != version || q.Answered.Sequence != sequence) {
				wrong("the responses to %s are %d, %d", q.QuestionnaireID, version, sequence)
			}
			if q.RequiredVersion != nil && *q.RequiredVersion != f.pinned[*q.QuestionnaireID] {
				wrong("version %d of %s is required", f.pinned[*q.QuestionnaireID], q.QuestionnaireID)
			}
			text += " " + q.QuestionnaireID.String()
		}
		if q.Met == (q.Lacks != nil) {
			wrong("%s is met and lacks something", text)
		}
		if !q.Met {
			lacking = append(lacking, text)
		}
	}
	for _, r := range f.open {
		sequence := r.Sequence
		if r.Source == entitlement.FromDefinition {
			sequence = f.started
		}
		if r.Source == entitlement.FromVideo {
			open = append(open, fmt.Sprintf("%s %d", r.Source, sequence))
		}
		for _, q := range r.Questionnaires {
			open = append(open, fmt.Sprintf("%s %d %s", r.Source, sequence, q))
		}
	}
	slices.Sort(lacking)
	slices.Sort(open)
	// The requirements of a trigger that has ended stay as they were.
	if f.status.IsOpen() && !slices.Equal(lacking, open) {
		wrong("not met are %v, and open are %v", lacking, open)
	}
}

// rowsOf projects a journal.
func rowsOf(t *testing.T, entries []record.Entry) *pgxpool.Pool {
	t.Helper()
	pool := projectiontest.Database(t)
	runner := projections.Config{Pool: pool, Log: projectiontest.NewLog(entries...), Journal: "onboarding"}.Runner(readmodels.Onboarding()...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = runner.Run(t.Context())
	}()
	t.Cleanup(func() { <-done }) // after the test's context has ended
	if err := runner.Wait(t.Context(), entries[len(entries)-1].Position.Sequence); err != nil {
		t.Fatal(err)
	}
	return pool
}

// TestEveryTriggerOfARandomJournal explains every record about every trigger of random journals. Each number is that of the events, the evidence in
// the rows is that of the events, and the state after the last record is that of the rows.
func TestEveryTriggerOfARandomJournal(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(6) {
		r := projectiontest.NewRegistrar(t, seed+100)
		r.Play(1500)
		pool := rowsOf(t, r.Entries)
		j := newJournal(t)
		last := map[scalar.ID]*explain.Explanation{}
		deciding(t, r.Entries, func(met past.Met) {
			rec := met.Entry.Record
			about := j.learn(rec)
			for _, id := range about {
				f := j.triggers[id]
				evidence := j.evidence(f.Ref)
				asked := explain.Request{Ref: f.Ref, TriggerID: id, Started: f.started, Defined: j.defined[f.entitlement], Evidence: evidence, Tenant: f.tenant}
				x, err := explain.New(met, asked)
				if err != nil {
					t.Fatalf("record %d: %v", rec.Sequence, err)
				}
				if !x.DecidedAgain && (rec.Command.Type != onboarding.CommandAddResponse || x.Rules >= 4) {
					t.Fatalf("record %d was not decided again", rec.Sequence)
				}
				j.check(x, rec, seen)
				for _, s := range x.Subjects {
					seen[string(s)]++
				}
				if before := last[id]; before != nil {
					if x.Met.Trigger == nil || x.Met.Trigger.Status != before.After.Status {
						t.Fatalf("record %d met another state than record %d left", rec.Sequence, before.Position.Sequence)
					}
				} else if x.Met.Trigger != nil {
					t.Fatalf("record %d met a trigger before its birth", rec.Sequence)
				}
				last[id] = x
				if own := rec.Command.Actor.Broker == f.tenant; own != (x.Command.Sub.Value != "") {
					t.Fatalf("record %d of %v shows %q to %s", rec.Sequence, rec.Command.Actor, x.Command.Sub.Value, f.tenant)
				}
				if all, err := explain.New(met, explain.Request{Ref: f.Ref, TriggerID: id, All: true}); err != nil || all.Command.Sub.Value != rec.Command.Actor.Sub {
					t.Fatalf("record %d of %v: %v", rec.Sequence, rec.Command.Actor, err)
				}
			}
			// To everybody else the record does not exist.
			for _, id := range j.order {
				f := j.triggers[id]
				if _, err := explain.New(met, explain.Request{Ref: f.Ref, TriggerID: id}); slices.Contains(about, id) == errors.Is(err, explanations.ErrForeign) {
					t.Fatalf("record %d, for trigger %s: %v", rec.Sequence, id, err)
				}
			}
		})
		if len(last) != len(r.Triggers) {
			t.Errorf("%d of %d triggers were explained", len(last), len(r.Triggers))
		}
		j.compareRows(pool, r, last)
	}
	t.Log(seen)
	for _, what := range []string{"application", "start", "requirements", "notice", "request_information", "request_video_identification", "complete_video_identification",
		"block", "release", "approve", "reject", "cancel", "terminate", "fail", "definition_met true", "definition_met false", "request_met true", "request_met false",
		"automatic_approval true", "automatic_approval false", "requirements_met true", "video_identification_due true", "video_identification_due false", "deadline_passed true",
		"questionnaire_can_be_answered true", "questionnaire_can_be_answered false", "document expired false"} {
		if seen[what] == 0 {
			t.Errorf("there was no %s", what)
		}
	}
}

// compareRows compares the explanations of the last records with the rows, and the evidence in the rows with that of the events.
func (j *journal) compareRows(pool *pgxpool.Pool, r *projectiontest.Registrar, last map[scalar.ID]*explain.Explanation) {
	j.t.Helper()
	ctx := j.t.Context()
	for _, id := range r.Triggers {
		x, f := last[id], j.triggers[id]
		row, found, asOf, err := view.OneTrigger(ctx, pool, view.Operator, f.Ref, id)
		if err != nil || !found {
			j.t.Fatal(found, err)
		}
		result := entitlement.NoResult
		if x.After.Result != nil {
			result = *x.After.Result
		}
		if d, _, _, err := view.OneEntitlement(ctx, pool, x.EntitlementID); err != nil || d.Sequence != j.defined[x.EntitlementID] {
			j.t.Errorf("the definition %s is of record %d: %v", x.EntitlementID, d.Sequence, err)
		}
		if row.Status != x.After.Status || row.Result != result || row.Updated != x.After.Updated || row.Started != f.started || !slices.Contains(f.records, row.Sequence) {
			j.t.Errorf("trigger %s: the row has %s, %s, and record %d", id, row.Status, row.Result, row.Sequence)
		}
		var questionnaires []scalar.ID
		for _, a := range j.responses[f.Ref] {
			questionnaires = append(questionnaires, a.QuestionnaireID)
		}
		got, _, err := view.EvidenceOf(ctx, pool, f.Ref, questionnaires, asOf)
		if err != nil {
			j.t.Fatal(err)
		}
		want := j.evidence(f.Ref)
		for i := range got.Documents {
			got.Documents[i] = view.NamedDocument{ID: got.Documents[i].ID, Added: got.Documents[i].Added}
		}
		if a, b := fmt.Sprint(got), fmt.Sprint(want); a != b {
			j.t.Errorf("the rows have the evidence\n%s\nand not\n%s", a, b)
		}
		if none, _, err := view.EvidenceOf(ctx, pool, f.Ref, questionnaires, 1); err != nil || len(none.Responses)+len(none.Documents) > 0 {
			j.t.Errorf("evidence before the first response: %v, %v", none, err)
		}
	}
}

// TestPending explains all open requirements of random journals: each lacks what the events say, and the record that required it
// is about its trigger.
func TestPending(t *testing.T) {
	seen := map[explain.Lack]int{}
	for seed := range uint64(3) {
		r := projectiontest.NewRegistrar(t, seed+200)
		r.Play(700)
		pool, j := rowsOf(t, r.Entries), newJournal(t)
		for _, e := range r.Entries {
			j.learn(e.Record)
		}
		for _, ref := range r.Owners {
			open, asOf, err := view.PendingRequirements(t.Context(), pool, view.Operator, ref)
			if err != nil {
				t.Fatal(err)
			}
			for i := range open {
				p := &open[i]
				evidence, _, err := view.EvidenceOf(t.Context(), pool, ref, p.Questionnaires, asOf)
				if err != nil {
					t.Fatal(err)
				}
				x, f := explain.NewPending(p, "reason", &evidence), j.triggers[p.TriggerID]
				if x.TriggerID != p.TriggerID || !slices.Contains(f.records, x.Position.Sequence) || x.Source == entitlement.FromDefinition && x.Position.Sequence != f.started ||
					!slices.Equal(x.Questionnaires, p.Questionnaires) || len(x.Missing) != max(len(p.Questionnaires), 1) {
					t.Errorf("%+v of %+v", x, p)
				}
				for n, m := range x.Missing {
					seen[*m.Lacks]++
					if m.Met {
						t.Errorf("%+v is met", m)
					}
					if m.QuestionnaireID == nil {
						continue
					}
					version, sequence := j.answered(ref, m.QuestionnaireID.String())
					l := x.Arithmetic[n]
					if err := l.Check(); err != nil || l.Result != "false" {
						t.Errorf("%v: %v", l, err)
					}
					want := fmt.Sprint(sequence, " ", x.Position.Sequence)
					got := value(l, "response_sequence") + " " + value(l, "request_sequence")
					if x.Source == entitlement.FromDefinition {
						want, got = fmt.Sprint(version, " ", f.pinned[*m.QuestionnaireID]), value(l, "answered_version")+" "+value(l, "required_version")
					}
					if got != want {
						t.Errorf("%v: %s and not %s", l, got, want)
					}
				}
			}
		}
	}
	t.Log(seen)
	for _, lack := range []explain.Lack{explain.Unanswered, explain.BeforeRequest, explain.Identification} {
		if seen[lack] == 0 {
			t.Errorf("nothing was %s", lack)
		}
	}
}

// TestARecordThatThisBuildDecidesOtherwise changes the code of a refusal in the record.
func TestARecordThatThisBuildDecidesOtherwise(t *testing.T) {
	r := projectiontest.NewRegistrar(t, 3)
	r.Play(400)
	found := false
	deciding(t, r.Entries, func(met past.Met) {
		for i, e := range met.Entry.Record.Events {
			moved, ok := e.(*onboarding.TriggerMoved)
			if !ok || moved.By != onboarding.BySystem || found {
				continue
			}
			forged, changed := *moved, *met.Entry.Record
			forged.Code = "FORGED"
			changed.Events = slices.Clone(changed.Events)
			changed.Events[i] = &forged
			met.Entry.Record = &changed
			var err error
			if met.Entry.Value, err = record.Encode(nil, &changed); err != nil {
				t.Fatal(err)
			}
			_, err = explain.New(met, explain.Request{Ref: moved.Ref, TriggerID: moved.ID})
			var different *explanations.DifferentError
			if !errors.As(err, &different) || different.Build != "build/1" || different.Reason == "" {
				t.Errorf("%v", err)
			}
			found = true
		}
	})
	if !found {
		t.Error("the rules moved no trigger")
	}
}

// TestReadersOfADecidedState explains records while others read the states, copy them, and explain the record for another trigger. Run
// with -race, it finds anything that a decision writes to a state and a reader reads.
func TestReadersOfADecidedState(t *testing.T) {
	r := projectiontest.NewRegistrar(t, 9)
	r.Play(600)
	j := newJournal(t)
	decided := 0
	deciding(t, r.Entries, func(met past.Met) {
		about := j.learn(met.Entry.Record)
		if len(about) == 0 || decided >= 60 {
			return
		}
		decided++
		state := met.State.(*onboarding.State)
		before := onboarding.Codec().Append(nil, state)
		var deciding sync.Mutex // as history.States holds one
		var all sync.WaitGroup
		for _, id := range about {
			f := j.triggers[id]
			all.Go(func() {
				deciding.Lock()
				defer deciding.Unlock()
				if _, err := explain.New(met, explain.Request{Ref: f.Ref, TriggerID: id, Started: f.started}); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() {
				state.Trigger(id)
				state.Owner(f.Ref)
				state.DueEntries(0, 100)
				state.TradingAccounts()
			})
			all.Go(func() {
				if !bytes.Equal(onboarding.Codec().Append(nil, state), before) {
					t.Error("a decision has changed the state")
				}
			})
		}
		all.Wait()
	})
	if decided < 30 {
		t.Errorf("only %d records were decided again", decided)
	}
}
