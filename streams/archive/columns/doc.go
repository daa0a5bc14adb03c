// Package columns compresses JSON values that resemble each other, such as the records of a journal, and returns them byte for
// byte.
//
// It cuts a value at each opening brace and bracket into pieces. A piece is a template, the text that it shares with others, and
// holes: the values of its members. The values of a hole over time are a column. For each, a column has an operation, such as
// "equal to that other column of the record", "as in the last object with this id", "an id that derives from record n", or "a
// number that differs from this sum by n", and the arguments of the operations in streams, which are compressed.
//
// Any bytes can be encoded: no type of event or member is known here, and what is not JSON is text. Encode decodes what it made
// before it returns. README.md of streams has the exact form.
//
// Start with pack.go. model.go is what encoder and decoder both know after the same values.
package columns
