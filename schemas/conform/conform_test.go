package conform

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/schemas/bundle"
)

func open(t *testing.T) *OpenAPI {
	t.Helper()
	o, err := NewOpenAPI(schemas.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// walk calls visit with every object in the document and its pointer.
func walk(value any, at string, visit func(at string, object map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		visit(at, v)
		for name, member := range v {
			walk(member, at+"/"+Escape(name), visit)
		}
	case []any:
		for i, item := range v {
			walk(item, fmt.Sprintf("%s/%d", at, i), visit)
		}
	}
}

// TestDescriptionsAreReadByOthers reads the descriptions with another parser than our own, which takes more than YAML allows:
// client generators would refuse what only ours reads.
func TestDescriptionsAreReadByOthers(t *testing.T) {
	sockets, err := bundle.AsyncAPI()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"OpenAPI": schemas.OpenAPI, "AsyncAPI": sockets} {
		var document map[string]any
		if err := yaml.Unmarshal(text, &document); err != nil || len(document) == 0 {
			t.Errorf("the %s description has %d members: %v", name, len(document), err)
		}
	}
}

// TestDescriptionsEndWhereTheyShould: outside of examples, no member is null. A comma in a text without quotes inside of braces ends
// the text, and what follows becomes a member without a value.
func TestDescriptionsEndWhereTheyShould(t *testing.T) {
	sockets, err := bundle.AsyncAPI()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"OpenAPI": schemas.OpenAPI, "AsyncAPI": sockets} {
		var document map[string]any
		if err := yaml.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		walk(document, "", func(at string, object map[string]any) {
			if strings.Contains(at, "/example") { // also /examples
				return
			}
			for member, value := range object {
				if value == nil && member != "example" {
					t.Errorf("%s: %s has a member %q without a value", name, at, member)
				}
			}
		})
	}
}

// TestDescriptionIsSound compiles every schema, follows every reference and holds every example against its schema.
func TestDescriptionIsSound(t *testing.T) {
	o := open(t)
	examples := 0
	walk(o.root, "", func(at string, object map[string]any) {
		if ref, ok := object["$ref"].(string); ok {
			if v, _ := o.At(strings.TrimPrefix(ref, "#")); v == nil {
				t.Errorf("%s refers to %s, which is not there", at, ref)
			}
		}
		if object["type"] == "array" && object["items"] == nil {
			t.Errorf("%s: an array of what?", at)
		}
		if _, ok := object["schema"]; !ok {
			return
		}
		if _, err := o.Schema(at + "/schema"); err != nil {
			t.Error(err)
			return
		}
		check := func(value any) {
			examples++
			if err := o.validate(at+"/schema", value); err != nil {
				t.Errorf("%s: the example: %v", at, err)
			}
		}
		if example, ok := object["example"]; ok {
			check(example)
		}
		named, _ := object["examples"].(map[string]any)
		for name := range named {
			value, _ := o.At(at + "/examples/" + Escape(name) + "/value")
			check(value)
		}
	})
	if examples < 25 {
		t.Errorf("only %d examples were found", examples)
	}
	named, _ := o.At("/components/schemas")
	for name := range named.(map[string]any) {
		if _, err := o.Schema("/components/schemas/" + name); err != nil {
			t.Error(err)
		}
	}
}

// TestEveryOperationIsComplete wants of each operation what a stranger needs: an id of its own, a summary, a tag, and
// its path parameters.
func TestEveryOperationIsComplete(t *testing.T) {
	o := open(t)
	ids := make(map[string]Route)
	for _, r := range o.Routes() {
		at := "/paths/" + Escape(r.Path)
		value, _ := o.At(at + "/" + strings.ToLower(r.Method))
		op := value.(map[string]any)
		id, _ := op["operationId"].(string)
		if other, ok := ids[id]; ok || id == "" {
			t.Errorf("%s: operationId %q, which %s has too", r, id, other)
		}
		ids[id] = r
		if op["summary"] == nil || op["tags"] == nil {
			t.Errorf("%s has no summary or no tag", r)
		}
		named := make(map[string]bool)
		for _, place := range []string{at + "/parameters", at + "/" + strings.ToLower(r.Method) + "/parameters"} {
			list, _ := o.At(place)
			items, _ := list.([]any)
			for i := range items {
				p, _ := o.At(fmt.Sprintf("%s/%d", place, i))
				parameter := p.(map[string]any)
				if parameter["in"] == "path" {
					named[parameter["name"].(string)] = true
				}
			}
		}
		for _, part := range strings.Split(r.Path, "/") {
			if strings.HasPrefix(part, "{") && !named[strings.Trim(part, "{}")] {
				t.Errorf("%s: the parameter %s is not described", r, part)
			}
		}
	}
}

// onePerson are the operators' actions that no policy covers, by a name in their paths.
var onePerson = map[string]bool{"brokers": true, "index-prices": true, "confirm": true, "reject": true, "withdraw": true, "commitments": true, "questionnaires": true,
	"hold": true, "documents": true, "webhook_deliveries": true}

// TestWritesAreDescribed: each write says that a body may be too large or of another type, and each of an operator that a
// policy may cover says that the answer may be a proposal. To the login a body of another type is an empty one.
func TestWritesAreDescribed(t *testing.T) {
	o := open(t)
	for _, r := range o.Routes() {
		if r.Method == http.MethodGet {
			continue
		}
		at := "/paths/" + Escape(r.Path) + "/" + strings.ToLower(r.Method) + "/responses/"
		has := func(status string) bool {
			response, _ := o.At(at + status)
			return response != nil
		}
		if login := r.Path == "/auth/jwt/login"; !has("413") || has("415") == login {
			t.Errorf("%s says 413: %t, 415: %t", r, has("413"), has("415"))
		}
		single := slices.ContainsFunc(strings.Split(r.Path, "/"), func(name string) bool { return onePerson[name] }) &&
			r.Path != "/admin/v1/entitlement_triggers/{id}/reject"
		if strings.HasPrefix(r.Path, "/admin/") && has("202") == single {
			t.Errorf("%s says 202: %t", r, !single)
		}
	}
}

// TestChangesOfNothingAreRefused: the interface refuses a change without a member, except of a person or corporate, and the
// description says so.
func TestChangesOfNothingAreRefused(t *testing.T) {
	o := open(t)
	for _, r := range o.Routes() {
		if r.Method != http.MethodPatch {
			continue
		}
		takes := r.Path == "/api/v1/persons/{person_id}" || r.Path == "/api/v1/corporates/{corporate_id}"
		_, schema := o.At("/paths/" + Escape(r.Path) + "/patch/requestBody/content/application~1json/schema")
		if err := o.Validate(schema, []byte(`{}`)); (err == nil) != takes {
			t.Errorf("%s: an empty change: %v", r, err)
		}
	}
}

// TestReadsOfThePastAreDescribed: each read that takes as_of says that its answer may not be final, and that its 404 has a position.
func TestReadsOfThePastAreDescribed(t *testing.T) {
	o, found := open(t), 0
	for _, r := range o.Routes() {
		at := "/paths/" + Escape(r.Path) + "/" + strings.ToLower(r.Method)
		list, _ := o.At(at + "/parameters")
		items, _ := list.([]any)
		for i := range items {
			if p, _ := o.At(fmt.Sprintf("%s/parameters/%d", at, i)); p.(map[string]any)["name"] != "as_of" {
				continue
			}
			found++
			if h, _ := o.At(at + "/responses/200/headers/X-Log-Position-Final"); h == nil {
				t.Errorf("%s: the answer has no X-Log-Position-Final", r)
			}
			missing, where := o.At(at + "/responses/404")
			if h, _ := o.At(where + "/headers/X-Log-Position"); missing != nil && h == nil {
				t.Errorf("%s: the 404 has no X-Log-Position", r)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d reads take as_of", found)
	}
}

func TestResponse(t *testing.T) {
	o := open(t)
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	const fees = "/v1/customers/C-1/fee-profile"
	plain := header("Content-Type", "application/json", "X-Log-Position", "trading/0@7")
	for _, tt := range []struct {
		name, method, path string
		status             int
		header             http.Header
		body, fault        string
	}{
		{"good", "GET", fees, 200, plain, `[{"symbol":"B_PERP","maker_fee":"-0.5","taker_fee":"5"}]`, ""},
		{"an undescribed field", "GET", fees, 200, plain, `[{"symbol":"B","maker_fee":"1","taker_fee":"5","x":1}]`, "additional properties"},
		{"a missing field", "GET", fees, 200, plain, `[{"symbol":"B","maker_fee":"1"}]`, "missing propert"},
		{"null for a list", "GET", fees, 200, plain, `null`, "got null, want array"},
		{"an undescribed status", "GET", fees, 418, plain, `[]`, "status 418 is not described"},
		{"no position", "GET", fees, 200, header("Content-Type", "application/json"), `[]`, "X-Log-Position is missing"},
		{"a bad position", "GET", fees, 200, header("Content-Type", "application/json", "X-Log-Position", "7"), `[]`, "X-Log-Position"},
		{"a refusal without its position", "POST", "/auth/jwt/login", 400, plain, `{}`, "the header X-Log-Position is not described"},
		{"another content type", "GET", fees, 200, header("Content-Type", "text/html", "X-Log-Position", "trading/0@7"), `[]`, "text/html is not described"},
		{"the exact path first", "GET", "/v1/customers/C-1/orders/history", 200, plain, `[]`, "want object"},
		{"an unknown path", "GET", "/v1/nothing", 200, plain, `[]`, "must be answered 404"},
		{"an unknown method", "PUT", fees, 404, plain, `[]`, "must be answered 405"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := o.Response(tt.method, tt.path, tt.status, tt.header, []byte(tt.body))
			switch {
			case tt.fault == "" && err != nil:
				t.Error(err)
			case tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)):
				t.Errorf("got %v, want %q", err, tt.fault)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	o := open(t)
	undescribed, unregistered := o.Compare([]Route{{"GET", "/v1/customers/:customer_code/positions"}, {"GET", "/v1/nothing"}})
	if len(undescribed) != 1 || undescribed[0].Path != "/v1/nothing" {
		t.Errorf("undescribed %v", undescribed)
	}
	if len(unregistered) != len(o.Routes())-1 {
		t.Errorf("%d unregistered of %d", len(unregistered), len(o.Routes()))
	}
}

// TestSchemasShareDefinitions holds every journal's schemas against each other: what several have in common stands once.
func TestSchemasShareDefinitions(t *testing.T) { NoCopies(t, "../events/*/*.schema.json") }

// TestEveryOperationIsToldByExamples wants of each operation what somebody needs who reads the reference: a description,
// an example of what is sent and of each answer that has a body. TestDescriptionIsSound holds them against their schemas.
func TestEveryOperationIsToldByExamples(t *testing.T) {
	o := open(t)
	for _, r := range o.Routes() {
		at := "/paths/" + Escape(r.Path) + "/" + strings.ToLower(r.Method)
		value, _ := o.At(at)
		op := value.(map[string]any)
		if description, _ := op["description"].(string); strings.TrimSpace(description) == "" {
			t.Errorf("%s has no description", r)
		}
		bodies := map[string]string{"what is sent": at + "/requestBody/content"}
		for status := range op["responses"].(map[string]any) {
			bodies["the answer "+status] = at + "/responses/" + status + "/content"
		}
		for what, place := range bodies {
			content, _ := o.At(place)
			media, _ := content.(map[string]any)
			for name := range media {
				if !o.exemplified(place + "/" + Escape(name)) {
					t.Errorf("%s: there is no example of %s as %s", r, what, name)
				}
			}
		}
	}
}

// exemplified reports whether a body has an example, of its own or of its schema.
func (o *OpenAPI) exemplified(place string) bool {
	for _, holder := range []string{place, place + "/schema"} {
		value, _ := o.At(holder)
		object, _ := value.(map[string]any)
		if object["example"] != nil || object["examples"] != nil {
			return true
		}
	}
	return false
}

// TestProblemsInExamplesAreReal: an example of a problem says what this program says. Its status is that of the answer and
// its title that of the status, and its code stands in the program.
func TestProblemsInExamplesAreReal(t *testing.T) {
	o, words := open(t), wordsOfTheProgram(t)
	checked := 0
	for _, r := range o.Routes() {
		responses := "/paths/" + Escape(r.Path) + "/" + strings.ToLower(r.Method) + "/responses"
		value, _ := o.At(responses)
		for status := range value.(map[string]any) {
			number, _ := strconv.Atoi(status)
			for _, problem := range o.examplesAt(responses + "/" + status + "/content/application~1problem+json") {
				checked++
				if fmt.Sprint(problem["status"]) != status || problem["title"] != http.StatusText(number) {
					t.Errorf("%s: an example of %s is %v %v", r, status, problem["status"], problem["title"])
				}
				code, _ := problem["code"].(string)
				if !words[code] && !words[strings.ToLower(code)] { // a rejection's code is its reason, in capitals
					t.Errorf("%s: an example of %s has the code %q, which the program has not", r, status, code)
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d examples of problems were found", checked)
	}
}

// examplesAt returns the examples of a body that are objects.
func (o *OpenAPI) examplesAt(place string) (list []map[string]any) {
	value, _ := o.At(place)
	media, _ := value.(map[string]any)
	examples := []any{media["example"]}
	named, _ := media["examples"].(map[string]any)
	for name := range named {
		example, _ := o.At(place + "/examples/" + Escape(name) + "/value")
		examples = append(examples, example)
	}
	for _, example := range examples {
		if object, ok := example.(map[string]any); ok {
			list = append(list, object)
		}
	}
	return list
}

// wordsOfTheProgram are the codes and reasons that stand as texts in the code behind the interfaces.
func wordsOfTheProgram(t *testing.T) map[string]bool {
	t.Helper()
	word := regexp.MustCompile(`"([A-Z][A-Z0-9_]+|[a-z][a-z0-9_]+)"`)
	found := make(map[string]bool)
	for _, root := range []string{"../../domain", "../../handlers", "../../streams", "../../cmd/perpetua/node"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range word.FindAllStringSubmatch(string(text), -1) {
				found[m[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// TestGeneratorsFindNamesAndTypes: what stock generators of clients stumble over is not in the description. They make a type
// of each enumeration only where it says of what, and one with a name only of what has one; they know no schemas that are
// true or false, and no lists of types other than one that may be null.
func TestGeneratorsFindNamesAndTypes(t *testing.T) {
	o := open(t)
	operations := make(map[string]string)
	walk(o.root, "", func(at string, object map[string]any) {
		if strings.Contains(at, "/example") || strings.Contains(at, "/if") || strings.Contains(at, "/not") {
			return
		}
		if id, ok := object["operationId"].(string); ok {
			if other, taken := operations[id]; taken {
				t.Errorf("%s and %s are both %s", at, other, id)
			}
			operations[id] = at
		}
		_, isEnum := object["enum"]
		_, isConst := object["const"]
		if (isEnum || isConst) && object["type"] == nil {
			t.Errorf("%s: an enumeration of what?", at)
		}
		if types, ok := object["type"].([]any); ok && (len(types) != 2 || types[1] != "null") {
			t.Errorf("%s: the types %v", at, types)
		}
		properties, _ := object["properties"].(map[string]any)
		for name, schema := range properties {
			if _, is := schema.(bool); is {
				t.Errorf("%s/properties/%s is no schema but a truth", at, name)
			}
		}
		if body, ok := object["schema"].(map[string]any); ok && strings.Contains(at, "/content/") && body["properties"] != nil {
			t.Errorf("%s: a body without a name", at)
		}
	})
	if len(operations) != len(o.routes) {
		t.Errorf("%d operations of %d have a name", len(operations), len(o.routes))
	}
}
