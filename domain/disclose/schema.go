package disclose

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// schema is what Compile reads of a JSON Schema.
type schema struct {
	Ref        string                     `json:"$ref"`
	Class      string                     `json:"x-disclosure"`
	Owners     []string                   `json:"x-disclosure-owner"`
	Hashed     bool                       `json:"x-disclosure-hashed"`
	Type       string                     `json:"type"`
	Properties properties                 `json:"properties"`
	OneOf      []schema                   `json:"oneOf"`
	Items      jsontext.Value             `json:"items"`
	Defs       map[string]*jsontext.Value `json:"$defs"`
}

// properties are the members of an object, in the order of the schema.
type properties []property

type property struct {
	name   string
	schema jsontext.Value
}

// UnmarshalJSONFrom reads the members in order.
func (p *properties) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		one := property{name: name.String()}
		text, err := d.ReadValue()
		if err != nil {
			return err
		}
		one.schema = text.Clone()
		*p = append(*p, one)
	}
	_, err := d.ReadToken()
	return err
}

// with returns the members with one more. Of two with the same name, the second counts if it has a class.
func (p properties) with(one property) properties {
	if !isObject(one.schema) {
		return p
	}
	for i := range p {
		if p[i].name == one.name {
			if classed(one.schema) {
				p[i] = one
			}
			return p
		}
	}
	return append(p, one)
}

// all returns the members that the schema describes, also in its alternatives.
func (s *schema) all() (out properties) {
	for _, p := range s.Properties {
		out = out.with(p)
	}
	for i := range s.OneOf {
		for _, p := range s.OneOf[i].Properties {
			out = out.with(p)
		}
	}
	return out
}

// rule compiles the schema of the value at a path. inherited is the class of the enclosing value if that is not split.
func (c *compiler) rule(s schema, at string, inherited Class) (n rule, err error) {
	var common schema
	if s.Ref != "" {
		if common, err = c.definition(s.Ref); err != nil {
			return n, fmt.Errorf("%s: %w", at, err)
		}
	}
	if n.owners, err = templates(append(s.Owners, common.Owners...)); err != nil {
		return n, fmt.Errorf("%s: %w", at, err)
	}
	if n.class, err = s.class(inherited); err != nil {
		return n, fmt.Errorf("%s: %w", at, err)
	}
	n.hashed = s.Hashed
	if len(s.Items) == 0 {
		s.Items = common.Items
	}
	members := common.all()
	for _, p := range s.all() {
		members = members.with(p)
	}
	switch {
	case len(members) > 0:
		n.form = object
		n.members, err = c.members(members, at, n.class)
	case isObject(s.Items):
		n.form = list
		var items rule
		items, err = c.parsed(s.Items, at+"[]", n.class)
		n.items = &items
	case n.class == 0:
		err = fmt.Errorf("%s has no class", at)
	case s.Type == "array" || common.Type == "array":
		err = fmt.Errorf("%s does not describe its elements", at)
	case s.Type == "object" || common.Type == "object":
		n.form = opaque
	}
	if err == nil && n.class == 0 {
		n.class = n.uniform()
		n.derived = n.class != 0
	}
	return n, err
}

// class returns the class of the value, or 0 if it is split.
func (s *schema) class(inherited Class) (Class, error) {
	if s.Class == "" {
		return inherited, nil
	}
	class, known := parseClass(s.Class)
	switch {
	case !known:
		return 0, fmt.Errorf("there is no class %q", s.Class)
	case inherited != 0:
		return 0, errors.New("what is in a value with a class has no class of its own")
	}
	return class, nil
}

// members compiles the members of an object.
func (c *compiler) members(all properties, at string, inherited Class) (out []member, err error) {
	if len(all) > maxMembers {
		return nil, fmt.Errorf("%s has more than %d members", at, maxMembers)
	}
	var wrong []error
	for _, p := range all {
		n, err := c.parsed(p.schema, at+"/"+p.name, inherited)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		out = append(out, member{`"` + p.name + `":`, n})
	}
	return out, errors.Join(wrong...)
}

func (c *compiler) parsed(text jsontext.Value, at string, inherited Class) (rule, error) {
	var s schema
	if err := json.Unmarshal(text, &s); err != nil {
		return rule{}, fmt.Errorf("%s: %w", at, err)
	}
	return c.rule(s, at, inherited)
}

func (c *compiler) definition(ref string) (s schema, err error) {
	text := c.defs[strings.TrimPrefix(ref, "urn:perpetua:common#/$defs/")]
	if text == nil {
		return s, fmt.Errorf("there is no %s", ref)
	}
	if err := json.Unmarshal(*text, &s); err != nil {
		return s, err
	}
	if s.Ref != "" {
		return s, fmt.Errorf("%s refers to another definition", ref)
	}
	return s, nil
}

func templates(texts []string) (out []template, err error) {
	for _, text := range texts {
		t, err := parseTemplate(text)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// isObject reports whether a schema is more than true or false.
func isObject(text jsontext.Value) bool { return text.Kind() == '{' }

func classed(text jsontext.Value) bool {
	var s schema
	return json.Unmarshal(text, &s) == nil && s.Class != ""
}
