package e2e

import (
	"net/http"
	"testing"
)

// review opens the newest proposal of a journal in the console.
func (b *browser) review(journal string) {
	b.t.Helper()
	b.click(`[data-journal="` + journal + `"] tr:first-child .review`)
}

// focused waits until an element has the focus.
func (b *browser) focused(what, selector string) {
	b.t.Helper()
	b.seesScript("the focus on "+what, `return document.activeElement.matches(`+"`"+selector+"`"+`) ? "it is" : ""`)
}

// TestConsoleProposals ends proposals of one operator as another, on the page. The server refuses what the proposer must not do, and
// the page says so.
func TestConsoleProposals(t *testing.T) {
	t.Parallel()
	b := startAuditBrowser(t)
	v := startVenue(t)
	v.must(201, "operator", http.MethodPost, "/admin/v1/users", `{"username":"olga","password":"a good password","broker":"venue","scopes":["operator","read"]}`)
	v.tokens["olga"] = v.login("olga", "a good password")
	v.fund("50000", "ANNA")
	v.must(200, "operator", http.MethodPut, "/admin/v1/four-eyes/trading", `{"rules":[{"action":"withdrawal.request","threshold":"1000"}]}`)
	const withdrawals = "/admin/v1/customers/ANNA/withdrawals"
	propose := func(reference string) string {
		return "/admin/v1/four-eyes/trading/proposals/" +
			v.must(202, "operator", http.MethodPost, withdrawals, `{"currency":"USDC","amount":"2000","reference_id":"`+reference+`"}`).get("id")
	}
	status := func(proposal, want string) {
		t.Helper()
		if a := v.must(200, "auditor", http.MethodGet, proposal, nil); a.get("status") != want {
			t.Errorf("the proposal is %s, want %s", a.Body, want)
		}
	}
	confirmed := propose("to-confirm")
	b.open(v.REST + "/")
	b.logIn(v, "operator")
	b.sees(`[data-journal="trading"]`, "withdrawal.request", "operator", "open")
	b.sees(`[data-journal="trading"] .hint`, "policy of the journal identity")
	for _, journal := range []string{"onboarding", "identity"} {
		b.sees(`[data-journal="`+journal+`"]`, "No such proposals")
	}
	b.review("trading")
	b.sees("#proposal-body", "operator", `"amount": "2000"`, `"reference_id": "to-confirm"`, "ANNA")
	b.click("#proposal-actions [value=confirm]")
	b.sees("#proposal-result", "SELF_APPROVAL")
	status(confirmed, "open")
	b.accessible("/ proposal")
	b.click("#proposal-dialog [data-close]")
	b.accessible("/ proposals")

	// A refusal that comes late is not shown in the dialog of another proposal.
	b.text(`const fetched = window.fetch; window.fetch = (path, o) => o.method !== "POST" ? fetched(path, o) : new Promise((done) => { window.letGo = () => { window.fetch = fetched; fetched(path, o).then(done); }; }); return ""`)
	b.review("trading")
	b.sees("#proposal-body", `"reference_id": "to-confirm"`)
	b.click("#proposal-actions [value=confirm]")
	b.seesScript("the request", `return window.letGo ? "it is sent" : ""`)
	b.click("#proposal-dialog [data-close]")
	b.seesNot("#proposal-dialog", "Close")
	reviewStays := b.stays(`[data-journal="trading"] tr:last-child .review`)
	late := v.must(202, "operator", http.MethodPost, withdrawals, `{"currency":"USDC","amount":"3000","reference_id":"another"}`).get("id")
	b.sees(`[data-journal="trading"] tr:nth-child(2)`, "withdrawal.request")
	reviewStays()
	b.review("trading")
	b.sees("#proposal-body", `"reference_id": "another"`)
	b.text(`window.letGo(); return ""`)
	b.seesScript("the answer", `return document.getElementById("proposal-end").getAttribute("aria-busy") ? "" : "it came"`)
	b.seesNot("#proposal-result", "SELF_APPROVAL")
	b.click("#proposal-actions [value=withdraw]")
	b.sees("#proposal-result", "The proposal is withdrawn")
	b.focused("the button that closes", `#proposal-dialog [data-close]`) // the one that was pressed is gone
	status("/admin/v1/four-eyes/trading/proposals/"+late, "withdrawn")
	b.seesNot("#proposals", "another")
	b.seesScript("one row", `return document.querySelectorAll('[data-journal="trading"] tbody tr').length === 1 ? "one" : ""`)
	b.click("#proposal-dialog [data-close]")
	b.focused("the filter", "#proposals-status") // the row that was left is gone
	if left := b.text(`return document.getElementById("proposal-body").textContent`); left != "" {
		t.Errorf("the page still has %s", left)
	}

	// A command can't look like another one.
	v.must(200, "operator", http.MethodPut, "/admin/v1/four-eyes/onboarding", `{"rules":[{"action":"entitlement.create"}]}`)
	v.must(202, "operator", http.MethodPost, "/admin/v1/entitlements", `{"name":"x\u202egnidart\u202c<b>","description":"d","owner_type":"person","approval":"manual"}`)
	b.sees(`[data-journal="onboarding"]`, "entitlement.create")
	b.review("onboarding")
	b.sees("#proposal-body", `x\u202egnidart\u202c<b>`)
	b.click("#proposal-dialog [data-close]")
	b.focused("the row", `[data-journal="onboarding"] .review`)

	b.click("#logout")
	b.click("#open-login")
	b.fill("#login [name=username]", "olga")
	b.fill("#login [name=password]", "a good password"+enter)
	b.sees("#who", "olga")
	b.sees(`[data-journal="trading"]`, "withdrawal.request")
	b.review("trading")
	b.sees("#proposal-body", `"reference_id": "to-confirm"`)
	b.click("#proposal-actions [value=confirm]")
	b.sees("#proposal-result", "The proposal is confirmed")
	b.sees("#proposal-body", "Ended by", "olga")
	status(confirmed, "confirmed")
	b.click("#proposal-dialog [data-close]")
	b.sees(`[data-journal="trading"]`, "No such proposals")

	rejected := propose("to-reject")
	b.sees(`[data-journal="trading"]`, "withdrawal.request")
	b.review("trading")
	b.sees("#proposal-body", `"reference_id": "to-reject"`)
	b.click("#proposal-actions [value=reject]")
	b.sees("#proposal-result", "The proposal is rejected")
	status(rejected, "rejected")
	b.click("#proposal-dialog [data-close]")
	b.sees(`[data-journal="trading"]`, "No such proposals")

	// What changes before the confirmation makes it void.
	voided := propose("to-void")
	b.sees(`[data-journal="trading"]`, "withdrawal.request")
	v.must(201, "operator", http.MethodPost, withdrawals, `{"currency":"USDC","amount":"10","reference_id":"between"}`)
	b.review("trading")
	b.sees("#proposal-body", "A confirmation makes it void")
	b.click("#proposal-actions [value=confirm]")
	b.sees("#proposal-result", "EVIDENCE_CHANGED")
	b.sees("#proposal-body", "voided")
	status(voided, "voided")
	b.click("#proposal-dialog [data-close]")
	b.click(`#proposals-status option[value=""]`)
	b.sees(`[data-journal="trading"]`, "confirmed", "rejected", "voided")

	// Only the proposer withdraws.
	withdrawn := propose("to-withdraw")
	b.click(`#proposals-status option[value="open"]`)
	b.seesNot(`[data-journal="trading"]`, "voided")
	b.sees(`[data-journal="trading"]`, "withdrawal.request")
	b.review("trading")
	b.click("#proposal-actions [value=withdraw]")
	b.sees("#proposal-result", "NOT_THE_PROPOSER")
	status(withdrawn, "open")
	b.click("#proposal-dialog [data-close]")
	b.logOutAndIn(v, "operator")
	b.sees(`[data-journal="trading"]`, "withdrawal.request")
	b.review("trading")
	b.sees("#proposal-body", `"reference_id": "to-withdraw"`)
	b.click("#proposal-actions [value=withdraw]")
	b.sees("#proposal-result", "The proposal is withdrawn")
	status(withdrawn, "withdrawn")
	b.click("#proposal-dialog [data-close]")

	// An auditor reads, and a broker sees nothing.
	b.logOutAndIn(v, "auditor")
	b.click(`#proposals-status option[value=""]`)
	b.sees(`[data-journal="trading"]`, "withdrawn")
	b.review("trading")
	b.sees("#proposal-body", `"reference_id": "to-withdraw"`)
	if shown := b.shown("#proposal-actions button"); shown != "" {
		t.Errorf("an auditor is offered %s", shown)
	}
	b.click("#proposal-dialog [data-close]")
	b.logOutAndIn(v, "broker-a")
	b.sees("#customer", "ANNA")
	if shown := b.shown("#proposals-panel"); shown != "" {
		t.Errorf("a broker sees %s", shown)
	}
	b.wantNoComplaints()
}
