package trading_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
)

// TestEveryReadTakesOrRefusesAsOf asks every GET of the interfaces as of the first record. The reads that the description declares
// as_of for answer, also if nothing was there yet. All others say that they can't.
func TestEveryReadTakesOrRefusesAsOf(t *testing.T) {
	v := funded(t)
	person := v.Send("broker-a", "POST", "/api/v1/persons", `{"external_id":"p","first_name":"Anna","last_name":"Øst"}`).Want(201).Text("id")
	corporate := v.Send("broker-a", "POST", "/api/v1/corporates", `{"external_id":"c","legal_name":"Acme"}`).Want(201).Text("id")
	hook := v.Send("broker-a", "POST", "/api/v1/webhooks", `{"url":"https://example.org/"}`).Want(201).Text("id")
	v.Onboarding.Drain()
	named := strings.NewReplacer(":person_id", person, ":corporate_id", corporate, ":webhook_id", hook)
	takes, refuses := 0, 0
	for _, r := range v.Routes() {
		if r.Method != http.MethodGet {
			continue
		}
		path := concrete(named.Replace(r.Path))
		for at := strings.Index(path, ":"); at >= 0; at = strings.Index(path, ":") {
			name, _, _ := strings.Cut(path[at:], "/")
			path = strings.Replace(path, name, "00000000-0000-8000-8000-000000000001", 1)
		}
		user := "operator"
		if strings.HasPrefix(path, "/api/v1/webhooks") || strings.HasPrefix(path, "/api/v1/events") {
			user = "broker-a"
		}
		asked := &url.URL{Path: path, RawQuery: "as_of=2001-01-01T00:00:00Z"}
		header := http.Header{operation.HeaderMinLogPosition: {""}}
		declared := v.OpenAPI().Request(http.MethodGet, asked, header, nil) == nil
		answer := v.Send(user, http.MethodGet, asked.String(), "", operation.HeaderMinLogPosition, "")
		invalid := answer.Status == http.StatusBadRequest || answer.Status == http.StatusUnprocessableEntity
		says := strings.Contains(answer.Body, "this read cannot be answered as of a past record") || strings.Contains(answer.Body, `"loc":["query","as_of"]`)
		switch {
		case declared:
			takes++
			if answer.Status != http.StatusNotFound {
				t.Errorf("%s declares as_of and answers %d %s", r.Path, answer.Status, answer.Body)
			}
		case strings.HasPrefix(r.Path, "/api/v1/files/"): // its query is that of a signed link, and may have no other parameter
			if answer.Status != http.StatusForbidden {
				t.Errorf("%s answers %d %s", r.Path, answer.Status, answer.Body)
			}
		default:
			refuses++
			if !invalid || !says {
				t.Errorf("%s does not declare as_of and answers %d %s", r.Path, answer.Status, answer.Body)
			}
		}
	}
	if takes < 70 || refuses < 50 {
		t.Errorf("%d reads take as_of, %d do not", takes, refuses)
	}
}
