package disclose

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/pack/packtest"
	"github.com/perpetua-exchange/perpetua/schemas"
)

// frozenClasses lists the classes of all members, one a line: the event or "record", the member's path, its class or "split",
// the owners of an object, and "hashed". A list's elements have the path of the list with []. Record roots depend on every
// word of it.
const frozenClasses = "../../schemas/events/disclosure.tsv"

// TestFrozenClasses compares the classes with those of earlier builds. A class never changes. PERPETUA_UPDATE_GOLDEN=1 adds
// new members, and keeps what is there.
func TestFrozenClasses(t *testing.T) {
	p, err := Compile(schemas.Events())
	if err != nil {
		t.Fatal(err)
	}
	now := listed(p)
	text, err := os.ReadFile(frozenClasses)
	update := os.Getenv(packtest.Update) != ""
	if err != nil && !update {
		t.Fatal(err)
	}
	known := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range known {
		if line != "" && !slices.Contains(now, line) {
			t.Errorf("a class changed, so that records that exist have other roots: this line is no longer true: %s", line)
		}
	}
	for _, line := range now {
		if !update && !slices.Contains(known, line) {
			t.Errorf("a member is new, and its class will never change: check it and run with %s=1: %s", packtest.Update, line)
		}
	}
	if update && !t.Failed() {
		if err := os.WriteFile(frozenClasses, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// listed returns the lines of frozenClasses.
func listed(p *Policy) (out []string) {
	list := func(name string, n *rule) {
		var line bytes.Buffer
		var walk func(n *rule, at string)
		walk = func(n *rule, at string) {
			line.Reset()
			fmt.Fprintf(&line, "%s\t%s\t%s", name, cmp.Or(at, "/"), class(n))
			for i := range n.owners {
				fmt.Fprintf(&line, "\t%s", n.owners[i].text())
			}
			if n.hashed {
				line.WriteString("\thashed")
			}
			if n.form == opaque {
				line.WriteString("\topaque")
			}
			out = append(out, line.String())
			for i := range n.members {
				m := &n.members[i]
				walk(&m.rule, at+"/"+strings.Trim(m.key, `":`))
			}
			if n.items != nil {
				walk(n.items, at+"[]")
			}
		}
		walk(n, "")
	}
	list("record", p.record)
	for journal, events := range p.journals {
		for event, n := range events {
			if journal == shared || p.journals[shared][event] != n {
				list(journal+"/"+event, n)
			}
		}
	}
	slices.Sort(out)
	return out
}

// class returns the name of a rule's own class. A rule whose class comes from its members is split.
func class(n *rule) string {
	if n.class == 0 || n.derived {
		return "split"
	}
	return n.class.String()
}

// text returns the template as it is in the schema.
func (t *template) text() string {
	out := t.literals[0]
	for i, path := range t.paths {
		out += "{" + strings.Join(path, ".") + "}" + t.literals[i+1]
	}
	return out
}
