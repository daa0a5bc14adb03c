package disclose

import (
	"encoding/hex"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

// group collects the parts of one event, or of the record around the events, by party.
type group struct {
	parts  []part
	frames []frame
	hash   Hash
	owner  []byte // the name of a party that is looked for
	err    error
}

// part collects the members for one party.
type part struct {
	class Class
	owner []byte // nil: everybody or the venue
	body  []byte // its members so far, each after a comma
	open  int    // how many of the frames are open in body
}

// frame is an object or a list that is being split.
type frame struct {
	key     string // its name in JSON with a colon; empty in a list
	bracket byte
	used    bool // a part has something of it
}

// The parts that every group has.
const (
	publicPart = iota
	venuePart
	fixedParts
)

func (g *group) begin(hash Hash) {
	g.parts, g.frames, g.hash, g.err = g.parts[:0], g.frames[:0], hash, nil
	g.add(Public, nil)
	g.add(Venue, nil)
}

// add adds a part, with the buffers of a former one.
func (g *group) add(class Class, owner []byte) int {
	n := len(g.parts)
	if n < cap(g.parts) {
		g.parts = g.parts[:n+1]
	} else {
		g.parts = append(g.parts, part{})
	}
	p := &g.parts[n]
	p.class, p.body, p.open = class, p.body[:0], 0
	if owner == nil {
		p.owner = nil
	} else {
		p.owner = append(p.owner[:0], owner...)
	}
	return n
}

// walk gives a value to the parties that the rule says. owner is the index of the part of the class customer.
func (g *group) walk(n *rule, key string, value []byte, owner int) {
	if len(n.owners) > 0 {
		owner = g.ownerOf(n.owners, value)
	}
	switch {
	case n.class != 0:
		g.put(g.partOf(n.class, owner), key, value, n.hashed)
	case n.items != nil:
		g.list(n, key, value, owner)
	default:
		g.object(n, key, value, owner)
	}
}

func (g *group) object(n *rule, key string, value []byte, owner int) {
	g.frames = append(g.frames, frame{key: key, bracket: '{'})
	r := fastjson.NewReader(value)
	more := r.Try("{")
	for ; more && !r.Try("}"); more = r.Try(",") {
		name := r.Name()
		inner := r.Value()
		m := n.members[string(name)]
		if r.Failed() || m == nil {
			g.err = fmt.Errorf("the member %q has no class", name)
			return
		}
		g.walk(&m.rule, m.key, inner, owner)
	}
	g.close(value, owner)
}

func (g *group) list(n *rule, key string, value []byte, owner int) {
	g.frames = append(g.frames, frame{key: key, bracket: '['})
	r := fastjson.NewReader(value)
	for more := r.Try("["); more && !r.Try("]"); more = r.Try(",") {
		inner := r.Value()
		if r.Failed() {
			g.err = errRecord
			return
		}
		g.walk(n.items, "", inner, owner)
	}
	g.close(value, owner)
}

// close ends the last frame in every part that has something of it. An empty object or list goes to the owner.
func (g *group) close(value []byte, owner int) {
	depth := len(g.frames)
	f := g.frames[depth-1]
	for i := range g.parts {
		if p := &g.parts[i]; p.open == depth {
			p.body, p.open = append(p.body, f.bracket+2), depth-1
		}
	}
	g.frames = g.frames[:depth-1]
	if !f.used {
		g.put(owner, f.key, value, false)
	}
}

// put gives a value to a part, inside of the frames.
func (g *group) put(to int, key string, value []byte, hashed bool) {
	p := &g.parts[to]
	for ; p.open < len(g.frames); p.open++ {
		f := &g.frames[p.open]
		p.body = append(p.name(f.key), f.bracket)
	}
	for i := range g.frames {
		g.frames[i].used = true
	}
	p.body = p.name(key)
	if !hashed {
		p.body = append(p.body, value...)
		return
	}
	sum := g.hash(value)
	p.body = append(hex.AppendEncode(append(p.body, '"'), sum[:]), '"')
}

// name returns the body with a comma if one is needed, and a key.
func (p *part) name(key string) []byte {
	b := p.body
	if len(b) == 0 || b[len(b)-1] != '{' && b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	return append(b, key...)
}

// partOf returns the index of the part of a class.
func (g *group) partOf(class Class, owner int) int {
	switch {
	case class == Public:
		return publicPart
	case class == Venue || owner == venuePart:
		return venuePart
	case class != Customer:
		g.parts[owner].class = class
	}
	return owner
}

// ownerOf returns the index of the part of the party that an object names, or the venue's.
func (g *group) ownerOf(templates []template, object []byte) int {
	for i := range templates {
		name, ok := templates[i].appendTo(g.owner[:0], object)
		g.owner = name
		if !ok {
			continue
		}
		for i := fixedParts; i < len(g.parts); i++ {
			if string(g.parts[i].owner) == string(name) {
				return i
			}
		}
		return g.add(Customer, name)
	}
	return venuePart
}
