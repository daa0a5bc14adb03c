// Package disclose splits a record into disclosure units: the parts of it that can be shown, and proven, one by one.
//
// The classes are keywords of the JSON Schemas of the records. schemas/README.md describes them and the form of the units.
//
// Compile reads them once. A Splitter then splits any number of records. It copies the bytes of the record and decodes
// nothing.
package disclose

// Class says to whom a member of a record is disclosed.
type Class uint8

// The classes, in the order in which their units follow each other.
const (
	Public   Class = iota + 1 // to everybody
	Taker                     // to the taker of a trade
	Maker                     // to its maker
	Customer                  // to the party that the object names as its owner
	Venue                     // to the operator only
)

var classNames = [...]string{Public: "public", Taker: "taker", Maker: "maker", Customer: "customer", Venue: "venue"}

// String returns the name of the class in a schema.
func (c Class) String() string { return classNames[c] }

func parseClass(name string) (Class, bool) {
	for c := Public; c <= Venue; c++ {
		if classNames[c] == name {
			return c, true
		}
	}
	return 0, false
}

// NoEvent is the Event of a unit that belongs to no event.
const NoEvent = -1

// Unit is a part of a record that can be disclosed alone.
type Unit struct {
	Class Class
	Owner []byte // the party that it belongs to, such as "customer/C1", with JSON's escapes; nil for the classes Public and Venue
	Event int    // the index of the event in the record, from 0, or NoEvent
	Bytes []byte // its JSON
}
