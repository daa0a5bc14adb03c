package onboarding_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
)

// forgetful are the rules with states that keep so few closed deliveries.
type forgetful struct {
	decide.Rules
	keeps int
}

func (f forgetful) NewState() decide.State {
	s := onboarding.NewState()
	s.Keep(f.keeps)
	return s
}

// inputs begins a log that records inputs and keeps one closed delivery.
func inputs(t *testing.T) *log {
	l := owners(t)
	l.state.Keep(1)
	for rules := 2; rules <= onboarding.Rules().Newest(); rules++ {
		l.must(operator, &decide.ActivateRules{Rules: rules})
	}
	return l
}

// decidedAgain fails unless every record of the log is decided again as the same. It returns the inputs, joined by spaces.
func (l *log) decidedAgain(t *testing.T) string {
	t.Helper()
	again := make(recordtest.Verdicts)
	l.writeBy(t, forgetful{onboarding.Rules(), 1}, new(recordtest.Digest), again)
	var all []string
	for _, r := range l.records {
		if r.input != "" {
			all = append(all, r.input)
		}
	}
	return strings.Join(all, " ")
}

// TestInputsOfDeliveries: the input of a replay has the row of a forgotten delivery, and that of attempts the schedule of
// those that failed and were recorded.
func TestInputsOfDeliveries(t *testing.T) {
	l := inputs(t)
	l.must(alpha, hook(50))
	var made []*onboarding.DeliveryCreated
	for range 3 {
		l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
		made = append(made, l.delivery())
	}
	for _, d := range made[:2] {
		l.must(sender, l.attempt(d.ID, 200))
	}
	closed := int64(len(l.records) - 1)
	row := &onboarding.Delivery{ID: made[0].ID, WebhookID: id(50), NoticeID: made[0].NoticeID, Tenant: "alpha", Status: webhook.Delivered, Attempts: 1,
		Made: onboarding.EventPosition{Sequence: closed - 3, Ordinal: 1}, Closed: closed}
	for _, got := range []string{
		l.do(alpha, &onboarding.ReplayDelivery{ID: row.ID, Row: row, AsOf: closed + 1}),
		l.do(operator, &onboarding.ReplayDelivery{ID: made[1].ID, Operator: true, Row: row, AsOf: closed}), // which the state knows
	} {
		if got != "delivery.replayed" {
			t.Fatal(got)
		}
	}
	attempt := func(n, number, status int, after scalar.Time) *onboarding.RecordAttempt {
		return &onboarding.RecordAttempt{ID: made[n].ID, Number: number, Started: l.now, StatusCode: status, RetryAfter: after}
	}
	l.must(sender, &onboarding.RecordAttempts{Schedule: webhook.Schedule{scalar.Minute, scalar.Hour}, Attempts: []*onboarding.RecordAttempt{
		attempt(2, 7, 500, 8), attempt(2, 1, 500, 90*scalar.Second), attempt(1, 2, 200, 9), attempt(0, 2, 0, 0)}})
	l.must(sender, &onboarding.RecordAttempts{Schedule: webhook.Schedule{1, 2, 3}, Attempts: []*onboarding.RecordAttempt{attempt(0, 3, 200, 5)}})
	want := fmt.Sprintf(`{"as_of":%d,"status":"delivered","closed":%d} {"schedule":[60000000,3600000000],"retry_after":[90000000,0,0]}`, closed+1, closed)
	if got := l.decidedAgain(t); got != want {
		t.Errorf("the inputs are\n%s, not\n%s", got, want)
	}
}

// TestInputOfAResponse: it names neither the optional questions that were answered nor the documents of their answers.
func TestInputOfAResponse(t *testing.T) {
	l := inputs(t)
	for n := range byte(2) {
		l.must(alpha, upload(ann, 10+n))
	}
	q := l.questionnaire("a")
	v := l.version(q, 1)
	p := l.answer(ann, q, 1, id(10))
	p.Given = append(p.Given, onboarding.Given{QuestionID: v.Questions[1].ID, Field: questionnaire.FieldOption})
	p.Given = append(p.Given, onboarding.Given{QuestionID: v.Questions[2].ID, Field: questionnaire.FieldDocument, Documents: []scalar.ID{id(11)}})
	slices.Reverse(p.Given)
	l.must(alpha, p)
	want := fmt.Sprintf(`{"given":[{"question_id":"%s"}]}`, v.Questions[0].ID)
	if got := l.decidedAgain(t); got != want {
		t.Errorf("the input is\n%s, not\n%s", got, want)
	}
}

// TestAnswersWithoutAQuestion name documents of the owner, and no more than optional questions permit.
func TestAnswersWithoutAQuestion(t *testing.T) {
	l := inputs(t)
	for n := range byte(2) {
		l.must(alpha, upload(ann, 10+n))
	}
	l.must(beta, upload(bob, 20))
	q := l.questionnaire("a")
	l.version(q, 1)
	for _, c := range []struct {
		documents []scalar.ID
		want      string
	}{{[]scalar.ID{id(11)}, "response.added"}, {nil, "INVALID_ANSWERS"}, {slices.Repeat([]scalar.ID{id(11)}, 102), "INVALID_ANSWERS"}, {[]scalar.ID{id(20)}, "INVALID_ANSWERS"}} {
		p := l.answer(ann, q, 1, id(10))
		p.Given = append(p.Given, onboarding.Given{Documents: c.documents})
		if got := l.do(alpha, p); !strings.HasPrefix(got, c.want) {
			t.Errorf("%v: %s, and not %s", c.documents, got, c.want)
		}
	}
}
