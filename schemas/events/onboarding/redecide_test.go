package onboarding_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey/checkpointkeytest"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

// TestTheStoryIsDecidedAgain tells the story by the newest rules. Every record is decided again as the same bytes, commands
// of every type occur, and their inputs match their schemas and golden files.
func TestTheStoryIsDecidedAgain(t *testing.T) {
	s := newStory(t)
	s.activate(4) // the later ones come with fourEyes, since the golden files hold ids that follow from sequences
	s.tell()
	s.do(system, &onboarding.RecordAttempts{Attempts: []*onboarding.RecordAttempt{{ID: made[*onboarding.DeliveryReplayed](s).ID, Number: 2, Started: s.at.Time,
		StatusCode: 503, RetryAfter: 90 * scalar.Second}}, Schedule: webhook.Schedule{scalar.Second, scalar.Minute, scalar.Hour}})
	s.do(operator, &decide.PutBackDue{Entry: s.state.SetAsideEntries()[0].Entry})
	s.fourEyes()
	s.lateAttempt()
	s.do(operator, &decide.RotateCommitment{Generation: 1, Secret: "0f1e2d3c4b5a69788796a5b4c3d2e1f0"})
	s.do(operator, &decide.DiscloseCommitment{From: 3, To: 9, Recipient: "Auditors & Co."})
	log := checkpointkeytest.Origin("onboarding", s.at.Journal)
	s.do(operator, &decide.RotateCheckpointKey{Generation: 2, Previous: checkpointkeytest.Key(log, 1), Key: checkpointkeytest.Key(log, 2)})
	for _, name := range append(onboarding.Payloads().Types(), "engine.step") {
		if s.same[name] == 0 {
			t.Errorf("the story has no %s", name)
		}
	}
	// A story is too short for a forgotten delivery.
	forgotten := onboarding.CommandReplayDelivery
	s.inputs[forgotten] = []string{`{"as_of":120,"status":"dead","closed":98}`}
	replay, _ := onboarding.Payloads().New(forgotten)
	in := replay.(decide.Partial).NewInput()
	if err := json.Unmarshal([]byte(s.inputs[forgotten][0]), in, json.RejectUnknownMembers(true)); err != nil || decide.EncodeInput(in) != s.inputs[forgotten][0] {
		t.Errorf("%s is read as %+v (%v)", s.inputs[forgotten][0], in, err)
	}
	for _, name := range events().Inputs(t) {
		events().Input(t, name, s.inputs[name])
	}
	events().CheckInputs(t, onboarding.Payloads())
}

// redecide decides a record again before the state changes.
func (s *story) redecide(c decide.Recorded, d decide.Decision) {
	s.t.Helper()
	r := &record.Record{Sequence: s.at.Sequence, Time: s.at.Time, Command: c, Input: d.Input, Outcome: d.Outcome, Events: d.Events}
	value, err := record.Encode(nil, r)
	if err != nil {
		s.t.Fatal(err)
	}
	if r, err = record.Decode(onboarding.Rules().Registry(), value); err != nil {
		s.t.Fatal(err)
	}
	result := redecide.Journal{Payloads: onboarding.Payloads(), Limit: onboarding.Rules().Limit()}.Redecide(s.state, 0, record.Entry{Record: r, Journal: s.at.Journal, Value: value})
	switch {
	case result.Verdict == redecide.Same, bytes.Equal(result.Value, value): // the story divides work and sets it aside without need
		s.same[c.Type]++
	case result.Verdict == redecide.Different || s.state.RecordsInputs():
		s.t.Fatalf("%s\nis decided again (%s: %s) as\n%s", value, result.Verdict, result.Reason, result.Value)
	}
	if d.Input != "" && !slices.Contains(s.inputs[c.Type], d.Input) {
		s.inputs[c.Type] = append(s.inputs[c.Type], d.Input)
	}
}
