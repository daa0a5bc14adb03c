package disclose

import "encoding/hex"

// group collects the parts of one event, or of the record around the events, by party.
type group struct {
	parts  []part
	frames []frame
	hash   Hash
	owner  []byte // a scratch buffer for the name of a party
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
	g.parts, g.frames, g.hash = g.parts[:0], g.frames[:0], hash
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

// walk reads a value and gives it to the parties that the rule says. owner is the index of the part that gets members of the
// class customer.
func (g *group) walk(n *rule, key string, r *checker, owner int) {
	if len(n.owners) > 0 {
		owner = g.ownerOf(n.owners, r.Rest())
	}
	switch {
	case n.class != 0:
		value, to := r.value(n), owner
		if r.Failed() {
			return
		}
		if !n.derived || len(value) > len("{}") {
			to = g.partOf(n.class, owner)
		}
		g.put(to, key, value, n.hashed)
	case n.form == list:
		g.frames = append(g.frames, frame{key: key, bracket: '['})
		for begun := false; r.continues(&begun, '['); {
			g.walk(n.items, "", r, owner)
		}
		g.close(owner)
	default:
		g.frames = append(g.frames, frame{key: key, bracket: '{'})
		var at cursor
		for m := r.next(n, &at); m != nil; m = r.next(n, &at) {
			g.walk(&m.rule, m.key, r, owner)
		}
		g.close(owner)
	}
}

// close ends the last frame in every part that has something of it. An empty object or list goes to the owner.
func (g *group) close(owner int) {
	depth := len(g.frames)
	f := g.frames[depth-1]
	for i := range g.parts {
		if p := &g.parts[i]; p.open == depth {
			p.body, p.open = append(p.body, f.bracket+2), depth-1
		}
	}
	g.frames = g.frames[:depth-1]
	if !f.used {
		g.put(owner, f.key, []byte{f.bracket, f.bracket + 2}, false)
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

// partOf returns the index of the part of a class. A customer on both sides of a trade has one part, with the class of the last
// side.
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

// ownerOf returns the index of the part of the party that an object names, or the venue's. text begins with the object.
func (g *group) ownerOf(templates []template, text []byte) int {
	for i := range templates {
		name, ok := templates[i].appendTo(g.owner[:0], text)
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
