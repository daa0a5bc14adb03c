package disclose

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Policy holds the classes of all records. It is immutable and safe for concurrent use.
type Policy struct {
	record   *rule                       // of a record without its events and its prev
	journals map[string]map[string]*rule // by journal, then by "<type>.v<version>"
}

// shared is the folder of the events that every journal may hold.
const shared = "journal"

// schema is what Compile reads of a JSON Schema.
type schema struct {
	Ref        string                     `json:"$ref"`
	Class      string                     `json:"x-disclosure"`
	Owners     []string                   `json:"x-disclosure-owner"`
	Hashed     bool                       `json:"x-disclosure-hashed"`
	Properties map[string]jsontext.Value  `json:"properties"`
	Items      jsontext.Value             `json:"items"`
	Defs       map[string]*jsontext.Value `json:"$defs"`
}

type compiler struct{ defs map[string]*jsontext.Value }

// Compile reads the schemas of records in files: common.schema.json, and one folder for each journal. It fails if a member
// has no class. The errors name the schema and the member.
func Compile(files fs.FS) (*Policy, error) {
	var common schema
	if err := read(files, "common.schema.json", &common); err != nil {
		return nil, err
	}
	c := &compiler{common.Defs}
	p := &Policy{journals: make(map[string]map[string]*rule)}
	names, err := fs.Glob(files, "*/*.schema.json")
	if err != nil {
		return nil, err
	}
	var wrong []error
	for _, name := range names {
		n, err := c.file(files, name)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
			continue
		}
		p.add(name, n)
	}
	if p.record == nil && len(wrong) == 0 {
		wrong = append(wrong, errors.New("no schema of a record"))
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	for journal, events := range p.journals {
		if journal != shared {
			maps.Copy(events, p.journals[shared])
		}
	}
	return p, nil
}

// add files the rule of a schema.
func (p *Policy) add(name string, n *rule) {
	folder, file := path.Split(name)
	journal, event := strings.TrimSuffix(folder, "/"), strings.TrimSuffix(file, ".schema.json")
	switch event {
	case "record":
		p.record = n
		return
	case "command": // the record's schema holds the same members
		return
	}
	if p.journals[journal] == nil {
		p.journals[journal] = make(map[string]*rule)
	}
	p.journals[journal][event] = n
}

// Journals returns the names of the journals, in order.
func (p *Policy) Journals() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.journals)), func(name string) bool { return name == shared })
}

func (c *compiler) file(files fs.FS, name string) (*rule, error) {
	var s schema
	if err := read(files, name, &s); err != nil {
		return nil, err
	}
	if path.Base(name) == "record.schema.json" { // events have schemas of their own, and prev is in no unit but the whole value
		delete(s.Properties, "events")
		delete(s.Properties, "prev")
	}
	n, err := c.rule(s, "")
	return &n, err
}

func read(files fs.FS, name string, to *schema) error {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// rule compiles the schema of the value at a path.
func (c *compiler) rule(s schema, at string) (n rule, err error) {
	var common schema
	if s.Ref != "" {
		if common, err = c.definition(s.Ref); err != nil {
			return n, fmt.Errorf("%s: %w", at, err)
		}
	}
	if n.owners, err = templates(append(s.Owners, common.Owners...)); err != nil {
		return n, fmt.Errorf("%s: %w", at, err)
	}
	if s.Class != "" {
		class, known := parseClass(s.Class)
		if !known {
			return n, fmt.Errorf("%s: there is no class %q", at, s.Class)
		}
		n.class, n.hashed = class, s.Hashed
		return n, nil
	}
	if len(s.Items) == 0 {
		s.Items = common.Items
	}
	switch {
	case len(s.Properties)+len(common.Properties) > 0:
		if n.members, err = c.members(s, common, at); err == nil {
			n.class = n.uniform()
		}
	case isObject(s.Items):
		var items rule
		items, err = c.parsed(s.Items, at+"[]")
		n.items = &items
	default:
		err = fmt.Errorf("%s has no class", at)
	}
	if n.class != 0 {
		n.members = nil
	}
	return n, err
}

// members compiles the members of an object. A schema that refers to a definition may narrow a member and keep its class.
func (c *compiler) members(s, common schema, at string) (map[string]*member, error) {
	out, all := make(map[string]*member), maps.Clone(common.Properties)
	if all == nil {
		all = make(map[string]jsontext.Value)
	}
	for name, own := range s.Properties {
		if isObject(own) && (all[name] == nil || classed(own)) {
			all[name] = own
		}
	}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n, err := c.parsed(all[name], at+"/"+name)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		out[name] = &member{`"` + name + `":`, n}
	}
	return out, errors.Join(wrong...)
}

func (c *compiler) parsed(text jsontext.Value, at string) (rule, error) {
	var s schema
	if err := json.Unmarshal(text, &s); err != nil {
		return rule{}, fmt.Errorf("%s: %w", at, err)
	}
	return c.rule(s, at)
}

func (c *compiler) definition(ref string) (s schema, err error) {
	text := c.defs[strings.TrimPrefix(ref, "urn:perpetua:common#/$defs/")]
	if text == nil {
		return s, fmt.Errorf("there is no %s", ref)
	}
	return s, json.Unmarshal(*text, &s)
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
