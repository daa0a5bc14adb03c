package onboarding_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// memories are two folds of one log under rules that forget: that of the log forgets nearly all, and whole nothing. rows are what
// whole knew of deliveries after each record, by its sequence.
type memories struct {
	*log
	r     *rapid.T
	keep  int
	whole *onboarding.State
	rows  []map[scalar.ID]*onboarding.Delivery
	world
	forgot map[string]int // how often what was decided
}

func newMemories(t testing.TB, r *rapid.T, keep int) *memories {
	m := &memories{log: owners(t), r: r, keep: keep, whole: onboarding.NewState(), forgot: make(map[string]int)}
	m.must(operator, &decide.ActivateRules{Rules: 2})
	if rapid.Bool().Draw(r, "the newest rules") {
		m.newest()
	}
	m.must(operator, define(entitlement.Manual))
	m.entitlements = []scalar.ID{m.last[0].(*onboarding.EntitlementCreated).ID}
	m.state.Keep(keep)
	m.whole.Keep(1 << 30)
	for range m.records {
		m.follow(len(m.rows))
	}
	return m
}

// follow has the whole take over a record.
func (m *memories) follow(n int) {
	record := m.records[n]
	var events []decide.Event
	for _, e := range record.events {
		event, err := onboarding.Rules().Registry().Decode(e.kind, e.version, e.data)
		if err != nil {
			m.t.Fatal(err)
		}
		events = append(events, event)
	}
	m.whole.Evolve(record.at, record.command, record.outcome, events)
	rows := make(map[scalar.ID]*onboarding.Delivery)
	for _, id := range m.deliveries {
		if v, known := m.whole.Delivery(id); known {
			rows[id] = v
		}
	}
	m.rows = append(m.rows, rows)
}

// decided is what a state makes of a command, as text.
func (m *memories) decided(s *onboarding.State, c decide.Command) (string, decide.Decision) {
	d, err := s.Decide(m.stamp(), c)
	if refusal := new(decide.Refusal); errors.As(err, &refusal) {
		return refusal.Code, d
	}
	text, failed := json.Marshal(d.Events)
	if err != nil || failed != nil {
		m.t.Fatal(err, failed)
	}
	return string(text), d
}

// give has both states decide, of which one may have a row, and takes over what is decided.
func (m *memories) give(actor decide.Actor, plain, told decide.Payload) (got, want string) {
	c := decide.Command{Type: plain.CommandType(), Actor: actor, Payload: plain}
	want, _ = m.decided(m.whole, c)
	c.Payload = told
	got, d := m.decided(m.state, c)
	if len(d.Events) > 0 {
		m.fold(c.Recorded(), d)
		m.world.note(m.last)
		m.follow(len(m.rows))
	}
	return got, want
}

// same has both states decide alike.
func (m *memories) same(actor decide.Actor, p decide.Payload) {
	if got, want := m.give(actor, p, p); got != want {
		m.r.Fatalf("%s: %s, and with all that was forgotten %s", p.CommandType(), got, want)
	}
}

// attempt has an attempt recorded of whichever delivery. Nobody attempts what is forgotten but who was late.
func (m *memories) attempt() {
	id := pick(m.r, m.deliveries, "delivery")
	p := &onboarding.RecordAttempt{ID: id, Number: 1, Started: m.now, StatusCode: rapid.SampledFrom([]int{200, 500}).Draw(m.r, "status")}
	if v, known := m.whole.Delivery(id); known {
		p.Number = v.Attempts + 1
	}
	if rapid.Bool().Draw(m.r, "to be tried again") {
		p.Schedule = webhook.Schedule{scalar.Second, scalar.Second}
	}
	got, want := m.give(sender, p, p)
	late := want == "DELIVERY_NOT_OPEN" || strings.Contains(want, `"status":"canceled"`)
	if got != want && (got != "DELIVERY_NOT_FOUND" || !late) {
		m.r.Fatalf("an attempt: %s, and with all that was forgotten %s", got, want)
	}
}

// gone are the deliveries that the state has forgotten, in the order of the log.
func (m *memories) gone() []scalar.ID {
	return slices.DeleteFunc(slices.Clone(m.deliveries), func(id scalar.ID) bool {
		_, known := m.state.Delivery(id)
		return known
	})
}

// replays has a delivery replayed, with the row that there was some records ago.
func (m *memories) replays() {
	id := pick(m.r, m.deliveries, "delivery")
	if gone := m.gone(); len(gone) > 0 && rapid.Bool().Draw(m.r, "of the forgotten") {
		id = pick(m.r, gone, "forgotten")
	}
	asOf := len(m.rows) - min(len(m.rows), rapid.SampledFrom([]int{1, 1, 1, 2, 3, 5, 9, 20}).Draw(m.r, "old"))
	plain := &onboarding.ReplayDelivery{ID: id, Operator: rapid.Bool().Draw(m.r, "operator")}
	told := *plain
	told.AsOf = m.records[asOf].at.Sequence
	if v, known := m.rows[asOf][id]; known {
		row := *v
		row.Before = 0 // no row has it
		told.Row = &row
	}
	actor := rapid.SampledFrom([]decide.Actor{alpha, alpha, beta}).Draw(m.r, "client")
	if plain.Operator {
		actor = operator
	}
	_, known := m.state.Delivery(id)
	forgotten, current := m.state.Forgotten(), told.AsOf == m.records[len(m.records)-1].at.Sequence
	got, want := m.give(actor, plain, &told)
	if got != want && (current || got != onboarding.CodeDeliveryForgotten || told.AsOf >= forgotten) {
		m.r.Fatalf("a replay by a row as of %d, where what ended by %d is forgotten: %s, and with all that was forgotten %s", told.AsOf, forgotten, got, want)
	}
	if got == want && !known && want != "DELIVERY_NOT_FOUND" {
		if got[0] == '[' {
			got = "replayed"
		}
		m.forgot[got]++
	}
	if got != want {
		m.forgot["refused for now"]++
	}
}

// lives does one thing of those that deliveries are about.
func (m *memories) lives() {
	ref := rapid.SampledFrom([]owner.Ref{ann, ann, corp, bob}).Draw(m.r, "owner")
	client := rapid.SampledFrom([]decide.Actor{alpha, alpha, beta}).Draw(m.r, "client")
	n := rapid.ByteRange(50, 52).Draw(m.r, "webhook")
	switch rapid.IntRange(0, 19).Draw(m.r, "what") {
	case 0:
		m.same(client, &onboarding.DeleteWebhook{ID: id(n)})
	case 1, 2:
		m.same(client, hook(n))
	case 3, 4, 5:
		m.same(client, &onboarding.TestWebhook{ID: id(n)})
	case 6, 7:
		m.same(client, &onboarding.CreateTrigger{Ref: ref, EntitlementID: m.entitlements[0]})
	case 8:
		m.same(operator, act(pick(m.r, m.triggers, "trigger"), entitlement.Reject))
	case 9:
		m.same(operator, rapid.SampledFrom([]decide.Payload{erase(ref), &onboarding.SetRetention{Seconds: 60}}).Draw(m.r, "of an end"))
	case 10, 11, 12, 13, 14:
		m.attempt()
	default:
		m.replays()
	}
}

// passes lets time go by and does what becomes due.
func (m *memories) passes() {
	m.now += scalar.Time(rapid.Int64Range(0, int64(30*scalar.Second)).Draw(m.r, "passes"))
	for m.state.Due(m.now) != decide.Nothing {
		m.fold(decide.Recorded{Type: "engine.step", Actor: decide.Engine}, m.state.Step(m.stamp(), false))
		m.world.note(m.last)
		m.follow(len(m.rows))
	}
}

// held sees that the state has what the whole has, but for what closed first beyond the bound.
func (m *memories) held() {
	kept := 0
	for id, v := range m.rows[len(m.rows)-1] {
		mine, known := m.state.Delivery(id)
		switch {
		case known && *mine != *v:
			m.r.Fatalf("%+v, and in the whole %+v", *mine, *v)
		case known && !v.Status.IsOpen():
			kept++
		case !known && (v.Status.IsOpen() || v.Closed > m.state.Forgotten()):
			m.r.Fatalf("%+v is forgotten, where what ended by %d is", *v, m.state.Forgotten())
		}
	}
	if kept > m.keep {
		m.r.Fatalf("%d closed deliveries are kept, of at most %d", kept, m.keep)
	}
	mine, theirs := m.state.OpenDeliveries(), m.whole.OpenDeliveries()
	if !slices.EqualFunc(mine, theirs, func(a, b *onboarding.Delivery) bool { return *a == *b }) {
		m.r.Fatalf("open are %v, and in the whole %v", mine, theirs)
	}
}

// TestForgettingChangesNoAnswer has deliveries live at random: a state that forgets answers each command as one that forgets
// nothing, given rows that are up to date. Given older ones it does, or asks for newer ones.
func TestForgettingChangesNoAnswer(t *testing.T) {
	met := make(map[string]int)
	rapid.Check(t, func(r *rapid.T) {
		m := newMemories(t, r, rapid.IntRange(0, 3).Draw(r, "kept"))
		for range rapid.IntRange(1, 120).Draw(r, "commands") {
			m.lives()
			m.passes()
			m.held()
			if rapid.IntRange(0, 9).Draw(r, "save") == 0 {
				m.state = reread(r, m.state)
				m.state.Keep(m.keep)
			}
		}
		for what, n := range m.forgot {
			met[what] += n
		}
	})
	if met["replayed"] == 0 || met["refused for now"] == 0 {
		t.Errorf("of what is forgotten, little was asked for: %v", met)
	}
}

// TestNothingIsForgottenByTheFirstRules, and what there is too much of is once the next are in force.
func TestNothingIsForgottenByTheFirstRules(t *testing.T) {
	l := owners(t)
	l.state.Keep(2)
	l.must(alpha, hook(50))
	var made []scalar.ID
	closed := func() {
		t.Helper()
		l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
		made = append(made, l.delivery().ID)
		l.must(sender, l.attempt(l.delivery().ID, 200))
	}
	for range 5 {
		closed()
	}
	ended := int64(len(l.records))
	known := func() (out []bool) {
		for _, id := range made {
			_, is := l.state.Delivery(id)
			out = append(out, is)
		}
		return out
	}
	if got := known(); slices.Contains(got, false) || l.state.Forgotten() != 0 {
		t.Errorf("rules 1 know of %v", got)
	}
	l.must(alpha, &onboarding.ReplayDelivery{ID: made[4]})
	if e := l.last[0].(*onboarding.DeliveryReplayed); decide.VersionOf(e) != 1 || l.records[len(l.records)-1].events[0].version != 1 {
		t.Errorf("rules 1 tell of a replay by version %d", decide.VersionOf(e))
	}
	l.must(operator, &decide.ActivateRules{Rules: 2})
	if got := known(); !slices.Equal(got, []bool{false, false, true, true, true}) || l.state.Forgotten() != ended-6 {
		t.Errorf("rules 2 know of %v, and %d of %d is forgotten", got, l.state.Forgotten(), ended)
	}
	l.must(sender, l.attempt(made[4], 200))
	if got := known(); !slices.Equal(got, []bool{false, false, false, true, true}) {
		t.Errorf("after another end %v are known", got)
	}
	if n := l.state.Totals(); n.Deliveries != 5 || n.Retained != 2 {
		t.Errorf("%+v", n)
	}
	// What the rows say of the first, with all that could be wrong about it.
	row := &onboarding.Delivery{ID: made[0], WebhookID: id(50), NoticeID: id(80), Tenant: "alpha", Status: webhook.Delivered, Attempts: 1,
		Made: onboarding.EventPosition{Sequence: 5, Ordinal: 1}, Closed: 6}
	other := func(change func(*onboarding.Delivery)) *onboarding.Delivery {
		c := *row
		change(&c)
		return &c
	}
	replay := func(asOf int64, of *onboarding.Delivery) *onboarding.ReplayDelivery {
		return &onboarding.ReplayDelivery{ID: made[0], AsOf: asOf, Row: of}
	}
	forgotten := l.state.Forgotten()
	l.run([]expect{
		{"nobody looked", alpha, replay(0, nil), "DELIVERY_FORGOTTEN"},
		{"by old rows", alpha, replay(forgotten-1, row), "DELIVERY_FORGOTTEN"},
		{"by old rows that have it not", alpha, replay(forgotten-1, nil), "DELIVERY_FORGOTTEN"},
		{"by rows that have it not", alpha, replay(forgotten, nil), "DELIVERY_NOT_FOUND"},
		{"by the row of another", alpha, replay(forgotten, other(func(v *onboarding.Delivery) { v.ID = made[1] })), "DELIVERY_NOT_FOUND"},
		{"where it is open by its row", alpha, replay(forgotten, other(func(v *onboarding.Delivery) { v.Status, v.Closed = webhook.Pending, 0 })), "DELIVERY_FORGOTTEN"},
		{"where it ended later by its row", alpha, replay(forgotten, other(func(v *onboarding.Delivery) { v.Closed = forgotten + 1 })), "DELIVERY_FORGOTTEN"},
		{"by another tenant", beta, replay(forgotten, row), "DELIVERY_NOT_FOUND"},
		{"of what was canceled", alpha, replay(forgotten, other(func(v *onboarding.Delivery) { v.Status = webhook.Canceled })), "DELIVERY_CANCELED"},
		{"by its tenant", alpha, replay(forgotten, row), "delivery.replayed"},
		{"again", alpha, replay(forgotten, row), "DELIVERY_OPEN"},
	})
	want := onboarding.Delivery{ID: made[0], WebhookID: id(50), NoticeID: id(80), Tenant: "alpha", Status: webhook.Pending, Attempts: 1, Before: 1, Made: row.Made}
	if v, known := l.state.Delivery(made[0]); !known || *v != want {
		t.Errorf("%+v, want %+v", v, want)
	}
}

// TestForgottenDeliveriesAboutOwners: what the state knows of owners and registrations counts, also of deliveries that it has
// forgotten.
func TestForgottenDeliveriesAboutOwners(t *testing.T) {
	l := owners(t)
	l.must(operator, &decide.ActivateRules{Rules: 2})
	l.state.Keep(0)
	l.must(alpha, hook(50))
	l.must(alpha, hook(51))
	p := define(entitlement.Manual)
	l.must(operator, p)
	of := l.last[0].(*onboarding.EntitlementCreated).ID
	l.must(alpha, &onboarding.CreateTrigger{Ref: ann, EntitlementID: of})
	trigger := l.last[0].(*onboarding.TriggerCreated).ID
	l.steps()
	l.must(operator, act(trigger, entitlement.Reject))
	var rows []*onboarding.Delivery
	for _, e := range l.last {
		if e, is := e.(*onboarding.DeliveryCreated); is {
			v, _ := l.state.Delivery(e.ID)
			row := *v
			row.Status, row.Attempts, row.Closed = webhook.Delivered, 1, int64(len(l.records))+1
			rows = append(rows, &row)
			l.must(sender, l.attempt(e.ID, 200))
		}
	}
	replay := func(n int, operator bool) *onboarding.ReplayDelivery {
		return &onboarding.ReplayDelivery{ID: rows[n].ID, Operator: operator, Row: rows[n], AsOf: int64(len(l.records))}
	}
	l.must(alpha, &onboarding.DeleteWebhook{ID: id(51)})
	l.run([]expect{{"to a registration that is gone", alpha, replay(1, false), "DELIVERY_CANCELED"}})
	l.must(beta, hook(51))
	l.run([]expect{
		{"to one that another tenant has by now", alpha, replay(1, false), "DELIVERY_CANCELED"},
		{"by that tenant", beta, replay(1, false), "DELIVERY_NOT_FOUND"},
		{"by an operator", operator, replay(1, true), "DELIVERY_CANCELED"},
	})
	l.must(operator, &onboarding.SetRetention{Seconds: 60})
	l.must(operator, erase(ann))
	l.run([]expect{
		{"about one who is restricted", alpha, replay(0, false), "PERSON_NOT_FOUND"},
		{"by an operator, about one who is restricted", operator, replay(0, true), "OWNER_RESTRICTED"},
	})
	l.now += 61 * scalar.Second
	l.steps()
	l.run([]expect{
		{"about one who is erased", alpha, replay(0, false), "OWNER_ERASED"},
		{"by an operator, about one who is erased", operator, replay(0, true), "OWNER_ERASED"},
	})
}

// TestWhatEndsTogetherIsForgottenInOrder: of deliveries that one record closes, those that were made first go first, so that every fold
// keeps the same.
func TestWhatEndsTogetherIsForgottenInOrder(t *testing.T) {
	for name, end := range map[string]func(*log){
		"by its registration": func(l *log) { l.must(alpha, &onboarding.DeleteWebhook{ID: id(50)}) },
		"by its owner's end": func(l *log) {
			l.must(operator, erase(ann))
			l.steps()
		},
	} {
		l := owners(t)
		l.must(operator, &decide.ActivateRules{Rules: 2})
		l.must(operator, &onboarding.SetRetention{})
		l.state.Keep(3)
		l.must(alpha, hook(50))
		l.must(operator, define(entitlement.Manual))
		of := l.last[0].(*onboarding.EntitlementCreated).ID
		var made []scalar.ID
		for range 20 {
			l.must(alpha, &onboarding.CreateTrigger{Ref: ann, EntitlementID: of})
			trigger := l.last[0].(*onboarding.TriggerCreated).ID
			l.steps()
			l.must(operator, act(trigger, entitlement.Reject))
			made = append(made, l.delivery().ID)
		}
		end(l)
		for n, id := range made {
			if _, known := l.state.Delivery(id); known != (n >= 17) {
				t.Errorf("%s: delivery %d of 20 is known: %t", name, n, known)
			}
		}
	}
}
