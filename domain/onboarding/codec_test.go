package onboarding_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/decide/decidetest"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/pack/packtest"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

// reread saves a state and reads it back.
func reread(t interface{ Fatalf(string, ...any) }, s *onboarding.State) *onboarding.State {
	saved := onboarding.Codec().Append(nil, s)
	read, err := onboarding.Codec().Read(saved)
	if err != nil {
		t.Fatalf("reading what was saved: %v", err)
	}
	if again := onboarding.Codec().Append(nil, read); !bytes.Equal(again, saved) {
		t.Fatalf("what was read back is saved as other bytes:\n%x\n%x", saved, again)
	}
	return read.(*onboarding.State)
}

// world is what random commands are about.
type world struct {
	questionnaires, entitlements, triggers, deliveries []scalar.ID
}

func (w *world) note(events []decide.Event) {
	for _, e := range events {
		switch e := e.(type) {
		case *onboarding.QuestionnaireCreated:
			w.questionnaires = append(w.questionnaires, e.ID)
		case *onboarding.EntitlementCreated:
			w.entitlements = append(w.entitlements, e.ID)
		case *onboarding.TriggerCreated:
			w.triggers = append(w.triggers, e.ID)
		case *onboarding.DeliveryCreated:
			w.deliveries = append(w.deliveries, e.ID)
		}
	}
}

func pick(r *rapid.T, from []scalar.ID, name string) scalar.ID {
	return rapid.SampledFrom(append([]scalar.ID{id(99)}, from...)).Draw(r, name)
}

// random returns a command of any kind about what there is.
func (w *world) random(r *rapid.T, l *log) (decide.Actor, decide.Payload) {
	ref := rapid.SampledFrom([]owner.Ref{ann, bob, corp}).Draw(r, "owner")
	client := rapid.SampledFrom([]decide.Actor{alpha, alpha, beta}).Draw(r, "client")
	n := rapid.ByteRange(10, 13).Draw(r, "id")
	until := l.now + scalar.Time(rapid.Int64Range(-1, 60).Draw(r, "days"))*scalar.Day
	q := pick(r, w.questionnaires, "questionnaire")
	switch rapid.IntRange(0, 19).Draw(r, "command") {
	case 0:
		return client, register(ref, rapid.SampledFrom([]string{"x", "y"}).Draw(r, "external id"))
	case 1:
		p := upload(ref, n)
		p.ValidUntil = until
		return client, p
	case 2:
		return operator, &onboarding.ChangeDocument{Ref: ref, ID: id(n), ValidUntil: &until}
	case 3:
		return operator, &onboarding.CreateQuestionnaire{Name: "q", OwnerType: ref.Type}
	case 4:
		return operator, &onboarding.AddVersion{QuestionnaireID: q, Questions: draft()}
	case 5, 6:
		return operator, &onboarding.PublishQuestionnaire{ID: q}
	case 7:
		return operator, &onboarding.UnpublishQuestionnaire{ID: q}
	case 8, 9, 10:
		if _, v, known := l.state.Questionnaire(q); known && v != nil {
			return client, l.answer(ref, q, v.Number)
		}
		return operator, &onboarding.AddVersion{QuestionnaireID: q, Questions: draft()}
	case 11:
		p := define(rapid.SampledFrom([]entitlement.Approval{entitlement.Automatic, entitlement.Manual}).Draw(r, "approval"), q)
		p.OwnerType, p.VideoIdentification, p.DeadlineSeconds = ref.Type, rapid.Bool().Draw(r, "video"), rapid.Int64Range(0, 1_000_000).Draw(r, "deadline")
		return operator, p
	case 12, 13:
		return client, &onboarding.CreateTrigger{Ref: ref, EntitlementID: pick(r, w.entitlements, "entitlement")}
	case 14:
		p := act(pick(r, w.triggers, "trigger"), rapid.SampledFrom(entitlement.Actions()).Draw(r, "action"))
		switch p.Action {
		case entitlement.RequestInformation:
			p.Questionnaires = []scalar.ID{q}
		case entitlement.CompleteVideoIdentification:
			p = video(p.ID, rapid.SampledFrom([]onboarding.Outcome{onboarding.Passed, onboarding.NotPassed}).Draw(r, "outcome"))
		}
		return operator, p
	case 15:
		return client, hook(n)
	case 16:
		switch rapid.IntRange(0, 4).Draw(r, "of a webhook") {
		case 0:
			return client, &onboarding.DeleteWebhook{ID: id(n)}
		case 1:
			return client, &onboarding.RotateWebhook{ID: id(n), Key: signing("b"), Overlap: scalar.Day}
		case 2:
			return client, &onboarding.EnableWebhook{ID: id(n)}
		}
		return client, &onboarding.TestWebhook{ID: id(n)}
	case 17:
		d := pick(r, w.deliveries, "delivery")
		if _, known := l.state.Delivery(d); known {
			return sender, l.attempt(d, rapid.SampledFrom([]int{200, 500, 0}).Draw(r, "status"))
		}
		return operator, &onboarding.SetRetention{Seconds: rapid.Int64Range(0, 1_000_000).Draw(r, "retention")}
	case 18:
		return client, &onboarding.ReplayDelivery{ID: pick(r, w.deliveries, "delivery")}
	}
	return operator, rapid.SampledFrom([]decide.Payload{erase(ref), holding(ref), releasing(ref)}).Draw(r, "of an end")
}

// TestSavedStatesGoOn saves states amid random commands and steps, has what was read back decide the same, and sees that a
// replay of the log is saved as the same bytes.
func TestSavedStatesGoOn(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l, twin, w := owners(t), owners(t), new(world)
		for range rapid.IntRange(1, 60).Draw(r, "commands") {
			if rapid.IntRange(0, 3).Draw(r, "save") == 0 {
				twin.state = reread(r, l.state)
			}
			l.now += scalar.Time(rapid.Int64Range(0, int64(5*scalar.Day)).Draw(r, "passes"))
			twin.now = l.now
			for l.state.Due(l.now) != decide.Nothing {
				engine := decide.Recorded{Type: "engine.step", Actor: decide.Engine}
				if rapid.IntRange(0, 9).Draw(r, "set aside") == 0 {
					l.fold(engine, l.state.SetAside(l.stamp(), "broken"))
					twin.fold(engine, twin.state.SetAside(twin.stamp(), "broken"))
					continue
				}
				l.fold(engine, l.state.Step(l.stamp(), false))
				twin.fold(engine, twin.state.Step(twin.stamp(), false))
				w.note(l.last)
			}
			actor, payload := w.random(r, l)
			key := rapid.SampledFrom([]string{"", "", "k"}).Draw(r, "key")
			a, b := l.keyed(actor, key, payload), twin.keyed(actor, key, payload)
			if a != b || !reflect.DeepEqual(l.records, twin.records) {
				r.Fatalf("%s: %s, and by the state that was saved %s", payload.CommandType(), a, b)
			}
			w.note(l.last)
		}
		saved := onboarding.Codec().Append(nil, l.state)
		for name, other := range map[string]*onboarding.State{"twin": twin.state, "replay": l.replay()} {
			if again := onboarding.Codec().Append(nil, other); !bytes.Equal(saved, again) {
				r.Fatalf("the state of the %s differs:\n%x\n%x", name, saved, again)
			}
		}
	})
}

// golden is a state with something of everything in it: deliveries that it has forgotten, too.
func golden(t testing.TB) *onboarding.State {
	l := firstRules(t)
	ofRoute := decide.Metadata{Key: "k", Fingerprint: decide.OfRoute("POST /holds", strings.Repeat("0", 32))}
	l.fold(decide.Recorded{Type: onboarding.CommandHoldOwner, Actor: operator, Metadata: ofRoute}, decide.Decision{Events: []decide.Event{&onboarding.RetentionSet{Seconds: 5}}})
	l.must(operator, &decide.ActivateRules{Rules: 2})
	l.fold(decide.Recorded{Type: decide.CommandRotateCommitment, Actor: operator}, decide.Decision{Events: append(decidetest.FourEyes(), &decide.CommitmentRotated{Generation: 1, Secret: "an id"},
		&decide.CheckpointKeyRotated{Generation: 2, Previous: "log+1+a", Key: "log+2+b", Until: 5})})
	l.state.Keep(2)
	for range 4 {
		l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
		l.must(sender, l.attempt(l.delivery().ID, 200))
	}
	return l.state
}

// firstRules is a log under rules 1 with something of everything in it. TestRetiredRules has its golden journal, so it
// never changes: what is new goes into golden.
func firstRules(t testing.TB) *log {
	l := owners(t)
	l.must(alpha, hook(50, webhook.EntitlementFailed, webhook.Test, webhook.RequirementsQuestionnaire))
	l.must(alpha, hook(51))
	doc := upload(ann, 10)
	doc.ValidUntil = start + 100*scalar.Day
	l.must(alpha, doc)
	l.must(alpha, upload(corp, 11))
	q := l.questionnaire("a")
	l.publish(q)
	p := define(entitlement.Automatic, q)
	p.VideoIdentification, p.DeadlineSeconds, p.OpensTradingAccount, p.Description = true, 1000, true, "all of it"
	trigger := l.trigger(p)
	l.must(operator, act(trigger, entitlement.RequestInformation, q))
	l.must(operator, act(trigger, entitlement.RequestVideoIdentification))
	l.must(alpha, l.answer(ann, q, 2, id(10)))
	l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
	d := l.delivery().ID
	for _, status := range []int{500, 0, 301} {
		l.must(sender, l.attempt(d, status))
	}
	l.must(alpha, &onboarding.ReplayDelivery{ID: d})
	l.must(alpha, &onboarding.RotateWebhook{ID: id(51), Key: signing("b"), Overlap: scalar.Day})
	l.must(operator, &onboarding.SetRetention{Seconds: 5})
	l.must(operator, erase(corp))
	l.must(operator, holding(bob))
	l.fold(decide.Recorded{}, decide.Decision{Events: []decide.Event{&decide.DueSetAside{Entry: "owner_erase/" + corp.ID.String(), Error: "broken"}}})
	if got := l.keyed(beta, "k", &onboarding.CreateWebhook{ID: id(52), URL: "https://b.example", All: true, Key: signing("c")}); got != "webhook.created" {
		t.Fatal(got)
	}
	l.replay()
	return l
}

// secondRules is a log that goes on under rules 2. It never changes, as that of firstRules does not.
func secondRules(t testing.TB) *log {
	l := firstRules(t)
	l.must(operator, &decide.ActivateRules{Rules: 2})
	for _, status := range []int{200, 500, 410} {
		l.must(alpha, &onboarding.TestWebhook{ID: id(50)})
		d := l.delivery().ID
		l.must(sender, l.attempt(d, status))
		if got := l.do(alpha, &onboarding.ReplayDelivery{ID: d}); status != 200 && got != "DELIVERY_OPEN" || status == 200 && got != "delivery.replayed" {
			t.Fatalf("rules 2 replay a delivery answered with %d: %s", status, got)
		}
	}
	return l
}

// TestTheFormIsThatOfItsVersion fails when what is saved, or what there is to be saved, is no longer what the codec's
// version stands for.
func TestTheFormIsThatOfItsVersion(t *testing.T) {
	version := onboarding.Codec().Version()
	packtest.Held(t, version, "state", onboarding.Codec().Append(nil, golden(t)))
	packtest.Held(t, version, "shape", packtest.Shape(reflect.TypeFor[onboarding.State]()))
}

// TestEveryFieldIsSaved fails for a field of the state that the codec forgets.
func TestEveryFieldIsSaved(t *testing.T) {
	f := packtest.NewFields(func(s *onboarding.State) []byte { return onboarding.Codec().Append(nil, s) }, packtest.Derived{
		"decide.Core.numbers":                   "the build's",
		"decide.fourEyes.open":                  "counts the open proposals",
		"onboarding.State.external":             "follows from the owners",
		"onboarding.State.required":             "follows from the triggers",
		"onboarding.State.triggers":             "follows from the owners' files",
		"onboarding.Document.Ref":               "the owner whose file has the document",
		"onboarding.Trigger.Ref":                "the owner whose file has the trigger",
		"onboarding.closedDeliveries.keep":      "part of the rules",
		"onboarding.closedDeliveries.n":         "follows from the deliveries",
		"onboarding.dueList.known":              "follows from the entries",
		"schedule.Slot.number":                  "follows from the order of the entries",
		"questionnaire.Version.Number":          "the place among the versions",
		"questionnaire.Version.QuestionnaireID": "the questionnaire that has the version",
	})
	f.Try(golden(t))
	l := owners(t)
	q := l.questionnaire("a")
	l.publish(q)
	l.trigger(define(entitlement.Automatic, q)) // still waits for an answer
	taken := decide.Recorded{Metadata: decide.Metadata{Source: &decide.Source{Journal: "trading", Sequence: 7}}}
	l.state.Evolve(decide.Stamp{Sequence: 99, Time: l.now}, taken, decide.Accepted, nil)
	f.Try(l.state)
	f.Report(t)
}

func TestDamagedStates(t *testing.T) {
	saved := onboarding.Codec().Append(nil, golden(t))
	for n := range saved {
		if _, err := onboarding.Codec().Read(saved[:n]); err == nil {
			t.Fatalf("cut off after %d of %d bytes it is read", n, len(saved))
		}
		for _, bit := range []byte{1, 0x80, 0xff} {
			damaged := bytes.Clone(saved)
			damaged[n] ^= bit
			if s, err := onboarding.Codec().Read(damaged); err == nil {
				onboarding.Codec().Append(nil, s)
				work(s.(*onboarding.State))
			}
		}
	}
}

// work has some due work of a state decided, which must not panic whatever was read.
func work(s *onboarding.State) {
	if at, some := s.NextDue(); some {
		s.Step(decide.Stamp{Sequence: 1000, Time: at}, true)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(onboarding.Codec().Append(nil, onboarding.NewState()))
	f.Add(onboarding.Codec().Append(nil, golden(f)))
	f.Fuzz(func(t *testing.T, saved []byte) {
		if s, err := onboarding.Codec().Read(saved); err == nil {
			if again, err := onboarding.Codec().Read(onboarding.Codec().Append(nil, s)); err != nil || again == nil {
				t.Fatal(err)
			}
			work(s.(*onboarding.State))
		}
	})
}
