package onboarding_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// envelope is more than a record has beside its events.
const envelope = 8 << 10

// size returns how long the record of the latest decision is at most.
func (l *log) size() int {
	l.t.Helper()
	size := envelope
	for _, e := range l.last {
		data, err := json.Marshal(e)
		if err != nil {
			l.t.Fatal(err)
		}
		size += len(data) + 100 // its type and version
	}
	return size
}

// crowd is a log where as much hangs on ann as may: webhooks that want all, triggers that are approved by the same response,
// and triggers whose requests for information name as many questionnaires as they may.
type crowd struct {
	*log
	last scalar.ID   // the questionnaire that all wait for
	open []scalar.ID // the triggers
}

func newCrowd(t *testing.T) *crowd {
	c := &crowd{log: owners(t)}
	for n := range byte(webhook.MaxPerTenant) {
		c.must(alpha, hook(100+n))
	}
	c.last = c.questionnaire("last")
	var asked []scalar.ID
	for range onboarding.MaxQuestionnaires {
		asked = append(asked, c.questionnaire("more"))
	}
	for n := range onboarding.MaxOpenTriggers {
		p := define(entitlement.Automatic, c.last)
		if n%2 == 1 { // every other one asks for much
			p = define(entitlement.Manual, append(slices.Clone(asked[1:]), c.last)...)
		}
		p.Name = string(bytes.Repeat([]byte("ü"), 255))
		c.open = append(c.open, c.trigger(p))
	}
	for range onboarding.MaxRequested / len(asked) {
		c.must(operator, act(c.open[1], entitlement.RequestInformation, asked...))
	}
	return c
}

// TestRecordsOfTheWorstSizeFit: whatever an owner may cause with all that hangs on it, the record has room.
func TestRecordsOfTheWorstSizeFit(t *testing.T) {
	c := newCrowd(t)
	if got := c.size(); got > onboarding.RecordLimit {
		t.Errorf("a request for information makes a record of %d bytes", got)
	}
	// A body of 1 MiB that is answers in full, and also as many ids of documents as it has room for.
	p := c.answer(ann, c.last, 1)
	p.Answers = make(onboarding.Sealed, onboarding.MaxAnswersSealed)
	papers := onboarding.Given{QuestionID: c.version(c.last, 1).Questions[3].ID, Field: questionnaire.FieldDocuments}
	c.must(alpha, upload(ann, 10))
	papers.Documents = []scalar.ID{id(10)}
	p.Given = append(p.Given, papers)
	c.must(alpha, p)
	added := c.log.last[0].(*onboarding.ResponseAdded)
	for range (1 << 20) / len(`"01000000-0000-0000-0000-00000000001e",`) {
		added.Documents = append(added.Documents, id(10))
	}
	ended := 0 // of them, those that the response approves
	t.Logf("the greatest response: %d of %d bytes", c.size(), onboarding.RecordLimit)
	for _, e := range c.log.last {
		if m, is := e.(*onboarding.TriggerMoved); is && m.Status == entitlement.Finished {
			ended++
		}
	}
	if got := c.size(); got > onboarding.RecordLimit || ended != onboarding.MaxOpenTriggers/2 {
		t.Errorf("a response that approves %d triggers makes a record of %d bytes, more than %d", ended, got, onboarding.RecordLimit)
	}
	c = newCrowd(t)
	c.must(operator, erase(ann))
	if got, made := c.size(), len(c.log.last); got > onboarding.RecordLimit || made < onboarding.MaxOpenTriggers*(2+webhook.MaxPerTenant) {
		t.Errorf("an erasure makes a record of %d events in %d bytes, more than %d", made, got, onboarding.RecordLimit)
	}
}

func TestLimitsOfAnOwner(t *testing.T) {
	c := newCrowd(t)
	c.must(operator, define(entitlement.Manual))
	another := &onboarding.CreateTrigger{Ref: ann, EntitlementID: c.made()}
	if got := c.do(alpha, another); got != "TOO_MANY_TRIGGERS" {
		t.Errorf("beyond all triggers: %s", got)
	}
	request := act(c.open[3], entitlement.RequestInformation, c.last)
	if got := c.do(operator, request); got != "TOO_MANY_REQUIREMENTS" {
		t.Errorf("beyond all requests: %s", got)
	}
	c.must(operator, act(c.open[1], entitlement.Cancel))
	for _, p := range []expect{{"", alpha, another, ""}, {"", operator, request, ""}} {
		c.must(p.actor, p.payload) // one ended, and its requests with it
	}
	c.replayed()
}

// TestChangesTellTheWhole: what a client is answered is rendered from the record alone.
func TestChangesTellTheWhole(t *testing.T) {
	l := owners(t)
	l.must(alpha, hook(50, webhook.Test))
	l.must(alpha, &onboarding.RotateWebhook{ID: id(50), Key: signing("b"), Overlap: scalar.Day})
	if w := l.last[0].(*onboarding.RotationBegun); w.URL == "" || w.Created != start || w.Key.KeyID == w.Next.KeyID || w.NextFrom != start+scalar.Day || w.Time != start {
		t.Errorf("%+v", w)
	}
	l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
	sent := l.delivery().ID
	l.must(sender, l.attempt(sent, 500))
	l.now += 6 * scalar.Day
	l.must(sender, l.attempt(sent, 500))
	l.steps()
	l.must(alpha, &onboarding.EnableWebhook{ID: id(50)})
	if w := l.last[0].(*onboarding.WebhookEnabled); w.URL == "" || w.Disabled != 0 || w.Failing != 0 || w.Key.KeyID != signing("b").KeyID || w.Next != nil || w.Time != l.now {
		t.Errorf("%+v", w)
	}
	l.must(sender, l.attempt(sent, 200))
	l.must(alpha, &onboarding.ReplayDelivery{ID: sent})
	if d := l.last[0].(*onboarding.DeliveryReplayed); d.Attempts != 3 {
		t.Errorf("%+v", d)
	}
	l.must(alpha, upload(ann, 10))
	until := l.now + scalar.Day
	l.must(operator, &onboarding.ChangeDocument{Ref: ann, ID: id(10), ValidUntil: &until})
	if k := l.last[0].(*onboarding.DocumentChanged); k.Source == "" || k.Orientation != "front" || len(k.SHA256) != 32 || k.ValidUntil != until {
		t.Errorf("%+v", k)
	}
	p := define(entitlement.Manual)
	p.DeadlineSeconds = 100
	trigger, created := l.trigger(p), l.now
	l.now++
	l.must(operator, act(trigger, entitlement.Block))
	if m := l.last[0].(*onboarding.TriggerMoved); m.Created != created || m.Time != l.now || m.Deadline != created+100*scalar.Second {
		t.Errorf("%+v", m)
	}
	l.replayed()
}
