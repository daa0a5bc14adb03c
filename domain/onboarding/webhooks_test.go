package onboarding_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

var sender = decide.Actor{System: "sender"}

func signing(name string) onboarding.SigningKey {
	return onboarding.SigningKey{KeyID: name, Public: hmac(name), Private: sealed()}
}

func hook(n byte, types ...webhook.EventType) *onboarding.CreateWebhook {
	return &onboarding.CreateWebhook{ID: id(n), URL: "https://receiver.example/hook", All: len(types) == 0, Types: types, Key: signing("a")}
}

// attempt tells how the next attempt of a delivery went.
func (l *log) attempt(delivery scalar.ID, status int) *onboarding.RecordAttempt {
	l.t.Helper()
	v, known := l.state.Delivery(delivery)
	if !known {
		l.t.Fatal("there is no such delivery")
	}
	return &onboarding.RecordAttempt{ID: delivery, Number: v.Attempts + 1, Started: l.now, DurationMS: 3, StatusCode: status, Reply: sealed(),
		Schedule: webhook.Schedule{10 * scalar.Second, 20 * scalar.Second}}
}

// delivery returns the last delivery that the latest record made.
func (l *log) delivery() *onboarding.DeliveryCreated {
	l.t.Helper()
	e, ok := l.last[len(l.last)-1].(*onboarding.DeliveryCreated)
	if !ok {
		l.t.Fatalf("%T is no delivery", l.last[len(l.last)-1])
	}
	return e
}

func TestRegistrations(t *testing.T) {
	l := owners(t)
	spoilt := func(spoil func(*onboarding.CreateWebhook)) *onboarding.CreateWebhook {
		p := hook(50)
		spoil(p)
		return p
	}
	l.run([]expect{
		{"of one type", alpha, hook(0, webhook.Test), "webhook.created"},
		{"without any id", alpha, spoilt(func(p *onboarding.CreateWebhook) { p.ID = scalar.ID{} }), "INVALID_ID"},
		{"in the clear", alpha, spoilt(func(p *onboarding.CreateWebhook) { p.URL = "http://receiver.example" }), "INVALID_URL"},
		{"nowhere", alpha, spoilt(func(p *onboarding.CreateWebhook) { p.URL = "https://" }), "INVALID_URL"},
		{"far away", alpha, spoilt(func(p *onboarding.CreateWebhook) { p.URL += strings.Repeat("x", 2048) }), "INVALID_URL"},
		{"of nothing", alpha, spoilt(func(p *onboarding.CreateWebhook) { p.All = false }), "INVALID_EVENT_TYPES"},
		{"of what is unknown", alpha, hook(50, "x"), "INVALID_EVENT_TYPES"},
		{"of one type twice", alpha, hook(50, webhook.Test, webhook.Test), "INVALID_EVENT_TYPES"},
		{"without a key's id", alpha, spoilt(func(p *onboarding.CreateWebhook) { p.Key.KeyID = "" }), "INVALID_KEY_ID"},
		{"without a key", alpha, spoilt(func(p *onboarding.CreateWebhook) { p.Key.Public = nil }), "INVALID_PUBLIC_KEY"},
		{"without a private key", alpha, spoilt(func(p *onboarding.CreateWebhook) { p.Key.Private = nil }), "INVALID_PRIVATE_KEY"},
		{"of all, whatever is named", alpha, spoilt(func(p *onboarding.CreateWebhook) { p.Types = []webhook.EventType{"x"} }), "webhook.created"},
		{"with an id that is there", beta, hook(50), "WEBHOOK_ID_TAKEN"},
		{"another tenant's is deleted", beta, &onboarding.DeleteWebhook{ID: id(50)}, "WEBHOOK_NOT_FOUND"},
		{"deleted", alpha, &onboarding.DeleteWebhook{ID: id(0)}, "webhook.deleted"},
		{"deleted again", alpha, &onboarding.DeleteWebhook{ID: id(0)}, "WEBHOOK_NOT_FOUND"},
	})
	if w, _ := l.state.Webhook(id(50)); !w.All || len(w.Types) != 0 || w.Tenant != "alpha" {
		t.Errorf("%+v", w)
	}
	for n := byte(51); n < 70; n++ {
		l.must(alpha, hook(n))
	}
	if got := l.do(alpha, hook(70)); got != "TOO_MANY_WEBHOOKS" || len(l.state.Webhooks("alpha")) != webhook.MaxPerTenant {
		t.Errorf("a 21st: %s", got)
	}
	l.must(beta, hook(70))
	l.replayed()
}

// TestRotations: both keys are there for a while, then the next one alone.
func TestRotations(t *testing.T) {
	l := owners(t)
	l.must(alpha, hook(50))
	rotate := func(key string, overlap scalar.Time) *onboarding.RotateWebhook {
		return &onboarding.RotateWebhook{ID: id(50), Key: signing(key), Overlap: overlap}
	}
	l.run([]expect{
		{"another tenant's", beta, rotate("b", 0), "WEBHOOK_NOT_FOUND"},
		{"without a key", alpha, &onboarding.RotateWebhook{ID: id(50)}, "INVALID_KEY_ID"},
		{"for ever", alpha, rotate("b", 31*scalar.Day), "INVALID_OVERLAP"},
		{"for a day", alpha, rotate("b", scalar.Day), "webhook.rotation_begun"},
		{"twice", alpha, rotate("c", scalar.Day), "WEBHOOK_ROTATING"},
	})
	if w, _ := l.state.Webhook(id(50)); w.Key.KeyID != "a" || w.Next.KeyID != "b" || w.NextFrom != start+scalar.Day {
		t.Errorf("%+v", w)
	}
	l.now += scalar.Day
	if got := l.steps(); len(got) != 1 || got[0] != "webhook.rotated" {
		t.Errorf("%q", got)
	}
	if w, _ := l.state.Webhook(id(50)); w.Key.KeyID != "b" || w.Next != nil || w.NextFrom != 0 {
		t.Errorf("%+v", w)
	}
	l.must(alpha, rotate("c", scalar.Day))
	l.must(alpha, &onboarding.DeleteWebhook{ID: id(50)})
	if _, some := l.state.NextDue(); some {
		t.Error("the rotation of what is deleted is due")
	}
	l.replayed()
}

// TestWhoIsTold: each notice goes to the registrations of the owner's tenant that want it, and to no other.
func TestWhoIsTold(t *testing.T) {
	l := owners(t)
	l.must(alpha, hook(50))
	l.must(alpha, hook(51, webhook.EntitlementFailed))
	l.must(beta, hook(52))
	trigger := l.trigger(define(entitlement.Manual, l.questionnaire("a")))
	if e := l.delivery(); e.WebhookID != id(50) || e.Type != webhook.RequirementsQuestionnaire || e.Ref != ann {
		t.Errorf("%+v", e)
	}
	l.must(operator, act(trigger, entitlement.Cancel))
	var to []scalar.ID
	ids := make(map[scalar.ID]bool)
	for _, e := range l.last {
		switch e := e.(type) {
		case *onboarding.NoticeGiven:
			ids[e.ID] = true
		case *onboarding.DeliveryCreated:
			to, ids[e.ID] = append(to, e.WebhookID), true
		}
	}
	if len(to) != 2 || to[0] != id(50) || to[1] != id(51) || len(ids) != 3 {
		t.Errorf("%v, %d ids", to, len(ids))
	}
	l.replayed()
}

func TestTestEvents(t *testing.T) {
	l := owners(t)
	l.must(alpha, hook(50))
	l.must(alpha, hook(51, webhook.EntitlementFailed))
	l.run([]expect{
		{"of another tenant", beta, &onboarding.TestWebhook{ID: id(50)}, "WEBHOOK_NOT_FOUND"},
		{"not selected", alpha, &onboarding.TestWebhook{ID: id(51)}, "EVENT_NOT_SELECTED"},
		{"selected", alpha, &onboarding.TestWebhook{ID: id(50)}, "notice.given delivery.created"},
	})
	if e := l.delivery(); e.WebhookID != id(50) || e.Type != webhook.Test || !e.Ref.ID.IsZero() {
		t.Errorf("%+v", e)
	}
	l.replayed()
}

// TestAttempts follows a delivery through its schedule to its end, its replay and its receipt.
func TestAttempts(t *testing.T) {
	l := owners(t)
	l.must(alpha, hook(50))
	l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
	d := l.delivery().ID
	spoilt := func(spoil func(*onboarding.RecordAttempt)) *onboarding.RecordAttempt {
		p := l.attempt(d, 500)
		spoil(p)
		return p
	}
	replay := &onboarding.ReplayDelivery{ID: d}
	l.run([]expect{
		{"by a client", alpha, l.attempt(d, 200), "FORBIDDEN"},
		{"of nothing", sender, &onboarding.RecordAttempt{ID: id(9)}, "DELIVERY_NOT_FOUND"},
		{"of no status", sender, l.attempt(d, 99), "INVALID_STATUS_CODE"},
		{"with an error of two lines", sender, spoilt(func(p *onboarding.RecordAttempt) { p.Error = "a\nb" }), "INVALID_ERROR"},
		{"with a long reply", sender, spoilt(func(p *onboarding.RecordAttempt) { p.Reply = make([]byte, 2000) }), "INVALID_REPLY"},
		{"before all time", sender, spoilt(func(p *onboarding.RecordAttempt) { p.Started = -1 }), "INVALID_STARTED"},
		{"to be tried before", sender, spoilt(func(p *onboarding.RecordAttempt) { p.RetryAfter = -1 }), "INVALID_RETRY_AFTER"},
		{"by no schedule", sender, spoilt(func(p *onboarding.RecordAttempt) { p.Schedule[0] = -1 }), "INVALID_SCHEDULE"},
		{"the second first", sender, spoilt(func(p *onboarding.RecordAttempt) { p.Number = 2 }), "ATTEMPT_KNOWN"},
		{"while it is open", alpha, replay, "DELIVERY_OPEN"},
	})
	step := func(name string, status int, want webhook.Status, wait scalar.Time) {
		t.Helper()
		l.now += scalar.Minute
		first := l.attempt(d, status)
		l.must(sender, first)
		e := l.last[0].(*onboarding.DeliveryAttempted)
		v, _ := l.state.Delivery(d)
		if e.Status != want || v.Status != want || (e.NextAttempt != 0) != (wait != 0) || wait != 0 && (e.NextAttempt-l.now < wait*8/10 || e.NextAttempt-l.now > wait*12/10) {
			t.Errorf("%s: %+v", name, e)
		}
		if got := l.do(sender, first); got != "ATTEMPT_KNOWN" && got != "DELIVERY_NOT_OPEN" {
			t.Errorf("%s: recorded twice: %s", name, got)
		}
	}
	step("a failure", 500, webhook.Retrying, 10*scalar.Second)
	step("no answer", 0, webhook.Retrying, 20*scalar.Second)
	step("a redirect", 301, webhook.Dead, 0)
	l.run([]expect{
		{"replayed by another tenant", beta, replay, "DELIVERY_NOT_FOUND"},
		{"replayed by an operator", operator, &onboarding.ReplayDelivery{ID: d, Operator: true}, "delivery.replayed"},
		{"replayed again", alpha, replay, "DELIVERY_OPEN"},
	})
	step("from the beginning of the schedule", 410, webhook.Retrying, 10*scalar.Second)
	step("acknowledged", 200, webhook.Delivered, 0)
	l.must(alpha, replay)
	step("acknowledged once more", 200, webhook.Delivered, 0)
	if v, _ := l.state.Delivery(d); v.Attempts != 6 {
		t.Errorf("%+v", v)
	}
	l.replayed()
}

// TestReplayBringsForward replays a delivery that waits for its retry. Rules 3 allow it, and the schedule begins again. The rules
// before them refuse it, and all rules refuse to replay a pending delivery.
func TestReplayBringsForward(t *testing.T) {
	l := owners(t)
	l.must(alpha, hook(50))
	l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
	d := l.delivery().ID
	replay := &onboarding.ReplayDelivery{ID: d}
	l.must(sender, l.attempt(d, 500))
	for rules := 2; rules <= 3; rules++ {
		l.run([]expect{{"by rules before 3", alpha, replay, "DELIVERY_OPEN"}})
		l.must(operator, &decide.ActivateRules{Rules: rules})
	}
	before, _ := l.state.Delivery(d)
	if before.Status != webhook.Retrying || before.NextAttempt == 0 {
		t.Fatalf("%+v", before)
	}
	l.run([]expect{
		{"by another tenant", beta, replay, "DELIVERY_NOT_FOUND"},
		{"by its tenant", alpha, replay, "delivery.replayed"},
		{"while it is pending", alpha, replay, "DELIVERY_OPEN"},
	})
	if e := l.records[len(l.records)-1].events[0]; e.version != 2 {
		t.Errorf("recorded as version %d", e.version)
	}
	want := *before
	want.Status, want.NextAttempt, want.Before = webhook.Pending, 0, 1
	if v, _ := l.state.Delivery(d); *v != want {
		t.Errorf("%+v, want %+v", v, want)
	}
	if open := l.state.OpenDeliveries(); len(open) != 1 {
		t.Errorf("%d are open", len(open))
	}
	for n, status := range []webhook.Status{webhook.Retrying, webhook.Retrying, webhook.Dead} { // the whole schedule, again
		l.must(sender, l.attempt(d, 500))
		if v, _ := l.state.Delivery(d); v.Status != status || v.Attempts != n+2 {
			t.Errorf("after attempt %d: %+v", n+2, v)
		}
	}
	l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
	underWay := l.delivery().ID
	l.must(sender, l.attempt(underWay, 500))
	second := l.attempt(underWay, 200) // begins before the replay and is recorded after it
	l.must(operator, &onboarding.ReplayDelivery{ID: underWay, Operator: true})
	l.must(sender, second)
	if v, _ := l.state.Delivery(underWay); v.Status != webhook.Delivered || v.Attempts != 2 {
		t.Errorf("%+v", v)
	}
	l.replayed()
}

// TestRetryAfter: what a receiver asks for is followed between the wait and twice the wait.
func TestRetryAfter(t *testing.T) {
	l := owners(t)
	l.must(alpha, hook(50))
	for asked, want := range map[scalar.Time]scalar.Time{scalar.Second: 10, 15 * scalar.Second: 15, scalar.Hour: 20} {
		l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
		p := l.attempt(l.delivery().ID, 429)
		p.RetryAfter = asked
		l.must(sender, p)
		if e := l.last[0].(*onboarding.DeliveryAttempted); e.NextAttempt != l.now+want*scalar.Second {
			t.Errorf("%s: %+v", asked, e)
		}
	}
	l.replayed()
}

// TestDeletingCancels: what is open of a registration that is deleted is canceled, and stays so.
func TestDeletingCancels(t *testing.T) {
	l := owners(t)
	l.must(alpha, hook(50))
	l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
	done := l.delivery().ID
	l.must(sender, l.attempt(done, 200))
	l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
	open := l.delivery().ID
	l.must(alpha, &onboarding.DeleteWebhook{ID: id(50)})
	l.run([]expect{
		{"an attempt that was on its way", sender, l.attempt(open, 200), "DELIVERY_NOT_OPEN"},
		{"a replay of what was canceled", alpha, &onboarding.ReplayDelivery{ID: open}, "DELIVERY_CANCELED"},
		{"a replay of what was delivered", alpha, &onboarding.ReplayDelivery{ID: done}, "DELIVERY_CANCELED"},
	})
	a, _ := l.state.Delivery(done)
	b, _ := l.state.Delivery(open)
	if a.Status != webhook.Delivered || b.Status != webhook.Canceled {
		t.Errorf("%+v, %+v", a, b)
	}
	l.must(beta, hook(50)) // whoever takes the id gets nothing of what was told before
	l.run([]expect{{"a replay to another tenant", alpha, &onboarding.ReplayDelivery{ID: done}, "DELIVERY_CANCELED"}})
	l.replayed()
}

// TestLateAttempts: an attempt that was under way when its delivery was canceled is recorded by rules 6. The delivery stays canceled,
// and its registration and the tenant that takes its id hear nothing of it.
func TestLateAttempts(t *testing.T) {
	l := owners(t)
	l.newest()
	l.must(operator, &onboarding.SetRetention{})
	l.must(alpha, hook(50))
	l.must(alpha, hook(51))
	l.trigger(define(entitlement.Manual, l.questionnaire("a")))
	var about, deleted scalar.ID // by the webhook that stays, and by the one that is deleted
	for _, v := range l.state.OpenDeliveries() {
		if v.WebhookID == id(50) {
			about = v.ID
		} else {
			deleted = v.ID
		}
	}
	l.must(sender, l.attempt(deleted, 500))
	late := map[scalar.ID]*onboarding.RecordAttempt{about: l.attempt(about, 500), deleted: l.attempt(deleted, 200)}
	l.must(alpha, &onboarding.DeleteWebhook{ID: id(51)})
	l.must(beta, hook(51))
	early := l.attempt(deleted, 200)
	early.Number++
	l.run([]expect{
		{"one before it is missing", sender, early, "ATTEMPT_KNOWN"},
		{"of a deleted registration", sender, late[deleted], "delivery.attempted"},
	})
	if e := l.last[0].(*onboarding.DeliveryAttempted); e.Status != webhook.Canceled || e.Reply == nil || e.NextAttempt != 0 || e.Number != 2 {
		t.Errorf("%+v", e)
	}
	l.must(operator, erase(ann))
	l.steps()
	l.run([]expect{
		{"of who is erased", sender, late[about], "delivery.attempted"},
		{"once more", sender, late[about], "ATTEMPT_KNOWN"},
		{"a replay", operator, &onboarding.ReplayDelivery{ID: about, Operator: true}, "OWNER_ERASED"},
	})
	for of, attempts := range map[scalar.ID]int{about: 1, deleted: 2} {
		v, _ := l.state.Delivery(of)
		if v.Status != webhook.Canceled || v.Attempts != attempts || v.NextAttempt != 0 || v.Closed == 0 {
			t.Errorf("%+v", v)
		}
	}
	for _, hook := range []scalar.ID{id(50), id(51)} {
		if w, _ := l.state.Webhook(hook); w.Failing != 0 {
			t.Errorf("%+v", w)
		}
	}
	last := l.records[len(l.records)-1]
	if v, _ := l.state.Delivery(about); v.Closed != last.at.Sequence {
		t.Errorf("closed by %d, and last changed by %d", v.Closed, last.at.Sequence)
	}
	if text := string(last.events[0].data); strings.Contains(text, `"response"`) || !strings.Contains(text, `"status":"canceled"`) {
		t.Errorf("the receipt of who is erased is %s", text)
	}
	l.replayed()
}

// TestDisabling: five days of nothing but failures disable a registration; what is told meanwhile waits.
func TestDisabling(t *testing.T) {
	l := owners(t)
	l.must(alpha, hook(50))
	enable := &onboarding.EnableWebhook{ID: id(50)}
	fail := func(day scalar.Time, status int, disabled bool) {
		t.Helper()
		l.now = start + day*scalar.Day
		l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
		l.must(sender, l.attempt(l.delivery().ID, status))
		if got := len(l.last) == 2; got != disabled {
			t.Errorf("on day %d it was disabled: %t", day, got)
		}
	}
	fail(0, 500, false)
	fail(4, 500, false)
	fail(5, 200, false)
	fail(6, 500, false)
	fail(10, 500, false)
	if got := l.do(alpha, enable); got != "WEBHOOK_NOT_DISABLED" {
		t.Error(got)
	}
	fail(11, 500, true)
	if w, _ := l.state.Webhook(id(50)); w.Disabled != l.now {
		t.Errorf("%+v", w)
	}
	fail(12, 500, false) // one that was on its way
	l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
	accrued := l.delivery().ID
	if got := l.do(beta, enable); got != "WEBHOOK_NOT_FOUND" {
		t.Error(got)
	}
	l.must(alpha, enable)
	w, _ := l.state.Webhook(id(50))
	if v, _ := l.state.Delivery(accrued); v.Status != webhook.Pending || w.Disabled != 0 || w.Failing != 0 {
		t.Errorf("%+v, %+v", v, w)
	}
	l.replayed()
}

// TestSeveralAttempts: a command tells of several attempts. What is not to be recorded is left out, whatever the others are, and
// each sees what those before it leave of its registration.
func TestSeveralAttempts(t *testing.T) {
	l := owners(t)
	l.must(alpha, hook(50))
	l.must(alpha, hook(51))
	var to []scalar.ID
	for range 4 {
		l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
		to = append(to, l.delivery().ID)
	}
	l.must(alpha, &onboarding.TestWebhook{ID: id(51)})
	gone := l.delivery().ID
	late := l.attempt(gone, 200)
	l.must(alpha, &onboarding.DeleteWebhook{ID: id(51)})
	told := func(all ...*onboarding.RecordAttempt) *onboarding.RecordAttempts {
		p := &onboarding.RecordAttempts{Schedule: webhook.Schedule{10 * scalar.Second, 20 * scalar.Second}}
		for _, one := range all {
			one.Schedule = nil
			p.Attempts = append(p.Attempts, one)
		}
		return p
	}
	all := func(status ...int) (out []*onboarding.RecordAttempt) {
		for n, s := range status {
			out = append(out, l.attempt(to[n], s))
		}
		return out
	}
	wrong := l.attempt(to[1], 99)
	l.run([]expect{
		{"by a client", alpha, told(all(200)...), "FORBIDDEN"},
		{"of none", sender, &onboarding.RecordAttempts{}, "INVALID_ATTEMPTS"},
		{"of too many", sender, &onboarding.RecordAttempts{Attempts: make([]*onboarding.RecordAttempt, onboarding.MaxAttempts+1)}, "INVALID_ATTEMPTS"},
		{"of nothing", sender, &onboarding.RecordAttempts{Attempts: []*onboarding.RecordAttempt{nil}}, "INVALID_ATTEMPTS"},
		{"of what is canceled", sender, told(late), "DELIVERY_NOT_OPEN"},
		{"two of five", sender, told(late, l.attempt(to[0], 500), wrong, l.attempt(to[0], 200), l.attempt(to[1], 200)), "delivery.attempted delivery.attempted"},
	})
	if e := l.last[0].(*onboarding.DeliveryAttempted); e.ID != to[0] || e.Status != webhook.Retrying || e.NextAttempt == 0 {
		t.Errorf("%+v", e)
	}
	if e := l.last[1].(*onboarding.DeliveryAttempted); e.ID != to[1] || e.Status != webhook.Delivered {
		t.Errorf("%+v", e)
	}
	state := func() onboarding.Webhook { w, _ := l.state.Webhook(id(50)); return *w }
	l.must(sender, l.attempt(to[0], 500))
	since := state().Failing
	if since == 0 {
		t.Fatal("it is not failing")
	}
	l.now += webhook.DisableAfter
	// That one is acknowledged ends the five days, for what comes after it in the same record.
	l.run([]expect{{"with one that is acknowledged", sender, told(l.attempt(to[2], 200), l.attempt(to[3], 500)), "delivery.attempted delivery.attempted"}})
	if w := state(); w.Disabled != 0 || w.Failing != l.now {
		t.Errorf("%+v", w)
	}
	l.now += webhook.DisableAfter
	l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
	another := l.delivery().ID
	l.run([]expect{{"two failures after five days", sender, told(l.attempt(to[3], 500), l.attempt(another, 500)), "delivery.attempted webhook.disabled delivery.attempted"}})
	l.replayed()
}

// TestOpenDeliveries: what is still to be tried is told in the order of the log, also of what was replayed.
func TestOpenDeliveries(t *testing.T) {
	l := owners(t)
	l.must(alpha, hook(50))
	var made []scalar.ID
	for range 3 {
		l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
		made = append(made, l.delivery().ID)
	}
	l.must(sender, l.attempt(made[0], 200))
	l.must(sender, l.attempt(made[1], 500))
	open := func() (out []scalar.ID) {
		for _, v := range l.state.OpenDeliveries() {
			out = append(out, v.ID)
		}
		return out
	}
	if got := open(); !slices.Equal(got, made[1:]) {
		t.Errorf("%v", got)
	}
	if v, _ := l.state.Delivery(made[1]); v.NextAttempt == 0 || v.NoticeID.IsZero() {
		t.Errorf("%+v", v)
	}
	l.must(alpha, &onboarding.ReplayDelivery{ID: made[0]})
	if got := open(); !slices.Equal(got, made) {
		t.Errorf("%v", got)
	}
	l.must(alpha, &onboarding.DeleteWebhook{ID: id(50)})
	if v, _ := l.state.Delivery(made[1]); v.NextAttempt != 0 || len(open()) != 0 {
		t.Errorf("%+v", v)
	}
	l.replayed()
}

// TestTheVenuesOwnWayOut: that it fails is told of each attempt and uses it up, but is no failure of the receiver's.
func TestTheVenuesOwnWayOut(t *testing.T) {
	l := owners(t)
	l.must(alpha, hook(50))
	fail := func(failure string) *onboarding.Webhook {
		t.Helper()
		l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
		p := l.attempt(l.delivery().ID, 0)
		p.Error = failure
		l.must(sender, p)
		if e := l.last[0].(*onboarding.DeliveryAttempted); e.Error != failure || e.Status != webhook.Retrying {
			t.Errorf("%+v", e)
		}
		w, _ := l.state.Webhook(id(50))
		return w
	}
	ours, theirs := webhook.EgressFailed+": the proxy is away", "CONNECTION_LOST: it said EGRESS_FAILED"
	if w := fail(ours); w.Failing != 0 {
		t.Errorf("%+v", w)
	}
	since := fail(theirs).Failing
	if since != l.now {
		t.Errorf("it fails since %d", since)
	}
	l.now += 2 * webhook.DisableAfter
	if w := fail(ours); w.Failing != since || w.Disabled != 0 {
		t.Errorf("%+v", w)
	}
	if w := fail(theirs); w.Disabled != l.now {
		t.Errorf("%+v", w)
	}
	l.replayed()
}
