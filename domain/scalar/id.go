// Package scalar defines the two basic values of a log: ID, a UUID, and Time, an instant in microseconds. Each has
// exactly one text form, which the log and the interfaces share.
package scalar

import (
	"encoding/hex"
	"errors"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

// ID is the UUID of a command, an order, a trade, a posting, a user, and so on. The zero ID means none.
type ID [16]byte

var errID = errors.New("not a UUID")

// ParseID parses the canonical form with hyphens, in lower or upper case.
func ParseID(s string) (ID, error) {
	var id ID
	return id, id.UnmarshalText([]byte(s))
}

// IsZero reports whether id is the zero ID.
func (id ID) IsZero() bool { return id == ID{} }

// String returns the canonical lower-case form with hyphens.
func (id ID) String() string {
	b, _ := id.AppendText(make([]byte, 0, 36))
	return string(b)
}

// AppendText appends the canonical form. It implements encoding.TextAppender.
func (id ID) AppendText(b []byte) ([]byte, error) {
	b = hex.AppendEncode(b, id[0:4])
	b = append(b, '-')
	b = hex.AppendEncode(b, id[4:6])
	b = append(b, '-')
	b = hex.AppendEncode(b, id[6:8])
	b = append(b, '-')
	b = hex.AppendEncode(b, id[8:10])
	b = append(b, '-')
	return hex.AppendEncode(b, id[10:16]), nil
}

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// ReadJSON reads the quoted output of AppendText.
func (id *ID) ReadJSON(r *fastjson.Reader) {
	b := r.Fixed(36)
	if b == nil {
		return
	}
	if b[8] != '-' || b[13] != '-' || b[18] != '-' || b[23] != '-' || !fastjson.Hex(id[0:4], b[0:8]) || !fastjson.Hex(id[4:6], b[9:13]) ||
		!fastjson.Hex(id[6:8], b[14:18]) || !fastjson.Hex(id[8:10], b[19:23]) || !fastjson.Hex(id[10:16], b[24:36]) {
		r.Fail()
	}
}

// UnmarshalText parses the canonical form, in lower or upper case.
func (id *ID) UnmarshalText(b []byte) error {
	if len(b) != 36 || b[8] != '-' || b[13] != '-' || b[18] != '-' || b[23] != '-' {
		return errID
	}
	var digits [32]byte
	n := 0
	for i, c := range b {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			continue
		}
		digits[n] = c
		n++
	}
	var out ID
	if _, err := hex.Decode(out[:], digits[:]); err != nil {
		return errID
	}
	*id = out
	return nil
}
