package disclose

import (
	"fmt"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

// rule says where a value goes, and which form it has.
type rule struct {
	form    form
	class   Class // of the whole value; 0 if the value is split
	derived bool  // the schema gives the class to each member, not to the object
	hashed  bool
	members []member   // of an object, in the schema's order
	items   *rule      // of a list
	owners  []template // of an object: who its members of the class customer belong to; empty to inherit
}

// form is the JSON type of a value.
type form uint8

const (
	scalar form = iota // a string, a number, or a word
	object
	list
	opaque // an object whose members are not known here
)

type member struct {
	key string // the name in JSON, with quotes and colon
	rule
}

// maxMembers is the number of bits of cursor.seen.
const maxMembers = 64

// member returns the member with a name, or nil.
func (n *rule) member(name string) *member {
	for i := range n.members {
		if m := &n.members[i]; m.key == `"`+name+`":` {
			return m
		}
	}
	return nil
}

// uniform returns the class of all members of an object that is split, or 0 if they differ.
func (n *rule) uniform() Class {
	var class Class
	for i := range n.members {
		m := &n.members[i]
		if m.class == 0 || m.hashed || len(m.owners) > 0 || class != 0 && m.class != class {
			return 0
		}
		class = m.class
	}
	return class
}

// template makes the name of a party from members of an object: literals[0], the value at paths[0], literals[1], and so on.
type template struct {
	literals []string
	paths    [][]string
}

func parseTemplate(text string) (template, error) {
	var t template
	for {
		literal, rest, open := strings.Cut(text, "{")
		t.literals = append(t.literals, literal)
		if !open {
			break
		}
		path, after, closed := strings.Cut(rest, "}")
		if !closed || path == "" {
			return t, fmt.Errorf("the owner %q is no template", text)
		}
		t.paths, text = append(t.paths, strings.Split(path, ".")), after
	}
	if len(t.paths) == 0 {
		return t, fmt.Errorf("the owner %q names no member", text)
	}
	return t, nil
}

// appendTo appends the name of the party to b, and reports whether the object has the members for it. text begins with the
// object.
func (t *template) appendTo(b, text []byte) ([]byte, bool) {
	b = append(b, t.literals[0]...)
	for i, path := range t.paths {
		value := text
		for _, name := range path {
			if value = memberOf(value, name); value == nil {
				return b, false
			}
		}
		if len(value) < 2 || value[0] != '"' {
			return b, false
		}
		b = append(b, value[1:len(value)-1]...)
		b = append(b, t.literals[i+1]...)
	}
	return b, true
}

// memberOf returns the value of a member of the object that text begins with, or nil.
func memberOf(text []byte, name string) []byte {
	r := fastjson.NewReader(text)
	for more := r.Try("{"); more && !r.Try("}"); more = r.Try(",") {
		found := string(r.Name()) == name
		value := r.Value()
		if r.Failed() {
			return nil
		}
		if found {
			return value
		}
	}
	return nil
}
