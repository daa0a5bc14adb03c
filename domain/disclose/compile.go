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
		s.Properties = slices.DeleteFunc(s.Properties, func(p property) bool { return p.name == "events" || p.name == "prev" })
	}
	n, err := c.rule(s, "", 0)
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
