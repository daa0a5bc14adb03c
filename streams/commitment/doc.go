// Package commitment commits to records: it computes the root of a record's disclosure units, and proofs that a unit belongs
// to a root.
//
// A root reveals nothing about the record, because each unit has a salt. The salts come from an epoch key, which comes from a
// secret of the venue. The epoch key and the record give the root. A proof of a unit reveals that unit and the number of
// units, and nothing of the others.
//
// The form, with integers in big-endian order and ‖ for concatenation:
//
//	epoch        = sequence div 4096
//	epoch key    = HKDF-SHA-256(secret: of the generation, salt: none, info: "perpetua commitment epoch" ‖ 0x00 ‖
//	               journal id (16 bytes) ‖ uint64 epoch), 32 bytes
//	salt i       = HMAC-SHA-256(epoch key, uint64 sequence ‖ uint32 i)
//	leaf data i  = HMAC-SHA-256(salt i, uint32 i ‖ uint32 n ‖ unit i), where n is the number of units
//	root         = the Merkle tree hash of RFC 6962 over the n leaf data, with SHA-256
//	hashed value = HMAC-SHA-256(HMAC-SHA-256(epoch key, "hashed" ‖ uint64 sequence), the value as JSON)
//
// streams/README.md says how to verify a proof without this package.
package commitment
