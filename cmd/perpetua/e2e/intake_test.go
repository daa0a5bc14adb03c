package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"
)

// intake is a client of the onboarding interface, an operator beside it, and a receiver of webhooks.
type intake struct {
	*reading
	hooks *webhookReceiver
}

// newIntake prepares a venue whose webhooks may go to a receiver on this machine. It is not running.
func newIntake(t testing.TB, args ...string) *intake {
	t.Helper()
	hooks := newWebhookReceiver(t)
	args = append([]string{"--webhook-ca", hooks.CA, "--webhook-allow", "127.0.0.0/8"}, args...)
	return &intake{reading: &reading{desk: &desk{venue: newVenue(t, args...)}}, hooks: hooks}
}

// startIntake starts one, and stops it with the test.
func startIntake(t testing.TB, args ...string) *intake {
	t.Helper()
	c := newIntake(t, args...)
	c.start()
	t.Cleanup(c.stop)
	return c
}

// register makes a person or a corporate of broker-a's and returns the path of what hangs on it.
func (c *intake) register(kind, body string) (path string, made object) {
	c.t.Helper()
	made = c.sendAs(201, "broker-a", http.MethodPost, "/api/v1/"+kind, body)
	return "/api/v1/" + kind + "/" + made.text("id"), made
}

// subscribe registers a webhook of broker-a at a path of the receiver, which verifies with its public key from then on.
func (c *intake) subscribe(path, rest string) object {
	c.t.Helper()
	made := c.sendAs(201, "broker-a", http.MethodPost, "/api/v1/webhooks", `{"url":"`+c.hooks.URL+path+`"`+rest+`}`)
	c.hooks.knows(path, made.text("public_key"))
	return made
}

// question is what an operator makes one of.
type question struct {
	value    string
	kind     string
	optional bool
	options  []string
}

// everyType asks one question of each type, the first of which must be answered.
func everyType() (all []question) {
	for i, kind := range []string{"text", "integer", "bool", "country", "single_choice", "multiple_choice", "document", "multiple_documents"} {
		q := question{value: kind, kind: kind, optional: i > 0}
		if strings.HasSuffix(kind, "_choice") {
			q.options = []string{"red", "green", "blue"}
		}
		all = append(all, q)
	}
	return all
}

// questionnaire makes a questionnaire with a published version. A person or corporate whom alone it is for may be "".
func (c *intake) questionnaire(name, ownerType, only string, questions []question) (id string) {
	c.t.Helper()
	body := map[string]any{"name": name, "description": "About " + name + ".", "owner_type": ownerType}
	if only != "" {
		body["owner_type_id"] = only
	}
	id = c.operate(201, "/admin/v1/questionnaires", body).text("id")
	c.version(id, questions)
	c.operate(200, "/admin/v1/questionnaires/"+id+"/publish", map[string]any{})
	return id
}

// version adds a version to a questionnaire.
func (c *intake) version(questionnaire string, questions []question) object {
	c.t.Helper()
	var list []map[string]any
	for i, q := range questions {
		options := []map[string]any{}
		for n, o := range q.options {
			options = append(options, map[string]any{"label": "It is " + o, "value": o, "position": n + 1})
		}
		list = append(list, map[string]any{"label": "What is your " + q.value + "?", "value": q.value, "question_type": q.kind, "is_optional": q.optional,
			"position": i + 1, "options": options})
	}
	return c.operate(201, "/admin/v1/questionnaires/"+questionnaire+"/versions", map[string]any{"questions": list})
}

// entitlement makes a definition and returns its id.
func (c *intake) entitlement(name, ownerType, approval, rest string, questionnaires ...string) (id string) {
	c.t.Helper()
	var items []string
	for i, q := range questionnaires {
		items = append(items, fmt.Sprintf(`{"questionnaire_id":%q,"position":%d}`, q, i+1))
	}
	return c.operate(201, "/admin/v1/entitlements", fmt.Sprintf(`{"name":%q,"description":"Lets you do it.","owner_type":%q,"approval":%q,"questionnaires":[%s]%s}`,
		name, ownerType, approval, strings.Join(items, ","), rest)).text("id")
}

// operate posts as the operator.
func (c *intake) operate(status int, path string, body any) (o object) {
	c.t.Helper()
	c.parse(c.must(status, "operator", http.MethodPost, path, body).Body, &o)
	return o
}

// act has the operator do something about a trigger.
func (c *intake) act(trigger, action, code, rest string) object {
	c.t.Helper()
	return c.operate(200, "/admin/v1/entitlement_triggers/"+trigger+"/"+action, `{"code":"`+code+`","reason":"Because of `+code+`."`+rest+`}`)
}

// trigger asks for an entitlement.
func (c *intake) trigger(of, entitlement string) object {
	c.t.Helper()
	return c.sendAs(201, "broker-a", http.MethodPost, of+"/entitlement_triggers", `{"entitlement_id":"`+entitlement+`"}`)
}

// fetch reads an object as broker-a.
func (c *intake) fetch(path string) (o object) {
	c.t.Helper()
	c.parse(c.must(200, "broker-a", http.MethodGet, path, nil).Body, &o)
	return o
}

// list reads the items of a page as broker-a.
func (c *intake) list(path string) []object {
	c.t.Helper()
	return c.fetch(path).objects("items")
}

// objects returns a member that is a list of objects.
func (o object) objects(member string) (out []object) {
	list, _ := o[member].([]any)
	for _, one := range list {
		if of, is := one.(map[string]any); is {
			out = append(out, of)
		}
	}
	return out
}

// texts returns a member that is a list of strings.
func (o object) texts(member string) (out []string) {
	list, _ := o[member].([]any)
	for _, one := range list {
		out = append(out, fmt.Sprint(one))
	}
	return out
}

// pending reads what an owner has to answer.
func (c *intake) pending(of string) (list []object) {
	c.t.Helper()
	c.parse(c.must(200, "broker-a", http.MethodGet, of+"/pending_requirements", nil).Body, &list)
	return list
}

// until waits for a trigger to have a state, and returns it.
func (c *intake) until(of, trigger, status string) (found object) {
	c.t.Helper()
	waitForWord(c.t, "the trigger to be "+status, func() string {
		found = c.fetch(of + "/entitlement_triggers/" + trigger)
		if found.text("status") == status {
			return ""
		}
		return fmt.Sprint(found)
	})
	return found
}

// pdf is a whole file of one empty page.
func pdf() []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var at []int
	for i, content := range []string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"} {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj%sendobj\n", i+1, content)
	}
	start := b.Len()
	b.WriteString("xref\n0 4\n0000000000 65535 f \n")
	for _, offset := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer<</Size 4/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", start)
	return b.Bytes()
}

// form returns the body of an upload and its content type. Fields come in pairs; a file without a name is left out.
func (c *reading) form(name string, content []byte, fields ...string) (body, contentType string) {
	c.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i+1 < len(fields); i += 2 {
		if err := w.WriteField(fields[i], fields[i+1]); err != nil {
			c.t.Fatal(err)
		}
	}
	if name != "" {
		header := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="` + name + `"`}, "Content-Type": {"application/octet-stream"}}
		part, err := w.CreatePart(header)
		if err == nil {
			_, err = part.Write(content)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		c.t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// sendFile uploads a file as broker-a, whatever comes of it.
func (c *intake) sendFile(of, name string, content []byte, fields ...string) answer {
	c.t.Helper()
	body, contentType := c.form(name, content, fields...)
	return c.do("broker-a", http.MethodPost, of+"/documents", body, "Content-Type", contentType)
}

// upload uploads a file as broker-a.
func (c *intake) upload(of, name string, content []byte, fields ...string) (o object) {
	c.t.Helper()
	a := c.insist(201, func() answer { return c.sendFile(of, name, content, fields...) })
	if a.Status != 201 {
		c.t.Fatalf("an upload of %s: %d %s", name, a.Status, a.Body)
	}
	c.parse(a.Body, &o)
	return o
}

// answers fills a questionnaire: the questions with the given values of their own, in pairs of what they are called and the JSON of
// the answer, or "$" and an option's name.
func (c *intake) answers(questionnaire string, given ...string) string {
	c.t.Helper()
	data, _ := c.fetch("/api/v1/questionnaires/" + questionnaire)["data"].(map[string]any)
	questions := object(data).objects("questions")
	var list []map[string]any
	for i := 0; i+1 < len(given); i += 2 {
		at := slices.IndexFunc(questions, func(q object) bool { return q.text("value") == given[i] })
		if at < 0 {
			c.t.Fatalf("%s asks no %s: %v", questionnaire, given[i], questions)
		}
		q := questions[at]
		text := given[i+1]
		for _, o := range q.objects("options") {
			text = strings.ReplaceAll(text, "$"+o.text("value"), `"`+o.text("id")+`"`)
		}
		list = append(list, map[string]any{"question_id": q.text("id"), answerField[q.text("question_type")]: json.RawMessage(text)})
	}
	body, err := json.Marshal(map[string]any{"answers": list})
	if err != nil {
		c.t.Fatal(err)
	}
	return string(body)
}

// answerField is the document's table of answer fields.
var answerField = map[string]string{"text": "answer_text", "integer": "answer_integer", "bool": "answer_boolean", "country": "answer_country",
	"single_choice": "answer_option_id", "multiple_choice": "answer_option_ids", "document": "answer_document_id", "multiple_documents": "answer_document_ids"}

// respond answers a questionnaire as broker-a.
func (c *intake) respond(of, questionnaire string, given ...string) object {
	c.t.Helper()
	return c.sendAs(201, "broker-a", http.MethodPost, of+"/questionnaires/"+questionnaire+"/response", c.answers(questionnaire, given...))
}

// respondInFull answers a questionnaire that asks for everything.
func (c *intake) respondInFull(of, questionnaire string, documents ...string) object {
	c.t.Helper()
	quoted := `"` + strings.Join(documents, `","`) + `"`
	return c.respond(of, questionnaire, "text", `"Ann"`, "integer", "7", "bool", "true", "country", `"DEU"`, "single_choice", "$red",
		"multiple_choice", "[$green,$blue]", "document", `"`+documents[0]+`"`, "multiple_documents", "["+quoted+"]")
}
