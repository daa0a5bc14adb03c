package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fieldset is the selector of a question's field, by the question's key.
func (c *intake) fieldset(questionnaire, value string) string {
	c.t.Helper()
	data, _ := c.fetch("/api/v1/questionnaires/" + questionnaire)["data"].(map[string]any)
	questions, _ := data["questions"].([]any)
	for _, q := range questions {
		if one := object(q.(map[string]any)); one.text("value") == value {
			return `[data-question="` + one.text("id") + `"] `
		}
	}
	c.t.Fatalf("the questionnaire %s does not ask for %s", questionnaire, value)
	return ""
}

// passport writes a file that passes for one.
func passport(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "passport.pdf")
	if err := os.WriteFile(path, pdf(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// offer makes an entitlement to apply for, and returns the id of its questionnaire.
func (c *intake) offer() (asked string) {
	c.t.Helper()
	questions := everyType()
	for i := range questions {
		questions[i].optional = questions[i].kind == "multiple_documents"
	}
	asked = c.questionnaire("About you", "person", "", questions)
	c.entitlement("retail_trading", "person", "manual", "", asked)
	return asked
}

// TestApplyPage does what an applicant does: register, apply, answer a question of every type, answer once more what is asked for
// again, and see it granted.
func TestApplyPage(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	b.before(lateAnswers)
	c := startIntake(t)
	asked := c.offer()
	b.open(c.REST + "/apply")
	b.sees("#logged-out", "Log in")
	b.logIn(c.venue, "broker-a")

	// Who is new is registered; what is missing is said at its field.
	b.keys("#register [name=first_name]", "Ann"+enter)
	b.sees("#register [data-field=last_name] .fault", "Field required")
	b.sees("#register [data-field=external_id] .fault", "Field required")
	b.keys("#register [name=last_name]", "Lee")
	b.keys("#register [name=external_id]", "ann"+enter)
	b.sees("#owner", "Ann Lee · ann")
	b.sees("#asked-said", "Nothing is to be answered now.")
	b.sees("#cases-panel", "Nothing has been applied for yet.")

	// Applying brings the questions, which stay though an answer from before comes late.
	b.sees("#entitlement", "retail trading")
	b.keepBack("/pending_requirements", func() { b.click("#start [type=submit]") })
	b.sees("#forms", "About you", "Asked for: retail trading", "What is your single_choice?")
	b.sees("#cases", "retail trading", "ongoing", "Applied for")
	at := func(value string) string { return c.fieldset(asked, value) }

	// What is not answered, or not as it has to be, is said at its question, and the first of them has the focus.
	b.keys(at("integer")+"input", "a few")
	b.release()
	b.click("#forms [type=submit]")
	b.sees(at("text")+".fault", "has to be answered")
	b.sees(at("integer")+".fault", "integer")
	b.sees(at("document")+".fault", "has to be answered")
	b.sees("#forms .result[role=alert]", "7 questions need attention.")
	if now := b.text("return document.activeElement.tagName"); now != "TEXTAREA" {
		t.Errorf("the focus is on %s", now)
	}

	b.keys(at("text")+"textarea", "Engineer")
	b.fill(at("integer")+"input", "5")
	// What the operator asks for comes by itself, with the reason. It takes nothing from what is being typed.
	person := c.list("/api/v1/persons")[0].text("id")
	of := "/api/v1/persons/" + person
	trigger := c.list(of + "/entitlement_triggers")[0].text("id")
	more := c.questionnaire("One thing more", "person", "", everyType()[:1])
	c.act(trigger, "request_information", "MORE", `,"questionnaire_ids":["`+more+`"]`)
	b.sees("#forms", "One thing more", "Asked for: Because of MORE.")
	if now := b.text("return document.activeElement.value"); now != "5" {
		t.Errorf("the focus is on a field with %q", now)
	}
	b.keys(c.fieldset(more, "text")+"textarea", "As it was asked")
	b.click(at("bool") + `input[value="false"]`)
	b.click(at("country") + `option[value="DEU"]`)
	b.click(at("single_choice") + ".choice:nth-of-type(2) input")
	b.click(at("multiple_choice") + ".choice:nth-of-type(1) input")
	b.click(at("multiple_choice") + ".choice:nth-of-type(3) input")
	wrong := filepath.Join(t.TempDir(), "passport.exe")
	if err := os.WriteFile(wrong, []byte("MZ, no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.keys(at("document")+"input[type=file]", wrong)
	b.sees(at("document")+".result", "passport.exe was not taken", "UNSUPPORTED_MEDIA_TYPE")
	b.click(at("document") + `option[value="id_document"]`)
	b.keys(at("document")+"input[type=file]", passport(t))
	b.sees(at("document")+".result", "passport.pdf is uploaded")
	b.click(at("multiple_documents") + "input[type=checkbox]") // it is there at the other question, too
	if left := b.shown("#forms .fault"); left != "" {
		t.Errorf("all is answered, and faults are left: %s", left)
	}
	b.screenshot("apply-wide")
	b.narrow()
	if wide := b.text("return String(document.documentElement.scrollWidth - innerWidth)"); wide != "0" {
		t.Errorf("the page is %s pixels wider than the screen", wide)
	}
	b.text(`document.querySelector(arguments[0]).scrollIntoView()`, at("multiple_choice"))
	b.screenshot("apply-narrow")
	b.click("#forms [type=submit]")
	b.seesNot("#forms", "About you")
	if typed := b.text(`return document.querySelector("#forms textarea").value`); typed != "As it was asked" {
		t.Errorf("what was typed at the other form is now %q", typed)
	}

	// The answers are what was said.
	answers := c.list(of + "/responses")[0].text("answers")
	for _, want := range []string{`"answer_text":"Engineer"`, `"answer_integer":5`, `"answer_boolean":false`, `"answer_country":"DEU"`, "answer_option_id", "answer_option_ids",
		"answer_document_id", "answer_document_ids"} {
		if !strings.Contains(answers, want) {
			t.Errorf("the answers lack %s: %s", want, answers)
		}
	}

	// What is asked otherwise by now is asked anew; then it is granted.
	c.version(more, everyType()[1:2])
	c.operate(200, "/admin/v1/questionnaires/"+more+"/publish", map[string]any{})
	b.click("#forms [type=submit]")
	b.sees("#asked-said", "One thing more has changed meanwhile.")
	b.keys(c.fieldset(more, "integer")+"input", "7")
	b.click("#forms [type=submit]")
	b.sees("#asked-said", "Nothing is to be answered now.")
	c.act(trigger, "approve", "APPROVED", "")
	b.sees("#case-said", "It is granted.")
	b.sees("#cases", "finished, success", "Because of APPROVED.")
	b.screenshot("apply-granted")

	// A corporate is asked for its own name.
	b.click(`#find [value="corporates"]`)
	b.keys("#register [name=legal_name]", "Acme Ltd")
	b.keys("#register [name=external_id]", "acme"+enter)
	b.sees("#owner", "Acme Ltd · acme")
	b.sees("#entitlement-description", "There is none to apply for.")
	b.unlabeled()
	b.click("#logout")
	b.sees("#logged-out", "Log in")
	if b.shown("#workplace, #who") != "" {
		t.Error("after logging out there is still something to see")
	}
	for _, said := range b.complaints() {
		t.Errorf("the browser complains: %s", said)
	}
}

// unlabeled fails for every field on the page that has no label.
func (b *browser) unlabeled() {
	b.t.Helper()
	if names := b.text(`return [...document.querySelectorAll("input, select, textarea")].filter((e) => !e.labels.length && !e.getAttribute("aria-label")).map((e) => e.outerHTML).join("\n")`); names != "" {
		b.t.Errorf("fields without a label: %s", names)
	}
}
