package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
)

// pastReads are the reads of the trading interface that take as_of. Operators ask for those under /admin/v1.
var pastReads = []string{annasOrders, "/v1/customers/BEN/positions", "/v1/customers/BEN/balances", "/v1/orders?customer_code=BEN", "/v1/orderbook/" + bitcoin, "/v1/instruments",
	"/v1/customers/ANNA/account-summary", "/v1/customers/BEN/state", "/v1/customers/BEN/fee-profile", "/v1/customers/BEN/margin-profile", "/v1/account-summaries",
	"/v1/positions", "/v1/orders", "/v1/customers", "/v1/tickers",
	"/admin/v1/margin-ranking", "/admin/v1/instruments", "/admin/v1/instruments/" + bitcoin, "/admin/v1/insurance"}

// ask asks as of something and returns the answer with its positions.
func (v *venue) ask(path, asOf string) string {
	v.t.Helper()
	user, separator := "broker-a", "?"
	if strings.HasPrefix(path, "/admin") {
		user = "operator"
	}
	if strings.Contains(path, "?") {
		separator = "&"
	}
	path += separator + "as_of=" + asOf
	var a answer
	waitFor(v.t, "an answer to "+path, func() bool { // a busy machine may take longer than the venue waits for its rows
		a = v.do(user, http.MethodGet, path, nil)
		return a.Status != http.StatusServiceUnavailable
	})
	return fmt.Sprintf("%d %v %s", a.Status, a.Header.Values(operation.HeaderLogPosition), withoutRequest(string(a.Body)))
}

// withoutRequest removes the id of the request from a problem.
func withoutRequest(body string) string {
	before, after, found := strings.Cut(body, `"request_id":"`)
	if !found {
		return body
	}
	_, after, _ = strings.Cut(after, `"`)
	return before + after
}

// person has a tenant onboard a person, and returns the reads of the onboarding journal that take as_of.
func (v *venue) person() []string {
	v.t.Helper()
	id := func(a answer) string { return a.get("id") }
	questionnaire := id(v.must(201, "operator", http.MethodPost, "/admin/v1/questionnaires", map[string]string{"name": "KYC", "owner_type": "person"}))
	v.must(201, "operator", http.MethodPost, "/admin/v1/questionnaires/"+questionnaire+"/versions",
		`{"questions":[{"label":"Name","value":"name","question_type":"text","position":1}]}`)
	v.must(200, "operator", http.MethodPost, "/admin/v1/questionnaires/"+questionnaire+"/publish", nil)
	definition := id(v.must(201, "operator", http.MethodPost, "/admin/v1/entitlements",
		`{"name":"Trading","owner_type":"person","approval":"manual","questionnaires":[{"questionnaire_id":"`+questionnaire+`","position":1}]}`))
	path := "/api/v1/persons/" + id(v.must(201, "broker-a", http.MethodPost, "/api/v1/persons", `{"external_id":"p-1","first_name":"Anna","last_name":"Ost"}`))
	trigger := path + "/entitlement_triggers/" + id(v.must(201, "broker-a", http.MethodPost, path+"/entitlement_triggers", `{"entitlement_id":"`+definition+`"}`))
	for _, name := range []string{"Berta", "Clara", "Dora"} {
		v.must(200, "broker-a", http.MethodPatch, path, `{"first_name":"`+name+`"}`)
	}
	return []string{path, path + "/entitlement_triggers", trigger, trigger + "/timeline", path + "/pending_requirements", path + "/responses", path + "/documents",
		"/api/v1/persons", "/api/v1/questionnaires/persons", "/api/v1/questionnaires/" + questionnaire, "/api/v1/entitlements/persons", "/admin/v1/persons", "/admin/v1/entitlement_triggers",
		"/admin/v1/questionnaires", "/admin/v1/questionnaires/" + questionnaire, "/admin/v1/entitlements", "/admin/v1/entitlements/" + definition}
}

// pasts asks all questions as of n records of each journal, evenly spread, and as of one after the end.
func (v *venue) pasts(persons []string, n int) map[string]string {
	v.t.Helper()
	answers := make(map[string]string)
	for journal, paths := range map[string][]string{"trading": pastReads, "onboarding": persons} {
		last := len(v.records(journal)) - 1
		for i := range n {
			asOf := fmt.Sprintf("%s/0@%d", journal, last*(i+1)/(n+1))
			for _, path := range paths {
				answers[path+" "+asOf] = v.ask(path, asOf)
			}
		}
		for _, path := range paths {
			if got := v.ask(path, fmt.Sprintf("%s/0@%d", journal, last+100000)); !strings.HasPrefix(got, "409") || !strings.Contains(got, "NOT_YET_DECIDED") {
				v.t.Errorf("%s after the end: %s", path, got)
			}
		}
	}
	found := 0
	for _, a := range answers {
		if strings.HasPrefix(a, "200") {
			found++
		}
	}
	if found < len(answers)/2 {
		v.t.Errorf("only %d of %d questions have an answer: %v", found, len(answers), answers)
	}
	return answers
}

// asksAgain compares the answers with those to the same questions now.
func (v *venue) asksAgain(when string, answers map[string]string) {
	v.t.Helper()
	for question, was := range answers {
		path, asOf, _ := strings.Cut(question, " ")
		if is := v.ask(path, asOf); is != was {
			v.t.Errorf("%s, %s as of %s is\n%s\nand not\n%s", when, path, asOf, is, was)
		}
	}
}

// TestPastOfARestartedVenue asks as of past records, kills the venue, makes its rows again, and asks again.
func TestPastOfARestartedVenue(t *testing.T) {
	t.Parallel()
	v := newVenue(t, "--snapshot-records", "10")
	v.start()
	t.Cleanup(v.stop)
	v.fund("10000", "ANNA", "BEN")
	persons := v.person()
	for i := range 10 {
		v.must(201, "broker-a", http.MethodPost, annasOrders, fmt.Sprintf(`{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.010","limit_price":"65%d00.0"}`, i%3))
		v.must(201, "broker-a", http.MethodPost, bensOrders, fmt.Sprintf(`{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.010","limit_price":"6%d000.0"}`, 5+i%2))
	}
	answers := v.pasts(persons, 8)
	v.asksAgain("at once", answers)
	v.kill()
	v.start()
	v.asksAgain("after a crash", answers)
	v.tool("rebuild")
	v.asksAgain("after a rebuild", answers)
	v.stop()
	v.dropDatabase()
	v.start()
	v.asksAgain("with new rows", answers)
}
