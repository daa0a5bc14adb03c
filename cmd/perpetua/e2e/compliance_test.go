package e2e

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
)

// pixel is a picture of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// decided chooses an action of the case that is shown, gives the reason, and has it done.
func (b *browser) decided(action, reason, label string) {
	b.t.Helper()
	b.click(`#action option[value="` + action + `"]`)
	b.fill("#decide [name=reason]", reason+enter)
	b.sees("#decide-result", label+": done.")
}

// pageCase is the case that the compliance page is tried out on.
type pageCase struct {
	asked, more, entitlement string // ids: two questionnaires, and the entitlement that asks the first
	of                       string // path of the person
	owner                    object
	trigger                  string // id
	document                 string // id of the person's bank statement
}

// openCase makes a case of a person who has uploaded a passport and a bank statement, and has answered nothing yet.
func (c *intake) openCase() (p pageCase) {
	c.t.Helper()
	p.asked = c.questionnaire("About you", "person", "", everyType())
	p.more = c.questionnaire("One thing more", "person", "", everyType()[:1])
	p.entitlement = c.entitlement("retail_trading", "person", "manual", "", p.asked)
	c.subscribe("/hook", "")
	p.of, p.owner = c.register("persons", `{"external_id":"ann","first_name":"Ann","last_name":"Lee","nationality":"DEU"}`)
	p.trigger = c.trigger(p.of, p.entitlement).text("id")
	picture, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		c.t.Fatal(err)
	}
	c.upload(p.of, "passport.png", picture, "category", "id_document", "orientation", "front")
	p.document = c.upload(p.of, "statement.pdf", pdf(), "category", "bank_statement").text("id")
	return p
}

// TestCompliancePage does what a compliance operator does with a case: find it, read the answers and documents, ask for more,
// hold it, let it go, approve it, and deliver its webhook once more.
func TestCompliancePage(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	b.before(lateAnswers)
	c := startIntake(t)
	p := c.openCase()
	c.upload(p.of, "trades.csv", []byte("time,amount\n1,2\n"), "category", "trading_history")
	c.respondInFull(p.of, p.asked, p.document)

	// The queue has it; a filter takes it out, and a fault of one is said.
	b.open(c.REST + "/compliance")
	b.sees("#logged-out", "Log in as an operator")
	b.logIn(c.venue, "operator")
	b.sees("#queue", "retail trading", "ongoing", "person of alpha")
	b.keys("#filter [name=tenant]", "beta"+enter)
	b.sees("#queue-empty", "There are no such cases.")
	b.fill("#filter [name=tenant]", "alpha"+enter)
	b.sees("#queue", "person of alpha")
	b.keys("#filter [name=owner_id]", "Ann"+enter)
	b.sees("#filter [data-field=owner_id] .fault", "UUID")
	b.fill("#filter [name=owner_id]", p.owner.text("id")+enter)
	b.sees("#queue-count", "1–1 of 1")
	b.seesNot("#filter", "UUID")

	// The case shows who it is about, and what was answered, by the words of the questions.
	b.click("#queue button")
	b.sees("#case-title", "retail trading, person of alpha")
	b.sees("#owner", "Ann", "Lee", "DEU")
	b.sees("#answers", "About you, version 1", "What is your single_choice?", "It is ", "statement.pdf (bank statement)")
	b.sees("#timeline", "Applied for", "All questionnaires are answered")
	b.seesScript("the case to have the focus", `return document.activeElement.id === "case-panel" ? "it has" : ""`)

	// A picture and a PDF are shown, and what cannot be is offered.
	b.click(`[aria-label="Show passport.png"]`)
	b.seesScript("the picture", `const i = document.querySelector("#shown img"); return i && i.complete && i.naturalWidth === 1 ? "shown" : ""`)
	b.click(`[aria-label="Show statement.pdf"]`)
	b.sees("#viewer-title", "statement.pdf")
	b.seesScript("the PDF", `return document.querySelector("#shown iframe")?.src.startsWith("blob:") ? "shown" : ""`)
	b.screenshot("compliance-pdf")
	b.click(`[aria-label="Show trades.csv"]`)
	b.sees("#shown", "does not show this kind of file")
	b.seesScript("the file to be offered", `const a = document.querySelector("#save"); return a.download === "trades.csv" && a.href.includes("/api/v1/files/") ? "offered" : ""`)
	b.click("#close-viewer")

	// More is asked for; what is missing is said at its field.
	b.click(`#action option[value="request_information"]`)
	b.keys("#decide [name=reason]", "The statement is too old.\u202e"+enter) // the last character reverses what follows it
	b.sees("#field-questionnaires .fault", "at least one")
	b.click(`#field-questionnaires input[value="` + p.more + `"]`)
	b.keys("#decide [name=internal_reason]", "Seen by two of us."+enter)
	b.sees("#decide-result", "Request information: done.")
	b.sees("#timeline", "More was asked for", "The statement is too old.", "Internal: Seen by two of us.", "[operator]")
	b.seesScript("what follows the reason from left to right", `
		const walk = document.createTreeWalker(document.querySelector("#timeline"), NodeFilter.SHOW_TEXT);
		while (walk.nextNode() && !walk.currentNode.data.includes("[operator]"));
		const at = walk.currentNode.data.indexOf("[operator]"), left = (i) => {
			const range = document.createRange();
			range.setStart(walk.currentNode, at + i);
			range.setEnd(walk.currentNode, at + i + 1);
			return range.getBoundingClientRect().left;
		};
		return left(0) < left(1) && left(1) < left(9) ? "it is" : ""`)
	b.sees("#facts", "The statement is too old.")
	b.click(`#action option[value="approve"]`)
	b.keys("#decide [name=reason]", "Welcome."+enter)
	b.sees("#decide-result", "REQUIREMENTS_OPEN")
	c.respond(p.of, p.more, "text", `"It was"`)
	b.sees("#answers", "One thing more", "It was") // by itself

	// It is held, and let go; the video identification is asked for and reported; then it is approved.
	b.text("scrollTo(0, 0)")
	b.screenshot("compliance-top")
	caseStays := b.stays("#queue button")
	b.keepBack("/admin/v1/entitlement_triggers/"+p.trigger, func() { b.decided("block", "We look closer.", "Block") })
	b.sees("#case-status", "blocked")
	b.sees("#queue", "blocked")
	caseStays()
	b.release() // what comes late is of a case that was open
	if offered := b.text(`return [...document.querySelectorAll("#action option")].map((o) => o.value).join()`); offered != "release,cancel,terminate" {
		t.Errorf("what is blocked can be: %s", offered)
	}
	b.decided("release", "Thank you for waiting.", "Release")
	b.sees("#case-status", "ongoing")
	b.decided("request_video_identification", "We would like to see you.", "Request a video identification")
	b.sees("#facts", "video identification")
	b.click(`#action option[value="complete_video_identification"]`)
	b.keys("#decide [name=external_reference]", "call 7")
	b.decided("complete_video_identification", "We have seen you.", "Report the video identification")
	b.sees("#timeline", "(passed)", "Internal: call 7")
	b.decided("approve", "Welcome.", "Approve")
	b.sees("#case-status", "finished, success")
	b.sees("#no-actions", "The case is over.")
	b.focused("the case", "#case-panel") // the form that had it is gone

	// What receivers were told, with each attempt, is delivered again.
	b.sees("#deliveries", "requirementsQuestionnaire", "entitlementCompleted", "delivered", "to "+c.hooks.URL+"/hook", "1. ", ": 200")
	final := c.hooks.came("/hook", http.StatusOK)
	b.click(`[aria-label^="Deliver again: entitlementCompleted"]`)
	b.sees("#replay-result", "entitlementCompleted is delivered again.")
	waitFor(t, "the webhook to come again", func() bool { return len(c.hooks.came("/hook", http.StatusOK)) > len(final) })
	b.sees("#deliveries", "2. ")
	b.unlabeled()
	b.screenshot("compliance-wide")
	b.narrow()
	if wide := b.text("return String(document.documentElement.scrollWidth - innerWidth)"); wide != "0" {
		t.Errorf("the page is %s pixels wider than the screen", wide)
	}
	b.text("scrollTo(0, 0)")
	b.screenshot("compliance-narrow-queue")
	b.text(`document.getElementById("answers").scrollIntoView()`)
	b.screenshot("compliance-narrow-case")

	// An owner who is restricted is shown with the certificate; of one who is erased that and the case are all that is left.
	b.text("scrollTo(0, 0)")
	leave := func(name string) (of, trigger string) {
		of, _ = c.register("persons", `{"external_id":"`+name+`","first_name":"`+name+`","last_name":"Leaver"}`)
		return strings.Replace(of, "/api/v1", "/admin/v1", 1), c.trigger(of, p.entitlement).text("id")
	}
	ben, benTrigger := leave("Ben")
	c.operate(200, ben+"/erase", `{"reason":"He asked for it."}`)
	b.fill("#filter [name=owner_id]", enter)
	b.click(`#filter option[value="terminated"]`)
	b.click(`[data-case="` + benTrigger + `"]`)
	b.sees("#owner", "Ben", "restricted", "by operator: He asked for it.", "not destroyed yet")
	c.must(200, "operator", http.MethodPut, "/admin/v1/retention", `{"seconds":0}`)
	eve, eveTrigger := leave("Eve")
	b.click(`#filter option[value="pending|ongoing|blocked"]`)
	b.click(`[data-case="` + eveTrigger + `"]`)
	b.sees("#owner", "Eve")
	c.operate(200, eve+"/erase", `{"reason":"She asked for it."}`)
	b.sees("#owner-said", "There is nothing left of the owner")
	b.sees("#owner", "by operator: She asked for it.", ", destroyed ", "onboarding/0@")
	b.sees("#case-status", "terminated")
	if left := b.shown("#owner, #case, #banner"); strings.Contains(left, "Eve") || strings.Contains(left, "Leaver") {
		t.Errorf("of an owner who is erased there is left: %s", left)
	}

	// The address of a case leads to it; an auditor sees it, and decides nothing.
	b.click("#logout")
	b.sees("#logged-out", "Log in")
	if b.shown("#queue-panel, #case-panel") != "" {
		t.Error("after logging out there is still something to see")
	}
	b.open(c.REST + "/compliance#" + p.trigger)
	b.logIn(c.venue, "auditor")
	b.sees("#case-title", "retail trading, person of alpha")
	b.sees("#no-actions", "looks only")
	if left := b.shown("#decide") + b.shown("#deliveries button"); left != "" {
		t.Errorf("an auditor can do: %s", left)
	}
	for _, said := range b.complaints() {
		t.Errorf("the browser complains: %s", said)
	}
}
