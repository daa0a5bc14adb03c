package onboarding_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/streams/receipt"
)

// answers makes the body of a response.
func answers(all ...string) string { return `{"answers":[` + strings.Join(all, ",") + `]}` }

// answer is an answer to a question of a questionnaire by its place.
func (a *asked) answer(i int, field, value string) string {
	return fmt.Sprintf(`{"question_id":%q,%q:%s}`, a.questions[i].ID, field, value)
}

// option is the id of an option in JSON.
func (a *asked) option(question, i int) string {
	return strconv.Quote(a.questions[question].Options[i].ID)
}

// complete answers the eight required questions of a draft, with documents.
func (a *asked) complete(document, other string) []string {
	return []string{a.answer(0, "answer_text", `"two\nlines"`), a.answer(1, "answer_integer", "-5"), a.answer(2, "answer_boolean", "false"),
		a.answer(3, "answer_country", `"DEU"`), a.answer(4, "answer_option_id", a.option(4, 1)),
		a.answer(5, "answer_option_ids", "["+a.option(5, 2)+","+a.option(5, 0)+"]"), a.answer(6, "answer_document_id", strconv.Quote(document)),
		a.answer(7, "answer_document_ids", `["`+document+`","`+other+`"]`)}
}

// TestResponses: every type of question is answered, what was answered is shown as it was given, and none of it is in the log
// but under the owner's key.
func TestResponses(t *testing.T) {
	h := newHouse(t)
	for _, of := range []struct {
		owner.Type
		path string
	}{{owner.PersonType, h.person("p-1")}, {owner.CorporateType, h.corporate("c-1")}} {
		q := h.questionnaire("KYC", of.Type, draft(), "")
		given := q.complete(h.upload(of.path), h.upload(of.path))
		to := of.path + "/questionnaires/" + q.id + "/response"
		made := h.Send("broker-a", "POST", to, answers(given...), "Idempotency-Key", string(of.Type)).Want(201)
		id := made.Text("id")
		ref := h.refOf(of.path)
		if want := fmt.Sprintf(`{"id":%q,"questionnaire_id":%q,"questionnaire_version_id":%q,"owner_type":%q,"owner_id":%q,"answers":[%s],"created_at":"2026-03-31T08:00:00.000000Z"}`,
			id, q.id, q.version, ref.Type, ref.ID, strings.Join(given, ",")); made.Body != want {
			t.Errorf("got  %s\nwant %s", made.Body, want)
		}
		if got := h.Send("broker-a", "GET", of.path+"/responses/"+id, "").Want(200); got.Body != made.Body {
			t.Errorf("read again %s, made %s", got.Body, made.Body)
		}
		proven, err := receipt.Verify([]byte(h.Send("broker-a", "GET", of.path+"/responses/"+id+"/receipt", "").Want(200).Body), h.Receipts["onboarding"].Policy)
		if err != nil || !slices.Equal(proven.Owners, []string{"broker/alpha", ref.String()}) || !strings.Contains(strings.Join(proven.Units, ""), id) {
			t.Errorf("the receipt: %v, %+v", err, proven)
		}
		h.Send("broker-b", "GET", of.path+"/responses/"+id+"/receipt", "").Detail(404, strings.ToUpper(string(ref.Type))+"_NOT_FOUND")
		h.Send("broker-a", "GET", of.path+"/responses/"+ref.ID.String()+"/receipt", "").Detail(404, "RESPONSE_NOT_FOUND")
		again := h.Send("broker-a", "POST", to, answers(given...)).Want(201).Text("id")
		if first := h.Send("broker-a", "POST", to, answers(given...), "Idempotency-Key", string(of.Type)).Want(201); first.Body != made.Body {
			t.Errorf("repeated %s, first %s", first.Body, made.Body)
		}
		h.Send("broker-a", "POST", to, answers(q.complete(h.upload(of.path), h.upload(of.path))...), "Idempotency-Key", string(of.Type)).Detail(422, "IDEMPOTENCY_KEY_REUSED")
		list := h.Send("broker-a", "GET", of.path+"/responses", "").Want(200)
		want(t, list, "total", "2", "page", "1", "size", "50", "pages", "1")
		same(t, "newest first", ids(list.Items()), []string{again, id})
		if list.Items()[1].Body != made.Body {
			t.Errorf("listed %s, made %s", list.Items()[1].Body, made.Body)
		}
		h.Send("broker-a", "GET", of.path+"/responses/"+nothing, "").Detail(404, "RESPONSE_NOT_FOUND")
	}
	for _, e := range h.Onboarding.Entries() {
		if e.Record.Command.Type == "response.add" && (strings.Contains(string(e.Value), "lines") || strings.Contains(string(e.Value), `"DEU`)) {
			t.Errorf("record %d: %s", e.Record.Sequence, e.Value)
		}
	}
}

// TestWrongAnswers: every way to answer every type of question wrongly is told, all at once and each in its place, and nothing
// is taken.
func TestWrongAnswers(t *testing.T) {
	h := newHouse(t)
	path, stranger := h.person("p-1"), h.person("p-2")
	q := h.questionnaire("KYC", owner.PersonType, draft(), "")
	document, foreign := h.upload(path), h.upload(stranger)
	good := q.complete(document, h.upload(path))
	to := path + "/questionnaires/" + q.id + "/response"
	before := h.Onboarding.Tip()
	type wrong struct {
		question     int
		field, value string
		want         []string // of answer 0
	}
	var all []wrong
	one := func(question int, field, value string, want ...string) {
		all = append(all, wrong{question, field, value, want})
	}
	long := strconv.Quote(strings.Repeat("é", 10_001))
	one(0, "answer_text", "5", "string_type .answer_text")
	one(0, "answer_text", `""`, "missing .answer_text")
	one(0, "answer_text", `"a\u0000b"`, "value_error .answer_text")
	one(0, "answer_text", `"\ud800"`, "string_unicode .answer_text")
	one(0, "answer_text", long, "string_too_long .answer_text")
	one(0, "answer_text", "null", "missing .answer_text")
	one(0, "answer_integer", "5", "value_error .answer_integer")
	one(1, "answer_integer", "5.5", "int_from_float .answer_integer")
	one(1, "answer_integer", `"5"`, "int_type .answer_integer")
	one(1, "answer_integer", "9223372036854775808", "less_than_equal .answer_integer")
	one(1, "answer_integer", "-9223372036854775809", "greater_than_equal .answer_integer")
	one(1, "answer_integer", "true", "int_type .answer_integer")
	one(1, "answer_text", `"5"`, "value_error .answer_text")
	one(2, "answer_boolean", "1", "bool_type .answer_boolean")
	one(2, "answer_boolean", `"true"`, "bool_type .answer_boolean")
	one(3, "answer_country", `"DE"`, "value_error .answer_country")
	one(3, "answer_country", `"deu"`, "value_error .answer_country")
	one(3, "answer_country", `""`, "missing .answer_country")
	one(4, "answer_option_id", `"x"`, "uuid_parsing .answer_option_id")
	one(4, "answer_option_id", `[]`, "uuid_type .answer_option_id")
	one(4, "answer_option_id", strconv.Quote(nothing), "value_error .answer_option_id")
	one(4, "answer_option_id", q.option(5, 0), "value_error .answer_option_id") // of another question
	one(4, "answer_option_ids", "["+q.option(4, 0)+"]", "value_error .answer_option_ids")
	one(5, "answer_option_ids", "[]", "missing .answer_option_ids")
	one(5, "answer_option_ids", q.option(5, 0), "list_type .answer_option_ids")
	one(5, "answer_option_ids", "["+q.option(5, 0)+",5]", "uuid_type .answer_option_ids.1")
	one(5, "answer_option_ids", "["+q.option(5, 0)+","+q.option(4, 0)+","+q.option(5, 0)+"]", "value_error .answer_option_ids.1", "value_error .answer_option_ids.2")
	one(6, "answer_document_id", strconv.Quote(nothing), "value_error .answer_document_id")
	one(6, "answer_document_id", strconv.Quote(foreign), "value_error .answer_document_id")
	one(6, "answer_document_ids", `["`+document+`"]`, "value_error .answer_document_ids")
	one(7, "answer_document_ids", "[]", "missing .answer_document_ids")
	one(7, "answer_document_ids", `["`+document+`","`+foreign+`"]`, "value_error .answer_document_ids.1")
	one(7, "answer_document_ids", "["+strings.TrimSuffix(strings.Repeat(`"`+document+`",`, 101), ",")+"]", "too_long .answer_document_ids")
	one(0, "answer_other", `"x"`, "missing .answer_text", "extra_forbidden .answer_other")
	for _, w := range all {
		given := slices.Clone(good)
		given[w.question] = q.answer(w.question, w.field, w.value)
		given[0], given[w.question] = given[w.question], given[0]
		var places []string
		for _, p := range w.want {
			kind, place, _ := strings.Cut(p, " ")
			places = append(places, kind+" body.answers.0"+place)
		}
		got := h.Send("broker-a", "POST", to, answers(given...)).Details()
		slices.Sort(got)
		slices.Sort(places)
		same(t, fmt.Sprintf("question %d: %.80s %.80s", w.question, w.field, w.value), got, places)
	}
	two := fmt.Sprintf(`{"question_id":%q,"answer_text":"a","answer_integer":5}`, q.questions[0].ID)
	for body, want := range map[string][]string{
		`{}`:                                    {"missing body.answers"},
		`{"answers":null}`:                      {"missing body.answers"},
		`{"answers":{}}`:                        {"list_type body.answers"},
		`{"answers":[1]}`:                       append([]string{"model_attributes_type body.answers.0"}, q.unanswered(8)...),
		answers():                               q.unanswered(8),
		answers(append(good[1:8:8], two)...):    {"value_error body.answers.7"},
		answers(append(good[1:8:8], `{}`)...):   {q.unanswered(1)[0], "missing body.answers.7.question_id"},
		answers(append(good[:8:8], good[0])...): {"value_error body.answers.8.question_id"},
		answers(append(good[:8:8], `{"question_id":"`+nothing+`","answer_text":"a"}`)...):             {"value_error body.answers.8.question_id"},
		answers(append(good[:8:8], `{"question_id":"x","answer_text":"a"}`)...):                       {"uuid_parsing body.answers.8.question_id"},
		answers(append(good[:8:8], q.answer(8, "answer_text", `"a\u0007"`))...):                       {"value_error body.answers.8.answer_text"},
		answers(slices.Repeat([]string{q.answer(8, "answer_text", `"a"`)}, 501)...):                   {"too_long body.answers"},
		answers(good[2], q.answer(1, "answer_integer", `"x"`), q.answer(3, "answer_country", `"XX"`)): append(slices.Delete(q.unanswered(8), 1, 4), "int_type body.answers.1.answer_integer", "value_error body.answers.2.answer_country"),
	} {
		got := h.Send("broker-a", "POST", to, body).Details()
		slices.Sort(got)
		slices.Sort(want)
		same(t, fmt.Sprintf("%.200s", body), got, want)
	}
	h.Send("broker-a", "POST", to, `{"answers":["`+strings.Repeat("x", 1<<20)+`"]}`).Detail(413, "BODY_TOO_LARGE")
	if h.Onboarding.Tip() != before {
		t.Error("something was taken")
	}
	// Optional questions may be left out, and answered with nothing.
	empty := []string{q.answer(8, "answer_text", `""`), q.answer(13, "answer_option_ids", `[]`), q.answer(9, "answer_integer", "5.0"), q.answer(15, "answer_document_ids", "[]")}
	made := h.Send("broker-a", "POST", to, answers(append(good, empty...)...)).Want(201)
	if !strings.Contains(made.Body, `"answer_integer":5}`) || !strings.Contains(made.Body, `"answer_text":""`) {
		t.Errorf("got %s", made.Body)
	}
}

// TestVersionsAreAnswered: the newest published one, or one that an open requirement has pinned. What may be answered no more
// is answered the same again where the request is the same.
func TestVersionsAreAnswered(t *testing.T) {
	h := newHouse(t)
	path, other := h.person("p-1"), h.person("p-2")
	q := h.questionnaire("KYC", owner.PersonType, oneText, "")
	to := func(path string) string { return path + "/questionnaires/" + q.id + "/response" }
	entitlement := h.entitlement(owner.PersonType, `,"approval":"manual"`, q)
	first := h.Send("broker-a", "POST", to(other), q.text("one"), "Idempotency-Key", "k").Want(201)
	h.make("broker-a", path+"/entitlement_triggers", `{"entitlement_id":"`+entitlement+`"}`)
	old := *q
	h.publish(q, oneText)
	h.Send("broker-a", "POST", to(other), old.text("one")).Detail(409, "QUESTIONNAIRE_VERSION_OUTDATED")
	want(t, h.Send("broker-a", "POST", to(path), old.text("one")).Want(201), "questionnaire_version_id", old.version)
	h.Send("broker-a", "POST", to(path), old.text("one")).Detail(409, "QUESTIONNAIRE_VERSION_OUTDATED") // it is met
	want(t, h.Send("broker-a", "POST", to(path), q.text("two")).Want(201), "questionnaire_version_id", q.version)
	same(t, "mixed", h.Send("broker-a", "POST", to(path), answers(old.answer(0, "answer_text", `"a"`), q.answer(0, "answer_text", `"b"`))).Details(),
		[]string{"value_error body.answers.1.question_id"})
	hidden := &asked{id: q.id}
	draft := h.Send("operator", "POST", admin+"/questionnaires/"+q.id+"/versions", oneText).Want(201)
	var shown struct {
		Questions []question `json:"questions"`
	}
	draft.JSON(&shown)
	hidden.questions = shown.Questions
	h.Send("broker-a", "POST", to(path), hidden.text("x")).Detail(409, "QUESTIONNAIRE_NOT_PUBLISHED")
	same(t, "none", h.Send("broker-a", "POST", to(path), answers()).Details(), q.unanswered(1))
	h.Send("operator", "POST", admin+"/questionnaires/"+q.id+"/unpublish", "").Want(200)
	h.Send("broker-a", "POST", to(path), q.text("two")).Detail(409, "QUESTIONNAIRE_NOT_PUBLISHED")
	h.Send("broker-a", "POST", to(path), answers()).Detail(409, "QUESTIONNAIRE_NOT_PUBLISHED")
	if again := h.Send("broker-a", "POST", to(other), old.text("one"), "Idempotency-Key", "k").Want(201); again.Body != first.Body {
		t.Errorf("again %s, first %s", again.Body, first.Body)
	}
}

// TestWhoMayAnswer: the type of owner and the one owner that a questionnaire is for, as far as the tenant may know of it.
func TestWhoMayAnswer(t *testing.T) {
	h := newHouse(t)
	path, other := h.person("p-1"), h.person("p-2")
	foreign := api + "/persons/" + h.make("broker-b", api+"/persons", anna)
	q := h.questionnaire("For one", owner.PersonType, oneText, `,"owner_type_id":"`+h.refOf(path).ID.String()+`"`)
	h.Send("broker-a", "POST", path+"/questionnaires/"+q.id+"/response", q.text("x")).Want(201)
	h.Send("broker-a", "POST", other+"/questionnaires/"+q.id+"/response", q.text("x")).Detail(409, "QUESTIONNAIRE_NOT_APPLICABLE")
	h.Send("broker-b", "POST", foreign+"/questionnaires/"+q.id+"/response", q.text("x")).Detail(404, "QUESTIONNAIRE_NOT_FOUND")
	c := h.questionnaire("Of corporates", owner.CorporateType, oneText, "")
	h.Send("broker-a", "POST", path+"/questionnaires/"+c.id+"/response", c.text("x")).Detail(409, "QUESTIONNAIRE_NOT_APPLICABLE")
	h.Send("broker-a", "POST", path+"/questionnaires/"+nothing+"/response", c.text("x")).Detail(404, "QUESTIONNAIRE_NOT_FOUND")
	bare := h.make("operator", admin+"/questionnaires", `{"name":"Bare","owner_type":"person"}`)
	h.Send("broker-a", "POST", path+"/questionnaires/"+bare+"/response", answers()).Detail(409, "QUESTIONNAIRE_NOT_PUBLISHED")
	same(t, "ids that are none", h.Send("broker-a", "POST", api+"/persons/x/questionnaires/y/response", `{"answers":5}`).Details(),
		[]string{"uuid_parsing path.person_id", "uuid_parsing path.questionnaire_id", "list_type body.answers"})
	same(t, "an id that is none", h.Send("broker-a", "POST", path+"/questionnaires/y/response", `{"answers":5}`).Details(),
		[]string{"uuid_parsing path.questionnaire_id", "list_type body.answers"})
	h.Send("broker-a", "POST", api+"/persons/"+nothing+"/questionnaires/y/response", `{"answers":5}`).Detail(404, "PERSON_NOT_FOUND")
}

// unanswered are the faults of the first questions, where none of them is answered: each names its question.
func (a *asked) unanswered(questions int) (faults []string) {
	for i := range questions {
		faults = append(faults, "missing body.answers."+a.questions[i].ID)
	}
	return faults
}
