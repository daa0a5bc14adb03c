// Package disclose splits a record into disclosure units: the parts of it that can be shown, and proven, one by one.
//
// The classes are in the JSON Schemas of the records, in these keywords:
//
//   - x-disclosure on a member names its class. A member without a class is an object or a list with classes inside.
//   - x-disclosure-owner on an object names the party to which its members of the class customer belong, as templates such
//     as "customer/{customer_code}". The first template that finds all its members counts. Without templates, the object
//     belongs to the party of the enclosing one. Without a party, the class customer is the venue's.
//   - x-disclosure-hashed on a member replaces its value in units by a keyed hash of the value.
//
// Compile reads them once. A Splitter then splits any number of records. It copies the bytes of the record and decodes
// nothing. schemas/README.md describes the form of the units.
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
