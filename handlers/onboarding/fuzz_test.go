package onboarding_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

// FuzzBodies: whatever is sent as an owner, as answers or as a trigger is taken or refused as the description says.
func FuzzBodies(f *testing.F) {
	v := tradingtest.New(f)
	make := func(user, path, body string) string { return v.Send(user, "POST", path, body).Want(201).Text("id") }
	path := api + "/persons/" + make("broker-a", api+"/persons", anna)
	q := admin + "/questionnaires/" + make("operator", admin+"/questionnaires", `{"name":"KYC","owner_type":"`+string(owner.PersonType)+`"}`)
	version := v.Send("operator", "POST", q+"/versions", draft()).Want(201)
	v.Send("operator", "POST", q+"/publish", "").Want(200)
	var shown struct {
		Questions []question `json:"questions"`
	}
	version.JSON(&shown)
	a := asked{questions: shown.Questions}
	for _, seed := range []string{anna, answers(a.complete(nothing, nothing)...), answers(a.answer(8, "answer_text", `"x"`)), `{"entitlement_id":"` + nothing + `"}`, `{`,
		`{"external_id":"\ud800","address":{"city":[]}}`, `{"answers":[{"question_id":5,"answer_integer":1e99}]}`} {
		f.Add(seed)
	}
	targets := []string{api + "/persons", api + "/corporates", path + "/questionnaires/" + strings.TrimPrefix(q, admin+"/questionnaires/") + "/response", path + "/entitlement_triggers"}
	token, described := v.Token("broker-a"), v.OpenAPI()
	f.Fuzz(func(t *testing.T, sent string) {
		for _, to := range targets {
			r, w := httptest.NewRequest("POST", to, strings.NewReader(sent)), httptest.NewRecorder()
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+token)
			v.Server.ServeHTTP(w, r)
			if !slices.Contains([]int{201, 404, 409, 413, 422}, w.Code) {
				t.Errorf("%s: %d %s", to, w.Code, w.Body)
			}
			if err := described.Response("POST", to, w.Code, w.Header(), w.Body.Bytes()); err != nil {
				t.Errorf("%s: %v: %s", to, err, w.Body)
			}
		}
	})
}
