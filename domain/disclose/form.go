package disclose

import (
	"errors"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

var errForm = errors.New("a value is not in the form of its schema")

// checker reads the values of a record and refuses every value of another form than its schema describes. At the first one, its
// reader fails and err says why.
type checker struct {
	fastjson.Reader
	err error
}

func (c *checker) refuse(err error) {
	c.Fail()
	if c.err == nil {
		c.err = err
	}
}

// cursor is the reading position within an object.
type cursor struct {
	begun bool
	at    int    // the index of the member that is expected next
	seen  uint64 // a bit for each member
}

// next reads the name of the object's next member and returns the member. It returns nil at the end of the object and if the
// reader failed. Members usually are in the order of the schema, so the search begins after the last one.
func (c *checker) next(n *rule, at *cursor) *member {
	if !c.continues(&at.begun, '{') {
		return nil
	}
	for range n.members {
		i := at.at
		if at.at++; at.at == len(n.members) {
			at.at = 0
		}
		if m := &n.members[i]; c.Try(m.key) {
			if at.seen&(1<<i) != 0 {
				c.refuse(fmt.Errorf("the member %s is repeated", m.key))
				return nil
			}
			at.seen |= 1 << i
			return m
		}
	}
	if name := c.Name(); c.Failed() {
		c.refuse(errForm)
	} else {
		c.refuse(fmt.Errorf("the member %q has no class", name))
	}
	return nil
}

// continues reads what comes before the next element of an object or a list: the opening bracket before the first, and a comma
// before each other. It returns false after the closing bracket and if the reader failed.
func (c *checker) continues(begun *bool, bracket byte) bool {
	opening, closing := "{", "}"
	if bracket == '[' {
		opening, closing = "[", "]"
	}
	if !*begun && !c.Try(opening) {
		c.refuse(errForm)
		return false
	}
	if c.Try(closing) {
		return false
	}
	if *begun && !c.Try(",") {
		c.refuse(errForm)
		return false
	}
	*begun = true
	return !c.Failed()
}

// value reads a value, checks it against a rule, and returns the bytes.
func (c *checker) value(n *rule) []byte {
	rest := c.Rest()
	c.skip(n)
	return rest[:len(rest)-len(c.Rest())]
}

func (c *checker) skip(n *rule) {
	switch n.form {
	case object:
		var at cursor
		for m := c.next(n, &at); m != nil; m = c.next(n, &at) {
			c.skip(&m.rule)
		}
	case list:
		for begun := false; c.continues(&begun, '['); {
			c.skip(n.items)
		}
	case opaque:
		if rest := c.Rest(); len(rest) == 0 || rest[0] != '{' {
			c.refuse(errForm)
			return
		}
		c.skipAny()
	default:
		c.skipScalar()
	}
}

// skipAny reads a value in any form.
func (c *checker) skipAny() {
	rest := c.Rest()
	switch {
	case len(rest) > 0 && rest[0] == '{':
		for begun := false; c.continues(&begun, '{'); {
			c.Name()
			c.skipAny()
		}
	case len(rest) > 0 && rest[0] == '[':
		for begun := false; c.continues(&begun, '['); {
			c.skipAny()
		}
	default:
		c.skipScalar()
	}
}

// skipScalar reads a string, a number, or a word. It does not check the characters of a string, nor the digits of a number.
func (c *checker) skipScalar() {
	rest := c.Rest()
	if len(rest) == 0 || rest[0] == '{' || rest[0] == '[' {
		c.refuse(errForm)
		return
	}
	text := c.Value()
	if c.Failed() {
		c.refuse(errForm)
		return
	}
	for i := 0; text[0] != '"' && i < len(text); i++ {
		if b := text[i]; (b|0x20 < 'a' || b|0x20 > 'z') && (b < '0' || b > '9') && b != '-' && b != '+' && b != '.' {
			c.refuse(errForm)
			return
		}
	}
}
