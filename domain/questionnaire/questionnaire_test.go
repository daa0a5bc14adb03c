package questionnaire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

func id(n byte) scalar.ID { return scalar.ID{15: n} }

func ref[T any](v T) *T { return &v }

// everyType is a version with a required question of each type, whose ids are 1 to 8 in the order of QuestionTypes, and
// an optional one of each, 11 to 18. The options of a choice have its number times ten plus 1, 2 and 3.
func everyType() *Version {
	v := &Version{ID: id(100), Number: 2, QuestionnaireID: id(101)}
	for n, kind := range QuestionTypes() {
		for _, optional := range []bool{false, true} {
			q := Question{ID: id(byte(n + 1)), Label: string(kind), Value: string(kind), Type: kind, IsOptional: optional, Position: n}
			if optional {
				q.ID, q.Value, q.Position = id(byte(n+11)), q.Value+"_optional", n+10
			}
			if kind.HasOptions() {
				for o := range byte(3) {
					q.Options = append(q.Options, Option{ID: id(q.ID[15]*10 + o + 1), Label: fmt.Sprint("option ", o), Value: fmt.Sprint(o), Position: int(o)})
				}
			}
			v.Questions = append(v.Questions, q)
		}
	}
	return v
}

// owned says that the documents 200 and 201 are the owner's.
func owned(document scalar.ID) bool { return document == id(200) || document == id(201) }

// whole answers every required question of everyType.
func whole() []Answer {
	return []Answer{
		{QuestionID: id(1), Text: ref("two\nlines")}, {QuestionID: id(2), Integer: ref(int64(-7))}, {QuestionID: id(3), Boolean: ref(false)},
		{QuestionID: id(4), Country: ref("CHE")}, {QuestionID: id(5), OptionID: ref(id(52))}, {QuestionID: id(6), OptionIDs: ref([]scalar.ID{id(61), id(63)})},
		{QuestionID: id(7), DocumentID: ref(id(200))}, {QuestionID: id(8), DocumentIDs: ref([]scalar.ID{id(200), id(201)})},
	}
}

// TestAnswers changes one thing in a whole response.
func TestAnswers(t *testing.T) {
	many := make([]scalar.ID, MaxIDs+1)
	for name, test := range map[string]struct {
		change func([]Answer) []Answer
		want   string
	}{
		"all required ones": {func(a []Answer) []Answer { return a }, ""},
		"an optional one more": {func(a []Answer) []Answer {
			return append(a, Answer{QuestionID: id(11), Text: ref("x")})
		}, ""},
		"an optional one, empty": {func(a []Answer) []Answer {
			return append(a, Answer{QuestionID: id(11), Text: ref("")}, Answer{QuestionID: id(14), Country: ref("")},
				Answer{QuestionID: id(16), OptionIDs: ref([]scalar.ID{})}, Answer{QuestionID: id(18), DocumentIDs: ref([]scalar.ID{})})
		}, ""},
		"none":          {func([]Answer) []Answer { return nil }, unanswered(1, 2, 3, 4, 5, 6, 7, 8)},
		"one left out":  {func(a []Answer) []Answer { return a[1:] }, unanswered(1)},
		"a stranger":    {func(a []Answer) []Answer { return append(a, Answer{QuestionID: id(99), Text: ref("x")}) }, "answers[8].question_id value_error"},
		"one repeated":  {func(a []Answer) []Answer { return append(a, a[0]) }, "answers[8].question_id value_error"},
		"no field":      {func(a []Answer) []Answer { a[0].Text = nil; return a }, "answers[0].answer_text unanswered"},
		"two fields":    {func(a []Answer) []Answer { a[0].Integer = ref(int64(1)); return a }, "answers[0] value_error"},
		"another field": {func(a []Answer) []Answer { a[0] = Answer{QuestionID: id(1), Country: ref("DEU")}; return a }, "answers[0].answer_country value_error"},
		"empty text":    {func(a []Answer) []Answer { a[0].Text = ref(""); return a }, "answers[0].answer_text unanswered"},
		"empty country": {func(a []Answer) []Answer { a[3].Country = ref(""); return a }, "answers[3].answer_country unanswered"},
		"no options":    {func(a []Answer) []Answer { a[5].OptionIDs = ref([]scalar.ID{}); return a }, "answers[5].answer_option_ids unanswered"},
		"no documents":  {func(a []Answer) []Answer { a[7].DocumentIDs = ref([]scalar.ID{}); return a }, "answers[7].answer_document_ids unanswered"},
		"the longest text": {func(a []Answer) []Answer {
			a[0].Text = ref(strings.Repeat("ü", MaxText))
			return a
		}, ""},
		"a longer text":           {func(a []Answer) []Answer { a[0].Text = ref(strings.Repeat("ü", MaxText+1)); return a }, "answers[0].answer_text string_too_long"},
		"a control character":     {func(a []Answer) []Answer { a[0].Text = ref("\u0001"); return a }, "answers[0].answer_text value_error"},
		"bytes that are no text":  {func(a []Answer) []Answer { a[0].Text = ref("\xff"); return a }, "answers[0].answer_text value_error"},
		"no country":              {func(a []Answer) []Answer { a[3].Country = ref("CH"); return a }, "answers[3].answer_country value_error"},
		"another one's option":    {func(a []Answer) []Answer { a[4].OptionID = ref(id(61)); return a }, "answers[4].answer_option_id value_error"},
		"one strange option":      {func(a []Answer) []Answer { *a[5].OptionIDs = append(*a[5].OptionIDs, id(52)); return a }, "answers[5].answer_option_ids[2] value_error"},
		"an option twice":         {func(a []Answer) []Answer { *a[5].OptionIDs = append(*a[5].OptionIDs, id(61)); return a }, "answers[5].answer_option_ids[2] value_error"},
		"another one's document":  {func(a []Answer) []Answer { a[6].DocumentID = ref(id(202)); return a }, "answers[6].answer_document_id value_error"},
		"one strange document":    {func(a []Answer) []Answer { (*a[7].DocumentIDs)[0] = id(202); return a }, "answers[7].answer_document_ids[0] value_error"},
		"too many ids":            {func(a []Answer) []Answer { a[7].DocumentIDs = &many; return a }, "answers[7].answer_document_ids too_long"},
		"more answers than asked": {func([]Answer) []Answer { return make([]Answer, MaxAnswers+1) }, "answers too_long"},
		"all faults are told": {func(a []Answer) []Answer { a[0].Text, a[3].Country = nil, ref("X"); return a[:7] },
			"answers[0].answer_text unanswered, answers[3].answer_country value_error, " + unanswered(8)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := told(everyType().Check(test.change(whole()), owned)); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

// TestTheFieldOfEachType gives each answer to each question: it fits its own type and no other.
func TestTheFieldOfEachType(t *testing.T) {
	answers := whole()
	for n, kind := range QuestionTypes() {
		for m := range answers {
			a := answers[m]
			a.QuestionID = id(byte(n + 1))
			if kind.HasOptions() && n == m {
				a = answers[n]
			}
			others := append(append([]Answer{}, answers[:n]...), answers[n+1:]...)
			got := everyType().Check(append(others, a), owned)
			if (len(got) == 0) != (n == m) {
				t.Errorf("%s answered by %v: %s", kind, a.Fields(), told(got))
			}
		}
	}
}

func TestVersionOf(t *testing.T) {
	first, second := &Version{Number: 1, Questions: []Question{{ID: id(1)}}}, &Version{Number: 2, Questions: []Question{{ID: id(2)}}}
	both := []*Version{first, second}
	for name, test := range map[string]struct {
		questions []byte
		want      *Version
	}{
		"no answers": {nil, second}, "of the first": {[]byte{1}, first}, "of the second": {[]byte{2}, second},
		"mixed": {[]byte{1, 2}, first}, "a stranger before": {[]byte{9, 1}, first}, "only strangers": {[]byte{9}, second},
	} {
		var answers []Answer
		for _, q := range test.questions {
			answers = append(answers, Answer{QuestionID: id(q)})
		}
		if got := VersionOf(both, answers); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if VersionOf(nil, nil) != nil {
		t.Error("a version of none")
	}
}

// TestDrafts changes one thing in a good version.
func TestDrafts(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Version)
		want   string
	}{
		"every type":            {func(*Version) {}, ""},
		"no question":           {func(v *Version) { v.Questions = nil }, "questions too_short"},
		"too many":              {func(v *Version) { v.Questions = make([]Question, MaxQuestions+1) }, "questions too_long"},
		"an unknown type":       {func(v *Version) { v.Questions[0].Type = "date" }, "questions[0].question_type enum"},
		"no label":              {func(v *Version) { v.Questions[0].Label = " " }, "questions[0].label missing"},
		"a long label":          {func(v *Version) { v.Questions[0].Label = strings.Repeat("x", maxLabel+1) }, "questions[0].label string_too_long"},
		"a value twice":         {func(v *Version) { v.Questions[1].Value = v.Questions[0].Value }, "questions[1].value value_error"},
		"a position twice":      {func(v *Version) { v.Questions[1].Position = v.Questions[0].Position }, "questions[1].position value_error"},
		"a position below 0":    {func(v *Version) { v.Questions[0].Position = -1 }, "questions[0].position value_error"},
		"options of a text":     {func(v *Version) { v.Questions[0].Options = []Option{{}} }, "questions[0].options value_error"},
		"a choice without any":  {func(v *Version) { v.Questions[8].Options = nil }, "questions[8].options too_short"},
		"a choice of too many":  {func(v *Version) { v.Questions[8].Options = make([]Option, MaxOptions+1) }, "questions[8].options too_long"},
		"an option's value":     {func(v *Version) { v.Questions[8].Options[1].Value = "" }, "questions[8].options[1].value missing"},
		"an option's value too": {func(v *Version) { v.Questions[8].Options[1].Value = "0" }, "questions[8].options[1].value value_error"},
		"a control character":   {func(v *Version) { v.Questions[8].Options[2].Label = "\n" + "x" }, "questions[8].options[2].label value_error"},
	} {
		t.Run(name, func(t *testing.T) {
			v := everyType()
			test.change(v)
			if got := told(CheckDraft(v.Questions)); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestWhoMayAnswer(t *testing.T) {
	anna, bert, acme := owner.Ref{Type: owner.PersonType, ID: id(1)}, owner.Ref{Type: owner.PersonType, ID: id(2)}, owner.Ref{Type: owner.CorporateType, ID: id(1)}
	all, one := &Questionnaire{OwnerType: owner.PersonType}, &Questionnaire{OwnerType: owner.PersonType, OwnerTypeID: id(1)}
	for _, test := range []struct {
		who       owner.Ref
		all, only bool
	}{{anna, true, true}, {bert, true, false}, {acme, false, false}} {
		if all.AppliesTo(test.who) != test.all || one.AppliesTo(test.who) != test.only {
			t.Errorf("%v: %t, %t", test.who, all.AppliesTo(test.who), one.AppliesTo(test.who))
		}
	}
}

// unanswered are the faults of questions without an answer.
func unanswered(questions ...byte) string {
	var all []validation.FieldError
	for _, n := range questions {
		all = append(all, validation.FieldError{Path: validation.At("answers", id(n).String()), Kind: validation.Unanswered})
	}
	return told(all)
}

func told(all []validation.FieldError) string {
	out := make([]string, len(all))
	for i, f := range all {
		out[i] = f.Path.String() + " " + f.Kind
	}
	return strings.Join(out, ", ")
}

// TestAnswersAreKeptAsGiven: an optional question may be answered by nothing, which is not the same as no answer.
func TestAnswersAreKeptAsGiven(t *testing.T) {
	for _, text := range []string{`"answer_text":""`, `"answer_integer":0`, `"answer_boolean":false`, `"answer_country":""`, `"answer_option_ids":[]`,
		`"answer_document_ids":[]`} {
		given := `{"question_id":"01000000-0000-0000-0000-000000000001",` + text + `}`
		var a Answer
		if err := json.Unmarshal([]byte(given), &a); err != nil {
			t.Fatal(err)
		}
		if kept, err := json.Marshal(&a); err != nil || string(kept) != given {
			t.Errorf("%s is kept as %s (%v)", given, kept, err)
		}
	}
}
