package admin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

type position = record.Position

// TestOnboardingFaults lists, for each bad request, every fault that must be named. Nothing of it may reach the log.
func TestOnboardingFaults(t *testing.T) {
	d := newDesk(t)
	long := strings.Repeat("x", 2001)
	for _, tt := range []struct{ method, path, body, faults string }{
		{"POST", "/questionnaires", `{}`, "name REQUIRED, owner_type REQUIRED"},
		{"POST", "/questionnaires", `{"name":"","description":"\u0007","owner_type":"dog","owner_type_id":"x","more":1}`,
			"description CONTROL_CHARACTER, more UNKNOWN_FIELD, name INVALID_VALUE, owner_type INVALID_VALUE, owner_type_id INVALID_VALUE"},
		{"POST", "/questionnaires", `{"name":"` + strings.Repeat("x", 256) + `","description":7,"owner_type":"person"}`, "description WRONG_TYPE, name TOO_LONG"},
		{"GET", "/questionnaires?page=0&size=101&sort=asc", ``, "page OUT_OF_RANGE, size OUT_OF_RANGE, sort UNKNOWN_PARAMETER"},
		{"PATCH", "/questionnaires/x", `{}`, "REQUIRED"},
		{"PATCH", "/questionnaires/x", `{"owner_type":"person","name":"n"}`, "owner_type UNKNOWN_FIELD"},
		{"POST", "/questionnaires/x/versions", `{}`, "questions REQUIRED"},
		{"POST", "/questionnaires/x/versions", `{"questions":[]}`, "questions OUT_OF_RANGE"},
		{"POST", "/questionnaires/x/versions", `{"questions":[{},7,{"label":"a","value":"v","question_type":"text","position":1},{"label":"` + long + `","value":"v","question_type":"poem","position":1,"is_optional":1}]}`,
			"questions[0].label REQUIRED, questions[0].position REQUIRED, questions[0].question_type REQUIRED, questions[0].value REQUIRED, questions[1] WRONG_TYPE, " +
				"questions[3].is_optional WRONG_TYPE, questions[3].label TOO_LONG, questions[3].position INVALID_VALUE, questions[3].question_type INVALID_VALUE, questions[3].value INVALID_VALUE"},
		{"POST", "/questionnaires/x/versions", `{"questions":[{"label":"a","value":"a","question_type":"single_choice","position":1},{"label":"b","value":"b","question_type":"text","position":2,"options":[{"label":"x","value":"x","position":1}]},` +
			`{"label":"c","value":"c","question_type":"multiple_choice","position":3,"options":[{"label":"x","value":"x","position":1},{"label":" ","value":"x","position":1,"colour":"red"}]}]}`,
			"questions[0].options OUT_OF_RANGE, questions[1].options INVALID_VALUE, questions[2].options[1].colour UNKNOWN_FIELD, questions[2].options[1].label REQUIRED, " +
				"questions[2].options[1].position INVALID_VALUE, questions[2].options[1].value INVALID_VALUE"},
		{"POST", "/questionnaires/x/publish", `{"version_number":0}`, "version_number OUT_OF_RANGE"},
		{"POST", "/questionnaires/x/unpublish", `{"version_number":1}`, "version_number UNKNOWN_FIELD"},
		{"POST", "/entitlements", `{}`, "approval REQUIRED, name REQUIRED, owner_type REQUIRED"},
		{"POST", "/entitlements", `{"name":"n","owner_type":"person","approval":"never","deadline_seconds":0,"video_identification":"yes","questionnaires":[{},{"questionnaire_id":"00000000-0000-0000-0000-000000000001","position":1},` +
			`{"questionnaire_id":"00000000-0000-0000-0000-000000000002","position":1},{"questionnaire_id":"00000000-0000-0000-0000-000000000001","position":2}]}`,
			"approval INVALID_VALUE, deadline_seconds OUT_OF_RANGE, questionnaires[0].position REQUIRED, questionnaires[0].questionnaire_id REQUIRED, questionnaires[2].position INVALID_VALUE, " +
				"questionnaires[3].questionnaire_id INVALID_VALUE, video_identification WRONG_TYPE"},
		{"PATCH", "/entitlements/x", `{}`, "REQUIRED"},
		{"PATCH", "/entitlements/x", `{"owner_type":"person"}`, "REQUIRED, owner_type UNKNOWN_FIELD"},
		{"POST", "/entitlement_triggers/x/approve", `{}`, "code REQUIRED, reason REQUIRED"},
		{"POST", "/entitlement_triggers/x/approve", `{"code":"a b","reason":"` + long + `","internal_reason":"a\nb","outcome":"passed"}`,
			"code INVALID_VALUE, internal_reason CONTROL_CHARACTER, outcome UNKNOWN_FIELD, reason TOO_LONG"},
		{"POST", "/entitlement_triggers/x/terminate", `{"code":"OWNER_ERASED","reason":"r"}`, "code INVALID_VALUE"},
		{"POST", "/entitlement_triggers/x/request_information", `{"code":"C","reason":"r"}`, "questionnaire_ids REQUIRED"},
		{"POST", "/entitlement_triggers/x/request_information", `{"code":"C","reason":"r","questionnaire_ids":["x","y"]}`,
			"questionnaire_ids[0] INVALID_VALUE, questionnaire_ids[1] INVALID_VALUE"},
		{"POST", "/entitlement_triggers/x/complete_video_identification", `{"code":"C","reason":"r","outcome":"good","external_reference":"","questionnaire_ids":[]}`,
			"external_reference INVALID_VALUE, outcome INVALID_VALUE, questionnaire_ids UNKNOWN_FIELD"},
		{"POST", "/persons/x/erase", `{}`, "reason REQUIRED"},
		{"POST", "/entitlement_triggers/x/reject", `{"code":"C","reason":" ","internal_reason":"\u200b"}`, "internal_reason INVALID_VALUE, reason INVALID_VALUE"},
		{"POST", "/persons/x/erase", `{"reason":"\u00a0"}`, "reason INVALID_VALUE"},
		{"POST", "/corporates/x/hold", `{"reason":null}`, "reason NULL_NOT_ALLOWED"},
		{"POST", "/corporates/x/release-hold", `{"reason":7}`, "reason WRONG_TYPE"},
		{"PUT", "/retention", `{"seconds":-1}`, "seconds OUT_OF_RANGE"},
		{"PUT", "/retention", `{"seconds":"5 years"}`, "seconds WRONG_TYPE"},
		{"GET", "/retention?x=1", ``, "x UNKNOWN_PARAMETER"},
	} {
		tip := d.Onboarding.Tip()
		got := d.Send("operator", tt.method, base+tt.path, tt.body).Want(400).Faults()
		slices.Sort(got)
		if want := strings.Split(tt.faults, ", "); !slices.Equal(got, want) {
			t.Errorf("%s %s %.200s\n got  %v\n want %v", tt.method, tt.path, tt.body, got, want)
		}
		if d.Onboarding.Tip() != tip {
			t.Errorf("%s %s %.200s: a record was written", tt.method, tt.path, tt.body)
		}
	}
}

// TestWhoMay: an auditor reads what an operator reads and changes nothing, a broker does neither, and nobody is not known.
func TestWhoMay(t *testing.T) {
	d := newDesk(t)
	for _, r := range d.Routes() {
		if !strings.HasPrefix(r.Path, base) {
			continue
		}
		id := scalar.ID{9}.String()
		path := strings.NewReplacer(":person_id", id, ":corporate_id", id, ":document_id", id, ":response_id", id, ":trigger_id", id, ":id", id, ":username", "x", ":kid", "x", ":symbol", "x", ":customer_code", "x", ":code", "x", ":entry", "x", ":journal", "x").Replace(r.Path)
		status := func(user string) int { return d.Send(user, r.Method, path, "").Status }
		if got := status(""); got != 401 {
			t.Errorf("%s %s without a token: %d", r.Method, path, got)
		}
		if got := status("broker-a"); got != 403 {
			t.Errorf("%s %s of a broker: %d", r.Method, path, got)
		}
		if got := status("auditor"); (got == 403) != (r.Method != "GET") {
			t.Errorf("%s %s of an auditor: %d", r.Method, path, got)
		}
		if !slices.Contains(r.Scopes, access.ScopeOperator) {
			t.Errorf("%s %s is not an operator's", r.Method, path)
		}
	}
}
