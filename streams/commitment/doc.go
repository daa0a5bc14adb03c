// Package commitment commits to records: it computes the root of a record's disclosure units, and proofs that a unit belongs
// to a root.
//
// A root reveals nothing about the record, because each unit has a salt. The salts come from an epoch key, which comes from a
// secret of the venue. The epoch key and the record give the root. A proof of a unit reveals that unit and the number of
// units, and nothing of the others.
//
// The form is in streams/README.md, under "Record roots". The comments here name its parts.
package commitment
