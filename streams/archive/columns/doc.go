// Package columns compresses JSON values that resemble each other, such as the records of a journal, and returns them byte for
// byte.
//
// It cuts a value at each opening brace and bracket into pieces. A piece is a template with holes for the values of members. All
// values of a hole form a column. A column stores an operation for each value, such as "equal to that other column of the
// record", "as in the last object with this id", "an id that derives from record n", or "a number that differs from this sum by
// n". The arguments of the operations are in streams, which are compressed.
//
// Any bytes can be encoded. The package depends on no type of event or member, and treats text that is not JSON as a single value.
// Encode decodes each chunk and compares it with the values before it returns. README.md of streams has the exact form.
//
// Start with pack.go for the encoder, and with unpack.go for the decoder. model.go and objects.go have the state that both share. The
// encoder's three passes are in split.go, count.go, and encode.go.
package columns
