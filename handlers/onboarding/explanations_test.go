package onboarding_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/onboarding/explain"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/explanations"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// explanation is the answer about a trigger. Its calculations can be read, unlike those of explain.Explanation.
type explanation struct {
	Position   record.LogPosition `json:"position"`
	Subjects   []explain.Subject  `json:"subjects"`
	Command    map[string]any     `json:"command"`
	Met        explain.Met        `json:"met"`
	Decided    bool               `json:"decided_again"`
	Arithmetic []arithmetic.Line  `json:"arithmetic"`
	After      explain.Trigger    `json:"after"`
	Responses  []explain.Response `json:"responses"`
	Documents  []explain.Document `json:"documents"`
	Events     []wire.CaseEvent   `json:"events"`
	Later      []wire.CaseEvent   `json:"later"`
	Now        map[string]any     `json:"now"`
}

// explained reads an explanation and checks each calculation. facts are its subjects, and then "name: numbers = result" of each calculation.
func explained(t *testing.T, r *tradingtest.Reply, facts ...string) (x explanation) {
	t.Helper()
	r.Want(200).JSON(&x)
	got := []string{fmt.Sprint(x.Subjects)}
	for _, l := range x.Arithmetic {
		if err := l.Check(); err != nil {
			t.Error(err)
		}
		numbers := make([]string, len(l.Values))
		for i, v := range l.Values {
			numbers[i] = v.Text
		}
		got = append(got, l.Name+": "+strings.Join(numbers, " ")+" = "+l.Result)
	}
	same(t, r.Body, got, facts)
	return x
}

// activate puts the newest rules in force, which record the inputs of commands.
func (h *house) activate() {
	h.T.Helper()
	for n := 2; n <= onboarding.Rules().Newest(); n++ {
		p := &decide.ActivateRules{Rules: n}
		c := decide.Command{ID: operation.NewID(), Type: p.CommandType(), Actor: decide.Actor{Sub: "operator", Broker: "venue"}, Payload: p}
		if _, err := h.Submit(h.T.Context(), "onboarding", c); err != nil {
			h.T.Fatal(err)
		}
	}
}

// TestExplanations explains a case from its beginning to its end, in numbers worked out by hand.
func TestExplanations(t *testing.T) {
	h := newHouse(t)
	h.activate()
	path := h.person("p-1")
	kyc, tax := h.questionnaire("KYC", owner.PersonType, oneText, ""), h.questionnaire("Tax", owner.PersonType, oneText, "")
	h.make("broker-a", path+"/questionnaires/"+kyc.id+"/response", kyc.text("an answer to version 1"))
	h.publish(kyc, oneText) // version 2
	definition := h.entitlement(owner.PersonType, `,"approval":"automatic","video_identification":true,"deadline_seconds":86400`, kyc, tax)
	triggers := path + "/entitlement_triggers"
	id := h.Send("broker-a", "POST", triggers, `{"entitlement_id":"`+definition+`"}`, "Idempotency-Key", "apply-1").Want(201).Text("id")
	explaining := func(user, query string) *tradingtest.Reply {
		t.Helper()
		return h.Send(user, "GET", triggers+"/"+id+"/explain"+query, "")
	}
	created := h.Onboarding.Tip().Sequence
	x := explained(t, explaining("broker-a", ""), "[application]", "another_trigger_is_allowed: 0 32 0 = true", "deadline: 1774944000 86400 = 1775030400")
	if x.Met.Trigger != nil || x.Met.Definition == nil || !x.Met.Definition.VideoIdentification || x.After.Status != "pending" || x.Command["sub"] != "broker-a" ||
		x.Command["idempotency_key"] != "apply-1" || x.Command["actor_kind"] != "client" {
		t.Errorf("%+v", x)
	}
	h.Onboarding.Drain()

	// Version 1 of the first questionnaire was answered, and version 2 is required.
	x = explained(t, explaining("broker-a", ""), "[start requirements notice]", "questionnaire_can_be_answered: 2 1 = true", "questionnaire_can_be_answered: 1 1 = true",
		"deadline: 1774944000 86400 = 1775030400", "definition_met: 1 2 = false", "definition_met: 0 1 = false", "open_requirements: 1 0 0 = 1",
		"video_identification_due: 0 1 = false", "automatic_approval: 1 1 0 = false")
	started := x.Position.Sequence
	if started != created+1 || x.Met.Trigger.Status != "pending" || x.Met.Definition.Questionnaires[1].QuestionnaireID.String() != tax.id || x.Command["sub"] != nil || x.Command["actor_kind"] != "system" ||
		len(x.Responses) != 1 || len(x.After.Requirements) != 2 || *x.After.Requirements[0].Lacks != explain.OlderVersion || *x.After.Requirements[1].Lacks != explain.Unanswered ||
		x.After.Terms.Position.Sequence != started || len(x.Events) != 3 || len(x.Later) != 0 {
		t.Errorf("%+v", x)
	}
	h.pending(path, "broker-a", id, started, "definition: 1 2 = false, 0 1 = false")

	// Both answers meet the definition, so the video identification is due.
	h.make("broker-a", path+"/questionnaires/"+kyc.id+"/response", kyc.text("version 2"))
	explained(t, explaining("broker-a", ""), "[requirements]", "answered_version: 1 2 = 2", "definition_met: 2 2 = true", "definition_met: 0 1 = false",
		"open_requirements: 1 0 0 = 1", "video_identification_due: 0 1 = false", "automatic_approval: 1 1 0 = false")
	h.make("broker-a", path+"/questionnaires/"+tax.id+"/response", tax.text("x"))
	answered := h.Onboarding.Tip().Sequence
	x = explained(t, explaining("broker-a", ""), "[requirements request_video_identification notice]", "answered_version: 0 1 = 1", "definition_met: 2 2 = true",
		"definition_met: 1 1 = true", "open_requirements: 0 0 0 = 0", "video_identification_due: 0 0 = true", "open_requirements: 0 0 1 = 1", "automatic_approval: 1 1 0 = false")
	if len(x.Responses) != 2 || x.Responses[0].Number != 2 || x.Responses[1].Position.Sequence != answered || x.Met.Definition != nil || len(x.Met.Trigger.Requirements) != 2 || len(x.After.Requirements) != 3 {
		t.Errorf("%+v", x)
	}
	h.pending(path, "broker-a", id, answered, "video_identification: ")

	// An operator asks for another answer, and gets it.
	h.act(id, "request_information", `,"questionnaire_ids":["`+tax.id+`"]`)
	requested := h.Onboarding.Tip().Sequence
	x = explained(t, explaining("broker-a", ""), "[request_information requirements notice]", "the_request_is_allowed: 0 1 1000 = true", "definition_met: 2 2 = true", "definition_met: 1 1 = true",
		fmt.Sprintf("request_met: %d %d = false", answered, requested), "open_requirements: 0 1 1 = 2", "video_identification_due: 1 2 = false", "automatic_approval: 1 2 0 = false")
	if x.Command["sub"] != nil || x.Command["actor_kind"] != "operator" || *x.Events[0].Reason != "You are told so" || strings.Contains(explaining("broker-a", "").Body, "We know more") {
		t.Errorf("%+v", x)
	}
	if shown := explaining("operator", ""); !strings.Contains(shown.Body, "We know more") || !strings.Contains(shown.Body, `"sub":"operator"`) {
		t.Errorf("the operator is shown %s", shown.Body)
	}
	h.pending(path, "operator", id, answered, "video_identification: ", fmt.Sprintf("request: %d %d = false", answered, requested))
	h.make("broker-a", path+"/questionnaires/"+tax.id+"/response", tax.text("y"))
	again := h.Onboarding.Tip().Sequence
	h.act(id, "complete_video_identification", `,"outcome":"passed"`)
	x = explained(t, explaining("broker-a", ""), "[complete_video_identification requirements approve notice]", "definition_met: 2 2 = true", "definition_met: 1 1 = true",
		fmt.Sprintf("request_met: %d %d = true", again, requested), "open_requirements: 0 0 0 = 0", "video_identification_due: 1 0 = false", "automatic_approval: 1 0 0 = true")
	if x.Now["status"] != "finished" || x.Now["result"] != "success" || x.After.Status != "finished" || x.Met.Trigger.Status != "ongoing" {
		t.Errorf("%+v", x)
	}
	h.pending(path, "broker-a", id, 0)

	// Each record stays as it was explained, with what came later. The version of a definition that has changed since has no position.
	if x = explained(t, explaining("broker-a", fmt.Sprint("?sequence=", created)), "[application]", "another_trigger_is_allowed: 0 32 0 = true",
		"deadline: 1774944000 86400 = 1775030400"); x.Met.Definition.Position.Sequence != created-1 {
		t.Errorf("%+v", x.Met.Definition)
	}
	h.Send("operator", "PATCH", admin+"/entitlements/"+definition, `{"name":"Renamed"}`).Want(200)
	x = explained(t, explaining("broker-a", fmt.Sprint("?sequence=", created)), "[application]", "another_trigger_is_allowed: 0 32 0 = true", "deadline: 1774944000 86400 = 1775030400")
	if x.Met.Definition.Position != nil || x.Met.Definition.Name != "Trading" || len(x.Events) != 1 || len(x.Later) < 10 || x.Now["status"] != "finished" || x.Later[0].Sequence != started {
		t.Errorf("%+v", x)
	}
	for query, want := range map[string]string{fmt.Sprint("?sequence=", created-1): "404 UNKNOWN_RECORD", "?sequence=0": "404 UNKNOWN_RECORD",
		fmt.Sprint("?sequence=", h.Onboarding.Tip().Sequence+1): "409 NOT_YET_DECIDED", "?sequence=x": "422", "?sequence=-1": "422", "?x=1": "422"} {
		r := explaining("broker-a", query)
		if status, code, _ := strings.Cut(want, " "); fmt.Sprint(r.Status) != status || !strings.Contains(r.Body, code) {
			t.Errorf("%s: %d %s, and not %s", query, r.Status, r.Body, want)
		}
	}
	explaining("broker-b", "").Detail(404, "PERSON_NOT_FOUND")
	h.Send("broker-a", "GET", triggers+"/"+nothing+"/explain", "").Detail(404, "ENTITLEMENT_TRIGGER_NOT_FOUND")
	h.Send("broker-b", "GET", path+"/pending_requirements/explain", "").Detail(404, "PERSON_NOT_FOUND")
	h.Send("broker-a", "GET", path+"/pending_requirements/explain?x=1", "").Want(422)
	h.Send("operator", "GET", strings.Replace(triggers, api, admin, 1)+"/"+id+"/explain?sequence=1", "").Code(404, "UNKNOWN_RECORD")
}

// pending compares the explanations of what is open of a trigger: for each "source: numbers of each calculation". position is the
// record that required the first.
func (h *house) pending(path, user, trigger string, position int64, facts ...string) {
	h.T.Helper()
	var x struct {
		Position record.LogPosition `json:"position"`
		Items    []struct {
			Reason         string                `json:"reason"`
			Questionnaires []string              `json:"pending_questionnaire_ids"`
			TriggerID      string                `json:"entitlement_trigger_id"`
			Source         string                `json:"source"`
			Position       record.LogPosition    `json:"position"`
			Missing        []explain.Requirement `json:"missing"`
			Arithmetic     []arithmetic.Line     `json:"arithmetic"`
		} `json:"items"`
	}
	h.Send(user, "GET", path+"/pending_requirements/explain", "").Want(200).JSON(&x)
	if x.Position != h.Onboarding.Tip() {
		h.T.Errorf("it is at %v", x.Position)
	}
	var got, plain []string
	for i, p := range x.Items {
		var lines []string
		for _, l := range p.Arithmetic {
			if err := l.Check(); err != nil {
				h.T.Error(err)
			}
			lines = append(lines, l.Values[0].Text+" "+l.Values[1].Text+" = "+l.Result)
		}
		got = append(got, p.Source+": "+strings.Join(lines, ", "))
		plain = append(plain, fmt.Sprintf(`{"reason":%q,"pending_questionnaire_ids":[%s]}`, p.Reason, quoted(p.Questionnaires)))
		if i == 0 && (p.TriggerID != trigger || p.Position.Sequence != position) || len(p.Missing) != max(1, len(p.Questionnaires)) {
			h.T.Errorf("%+v", p)
		}
	}
	same(h.T, "what is open", got, facts)
	if list, want := h.Send(user, "GET", path+"/pending_requirements", "").Want(200).Body, "["+strings.Join(plain, ",")+"]"; list != want {
		h.T.Errorf("the list is %s, and the explanations are of %s", list, want)
	}
}

func quoted(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return `"` + strings.Join(list, `","`) + `"`
}

// TestExplainedEnds explains the ends of triggers that the rules decide: a deadline, a definition that nobody can answer, a failed
// identification, and the erasure of the owner.
func TestExplainedEnds(t *testing.T) {
	h := newHouse(t)
	h.activate()
	path := h.person("p-1")
	q := h.questionnaire("KYC", owner.PersonType, oneText, "")
	start := func(more string, of ...*asked) string {
		t.Helper()
		return h.make("broker-a", path+"/entitlement_triggers", `{"entitlement_id":"`+h.entitlement(owner.PersonType, more, of...)+`"}`)
	}
	last := func(user, id string) *tradingtest.Reply {
		t.Helper()
		return h.Send(user, "GET", path+"/entitlement_triggers/"+id+"/explain", "")
	}
	late := start(`,"approval":"manual","deadline_seconds":3600`, q)
	h.Advance(3600*scalar.Second + 250*scalar.Millisecond)
	h.Onboarding.Drain()
	x := explained(t, last("broker-a", late), "[terminate notice]", "deadline_passed: 1774947600.25 1774947600 = true")
	if *x.Events[0].Code != onboarding.DeadlinePassed || x.After.Status != "terminated" || *x.After.Requirements[0].Lacks != explain.Unanswered {
		t.Errorf("%+v", x)
	}

	failed := start(`,"approval":"manual"`)
	h.act(failed, "request_video_identification", "")
	h.act(failed, "complete_video_identification", `,"outcome":"failed"`)
	x = explained(t, last("broker-a", failed), "[complete_video_identification reject notice]")
	if *x.Events[1].Code != onboarding.VideoIdentificationFailed || *x.Events[1].Reason != onboarding.Sentence(onboarding.VideoIdentificationFailed) {
		t.Errorf("%+v", x)
	}

	unpublished := h.make("operator", admin+"/questionnaires", `{"name":"None","owner_type":"person"}`)
	broken := start(`,"approval":"manual"`, &asked{id: unpublished})
	x = explained(t, last("broker-a", broken), "[fail notice]", "questionnaire_can_be_answered: 0 1 = false")
	if *x.Events[0].Code != onboarding.ConfigurationError || x.After.Terms != nil {
		t.Errorf("%+v", x)
	}

	// An approval by an operator, on a response with a document.
	document := h.questionnaire("Proof", owner.PersonType, `{"questions":[{"label":"Proof","value":"proof","question_type":"document","position":1}]}`, "")
	file := h.upload(path)
	approved := start(`,"approval":"manual"`, document)
	h.make("broker-a", path+"/questionnaires/"+document.id+"/response", fmt.Sprintf(`{"answers":[{"question_id":%q,"answer_document_id":%q}]}`, document.questions[0].ID, file))
	h.act(approved, "approve", "")
	x = explained(t, last("auditor", approved), "[approve notice]", "definition_met: 1 1 = true", "open_requirements: 0 0 0 = 0", "requirements_met: 0 0 = true")
	if len(x.Documents) != 1 || x.Documents[0].ID.String() != file || x.Documents[0].ValidUntil != nil || x.Documents[0].Position.Sequence >= x.Responses[0].Position.Sequence ||
		x.Command["sub"] != nil || x.Command["actor_kind"] != "operator" {
		t.Errorf("%+v", x)
	}

	// The erasure ends what is open. Then it is there for operators alone, and at last for nobody.
	open := start(`,"approval":"manual"`, q)
	h.Send("operator", "PUT", admin+"/retention", `{"seconds":3600}`).Want(200)
	h.Send("operator", "POST", admin+"/persons/"+h.refOf(path).ID.String()+"/erase", `{"reason":"They asked for it"}`).Want(200)
	x = explained(t, last("operator", open), "[terminate notice]")
	if *x.Events[0].Code != onboarding.OwnerErasedCode || x.Met.OwnerState != owner.Active || x.Command["type"] != onboarding.CommandEraseOwner {
		t.Errorf("%+v", x)
	}
	for _, user := range []string{"broker-a", "auditor"} {
		last(user, open).Detail(404, "PERSON_NOT_FOUND")
		h.Send(user, "GET", path+"/pending_requirements/explain", "").Detail(404, "PERSON_NOT_FOUND")
	}
	h.Advance(2 * scalar.Hour)
	h.Onboarding.Drain()
	last("operator", open).Detail(404, "PERSON_NOT_FOUND")
	h.Send("operator", "GET", path+"/pending_requirements/explain", "").Detail(404, "PERSON_NOT_FOUND")
}

// TestExplanationOfOldRules: rules that did not record inputs leave a response without arithmetic; the rest is there.
func TestExplanationOfOldRules(t *testing.T) {
	h := newHouse(t)
	path := h.person("p-1")
	q := h.questionnaire("KYC", owner.PersonType, oneText, "")
	id := h.make("broker-a", path+"/entitlement_triggers", `{"entitlement_id":"`+h.entitlement(owner.PersonType, `,"approval":"automatic"`, q)+`"}`)
	h.make("broker-a", path+"/questionnaires/"+q.id+"/response", q.text("x"))
	x := explained(t, h.Send("broker-a", "GET", path+"/entitlement_triggers/"+id+"/explain", ""), "[requirements approve notice]")
	if x.Decided || !x.After.Requirements[0].Met || x.After.Status != "finished" || len(x.Responses) != 1 {
		t.Errorf("%+v", x)
	}
}

// TestExplanationsThatFail: each error of a past state is a problem that says what to do.
func TestExplanationsThatFail(t *testing.T) {
	h := newHouse(t)
	path := h.person("p-1")
	id := h.make("broker-a", path+"/entitlement_triggers", `{"entitlement_id":"`+h.entitlement(owner.PersonType, `,"approval":"manual"`)+`"}`)
	broken := &record.BrokenRecordError{Journal: "onboarding", Reason: "an unknown type"}
	for _, tt := range []struct {
		err        error
		status     int
		code       string
		retryAfter string
	}{
		{past.ErrBefore, 404, "UNKNOWN_RECORD", ""},
		{explanations.ErrForeign, 404, "UNKNOWN_RECORD", ""},
		{&past.AfterError{Tip: record.Position{Sequence: 7}}, 409, "NOT_YET_DECIDED", "1"},
		{&past.BusyError{RetryAfter: 2 * time.Second}, 503, "TOO_MANY_PAST_STATES", "2"},
		{&record.TrimmedError{Base: record.Base{Sequence: 65536}}, 409, "LOG_TRIMMED", ""},
		{&explanations.DifferentError{Build: "v1.4.0"}, 409, "RULES_NOT_IN_BUILD", ""},
		{&past.ForeignError{Err: broken}, 409, "RULES_NOT_IN_BUILD", ""},
	} {
		h.Onboarding.FailDeciding(tt.err)
		r := h.Send("broker-a", "GET", path+"/entitlement_triggers/"+id+"/explain", "").Detail(tt.status, tt.code)
		if got := r.Header.Get("Retry-After"); got != tt.retryAfter {
			t.Errorf("%s: Retry-After is %q", tt.code, got)
		}
		p := h.Send("operator", "GET", strings.Replace(path, api, admin, 1)+"/entitlement_triggers/"+id+"/explain", "").Code(tt.status, tt.code)
		if tt.code == "RULES_NOT_IN_BUILD" && !strings.Contains(p.Text("detail"), "rules 5") {
			t.Errorf("the operator is shown %s", p.Body)
		}
	}
	h.Onboarding.FailDeciding(errors.New("away"))
	h.Send("broker-a", "GET", path+"/entitlement_triggers/"+id+"/explain", "").Want(500)
	h.Onboarding.FailDeciding(nil)
	h.Send("broker-a", "GET", path+"/entitlement_triggers/"+id+"/explain", "").Want(200)
}
