package bundle

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	other "go.yaml.in/yaml/v3"

	"github.com/perpetua-exchange/perpetua/schemas"
)

const library = `
components:
  schemas:
    Order:
      type: object
      required: [code, type, size]
      additionalProperties: false
      properties:
        code: {$ref: '#/components/schemas/Code', description: The order's.}
        type: {enum: [market, limit]}
        size: {$ref: '#/components/schemas/Size'}
      if: {properties: {type: {const: limit}}, required: [type]}
      then: {required: [size]}
    Code: {type: string}
    Size: {anyOf: [{$ref: '#/components/schemas/Number'}, {type: 'null'}]}
    Number: {type: string, pattern: '^[0-9]+$'}
    Shown:
      type: object
      example: {price: '1'}
      properties:
        price: {type: string, examples: ['1', '2']}
        size: {$ref: '#/components/schemas/Part', examples: ['3']}
        examples: {type: array, items: {type: string, example: '4'}}
    Part: {type: string, examples: ['5']}
`

// TestBundle bundles documents against a small library.
func TestBundle(t *testing.T) {
	for name, test := range map[string]struct{ schemas, want, err string }{
		"a copy brings the schemas to which it refers": {
			schemas: `Size: {$ref: '../openapi/openapi.yaml#/components/schemas/Size'}`,
			want: `{"Size": {"anyOf": [{"$ref": "#/components/schemas/Number"}, {"type": "null"}]},
				"Number": {"type": "string", "pattern": "^[0-9]+$"}}`,
		},
		"properties are added, renamed, and replaced": {
			schemas: `Message:
      $ref: '../openapi/openapi.yaml#/components/schemas/Order'
      description: An order.
      x-renamed: {type: kind}
      required: [type]
      properties:
        type: {const: update}
        size: {type: integer}`,
			want: `{"Message": {"description": "An order.", "type": "object", "required": ["type", "code", "kind", "size"], "additionalProperties": false,
				"properties": {"type": {"const": "update"}, "size": {"type": "integer"},
					"code": {"allOf": [{"$ref": "#/components/schemas/Code"}], "description": "The order's."}, "kind": {"enum": ["market", "limit"]}},
				"if": {"properties": {"kind": {"const": "limit"}}, "required": ["kind"]}, "then": {"required": ["size"]}},
				"Code": {"type": "string"}}`,
		},
		"a copy has no examples but the document's, and keeps properties of those names": {
			schemas: `Own: {type: string, examples: ['6']}
    Message:
      $ref: '../openapi/openapi.yaml#/components/schemas/Shown'
      examples: [{price: '7'}]
      properties:
        price: {type: string, example: '8'}
    Shown: {$ref: '../openapi/openapi.yaml#/components/schemas/Shown'}`,
			want: `{"Own": {"type": "string", "examples": ["6"]},
				"Message": {"type": "object", "examples": [{"price": "7"}], "properties": {"price": {"type": "string", "example": "8"},
					"size": {"$ref": "#/components/schemas/Part"}, "examples": {"type": "array", "items": {"type": "string"}}}},
				"Shown": {"type": "object", "properties": {"price": {"type": "string"},
					"size": {"$ref": "#/components/schemas/Part"}, "examples": {"type": "array", "items": {"type": "string"}}}},
				"Part": {"type": "string"}}`,
		},
		"a name with two meanings": {
			schemas: `Message: {$ref: '../openapi/openapi.yaml#/components/schemas/Order'}
    Code: {type: integer}`,
			err: "another one of that name",
		},
		"a schema that is not there":   {schemas: `Message: {$ref: '../openapi/openapi.yaml#/components/schemas/None'}`, err: "has no schema None"},
		"a property that is not there": {schemas: `Message: {$ref: '../openapi/openapi.yaml#/components/schemas/Order', x-renamed: {none: kind}}`, err: "no property none"},
		"a document that is not YAML":  {schemas: `Message: {`, err: "the document"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := Bundle([]byte("components:\n  schemas:\n    "+test.schemas), []byte(library))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %v, want an error with %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := yaml.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(`{"components": {"schemas": `+test.want+`}}`), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%s", text)
			}
		})
	}
}

// TestAsyncAPIStandsAlone: the bundle refers to no other file, and reads as the same document with another parser.
func TestAsyncAPIStandsAlone(t *testing.T) {
	text, err := AsyncAPI()
	if err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []string{"openapi.yaml", renaming} {
		if strings.Contains(string(text), foreign) {
			t.Errorf("the bundle holds %s", foreign)
		}
	}
	var ours, theirs any
	if err := yaml.Unmarshal(text, &ours); err != nil {
		t.Fatal(err)
	}
	if err := other.Unmarshal(text, &theirs); err != nil {
		t.Fatal(err)
	}
	one, err := json.Marshal(ours)
	if err != nil {
		t.Fatal(err)
	}
	two, err := json.Marshal(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if string(one) != string(two) {
		t.Error("two parsers read different documents")
	}
	var source any
	if err := yaml.Unmarshal(schemas.AsyncAPI, &source); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"info", "channels", "operations"} {
		if !reflect.DeepEqual(source.(map[string]any)[part], ours.(map[string]any)[part]) {
			t.Errorf("%s is not as in the source", part)
		}
	}
}
