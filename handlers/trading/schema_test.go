package trading

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/schemas"
)

// described returns a schema of the OpenAPI file with its references resolved and without what only people read.
func described(t *testing.T, root, schema any) any {
	switch s := schema.(type) {
	case []any:
		out := []any{}
		for _, v := range s {
			out = append(out, described(t, root, v))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name, v := range s {
			switch name {
			case "description", "examples", "minProperties", "maxProperties":
			case "$ref":
				at := root
				for part := range strings.SplitSeq(strings.TrimPrefix(v.(string), "#/"), "/") {
					at = at.(map[string]any)[part]
				}
				for name, v := range described(t, root, at).(map[string]any) {
					out[name] = v
				}
			case "properties": // names of members
				members := map[string]any{}
				for name, v := range v.(map[string]any) {
					members[name] = described(t, root, v)
				}
				out[name] = members
			default:
				out[name] = described(t, root, v)
			}
		}
		return out
	}
	return schema
}

// TestFormsAreDescribed compares the forms of order entry with the OpenAPI file.
func TestFormsAreDescribed(t *testing.T) {
	text, err := yaml.YAMLToJSON(schemas.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string][]byte{
		"OrderEntry": domain.PlaceOrderForm().Schema(), "OrderAmendment": domain.AmendOrderForm().Schema(), "OrderName": domain.CancelOneForm().Schema(),
	} {
		var declared map[string]any
		if err := json.Unmarshal(form, &declared); err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		schema := described(t, root, root["components"].(map[string]any)["schemas"].(map[string]any)[name]).(map[string]any)
		if schema["required"] == nil {
			schema["required"] = []any{}
		}
		if !reflect.DeepEqual(declared, schema) {
			a, _ := json.MarshalIndent(declared, "", " ")
			b, _ := json.MarshalIndent(schema, "", " ")
			t.Errorf("%s is declared as\n%s\nand described as\n%s", name, a, b)
		}
	}
}
