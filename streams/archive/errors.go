package archive

import "fmt"

// Damage is a kind of error in an archive.
type Damage string

// The kinds of damage.
const (
	Missing Damage = "missing" // a manifest or an object that others name
	Cut     Damage = "cut"     // the end is not there
	Damaged Damage = "damaged" // other bytes than were written
	Foreign Damage = "foreign" // of another journal, or not made with this venue's key
	Version Damage = "of another version"
	Forked  Damage = "of another history" // sound in itself, and not the continuation of what is before it
)

// Error says where an archive is wrong.
type Error struct {
	Key      string // of the blob
	Sequence int64  // of the record, or of the first one that may be affected; -1 if the whole blob is
	Damage   Damage
	Err      error // may be nil
}

// Error names the blob, the record, and the damage.
func (e *Error) Error() string {
	text := fmt.Sprintf("archive: %s is %s", e.Key, e.Damage)
	if e.Sequence >= 0 {
		text += fmt.Sprintf(" from record %d on", e.Sequence)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
