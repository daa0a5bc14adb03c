package onboarding_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

const (
	api     = "/api/v1"
	admin   = "/admin/v1"
	nothing = "00000000-0000-8000-8000-000000000001" // an id that nothing has
)

// house is a venue whose tenants onboard persons and corporates.
type house struct {
	*testing.T
	*tradingtest.Venue
}

func newHouse(t *testing.T) *house {
	t.Helper()
	return &house{t, tradingtest.New(t)}
}

// make posts something, has what follows from it done, and returns its id.
func (h *house) make(user, path, body string) string {
	h.T.Helper()
	id := h.Send(user, "POST", path, body).Want(201).Text("id")
	h.Onboarding.Drain()
	return id
}

// person and corporate register an owner of alpha's, and return its path.
func (h *house) person(externalID string) string {
	h.T.Helper()
	return api + "/persons/" + h.make("broker-a", api+"/persons", `{"external_id":"`+externalID+`","first_name":"Anna","last_name":"Øst"}`)
}

func (h *house) corporate(externalID string) string {
	h.T.Helper()
	return api + "/corporates/" + h.make("broker-a", api+"/corporates", `{"external_id":"`+externalID+`","legal_name":"Acme"}`)
}

// upload registers a document of an owner's without a file, and returns its id.
func (h *house) upload(path string) string {
	h.T.Helper()
	return h.addDocument(path).String()
}

// questionTypes are in the order of the questions of every.
var questionTypes = []string{"text", "integer", "bool", "country", "single_choice", "multiple_choice", "document", "multiple_documents"}

// draft asks a question of every type, the optional ones a second time.
func draft() string {
	var questions []string
	for i, kind := range append(slices.Clone(questionTypes), questionTypes...) {
		options := ""
		if strings.HasSuffix(kind, "choice") {
			options = `,"options":[{"label":"A","value":"a","position":1},{"label":"B","value":"b","position":2},{"label":"C","value":"c","position":3}]`
		}
		questions = append(questions, fmt.Sprintf(`{"label":"Question %d","value":"q%d","question_type":"%s","is_optional":%t,"position":%d%s}`,
			i, i, kind, i >= len(questionTypes), i+1, options))
	}
	return `{"questions":[` + strings.Join(questions, ",") + `]}`
}

// asked is a published questionnaire with the ids of its newest version.
type asked struct {
	id, version string
	questions   []question
}

type question struct {
	ID      string `json:"id"`
	Type    string `json:"question_type"`
	Options []struct {
		ID string `json:"id"`
	} `json:"options"`
}

// questionnaire makes one and publishes a version of it; of one owner if more says so.
func (h *house) questionnaire(name string, of owner.Type, questions, more string) *asked {
	h.T.Helper()
	a := &asked{id: h.make("operator", admin+"/questionnaires", fmt.Sprintf(`{"name":%q,"owner_type":%q%s}`, name, of, more))}
	h.publish(a, questions)
	return a
}

// publish gives a questionnaire another version.
func (h *house) publish(a *asked, questions string) {
	h.T.Helper()
	path := admin + "/questionnaires/" + a.id
	version := h.Send("operator", "POST", path+"/versions", questions).Want(201)
	h.Send("operator", "POST", path+"/publish", "").Want(200)
	var shown struct {
		ID        string     `json:"id"`
		Questions []question `json:"questions"`
	}
	version.JSON(&shown)
	a.version, a.questions = shown.ID, shown.Questions
}

const oneText = `{"questions":[{"label":"Name","value":"name","question_type":"text","position":1}]}`

// text answers the only question of a questionnaire.
func (a *asked) text(s string) string {
	return fmt.Sprintf(`{"answers":[{"question_id":%q,"answer_text":%q}]}`, a.questions[0].ID, s)
}

// entitlement makes a definition that asks for questionnaires, and returns its id.
func (h *house) entitlement(of owner.Type, more string, questionnaires ...*asked) string {
	h.T.Helper()
	var items []string
	for i, q := range questionnaires {
		items = append(items, fmt.Sprintf(`{"questionnaire_id":%q,"position":%d}`, q.id, i+1))
	}
	return h.make("operator", admin+"/entitlements", fmt.Sprintf(`{"name":"Trading","owner_type":%q,"questionnaires":[%s]%s}`, of, strings.Join(items, ","), more))
}

// want holds members of an answer against what they have to be: name, text, name, text …
func want(t *testing.T, r *tradingtest.Reply, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := r.Text(pairs[i]); got != pairs[i+1] {
			t.Errorf("%s is %q, want %q: %s", pairs[i], got, pairs[i+1], r.Body)
		}
	}
}

// ids returns the ids of items.
func ids(items []*tradingtest.Reply) []string {
	out := []string{}
	for _, i := range items {
		out = append(out, i.Text("id"))
	}
	return out
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %q\nwant %q", what, got, want)
	}
}
