// Package transparency makes a journal partition a transparency log: a Merkle tree over its records, in which a leaf can be
// proven, and signed checkpoints, of which any two are consistent or show a forgery.
//
// The tree is that of RFC 6962 with SHA-256. Its index is the sequence, and its entry the byte 0x01 and the record root (package
// commitment). Tiles and entry bundles have the form of c2sp.org/tlog-tiles, and checkpoints that of c2sp.org/tlog-checkpoint,
// with an Ed25519 signature.
//
// A Follower reads the valid records, which are acknowledged, extends the Tree, writes tiles to a Store, and has a Signer sign.
// The Signer records each size and root in Postgres (Heads) before it signs them, and only if they extend what is recorded. So
// any number of nodes may follow one journal with one key. A Reader serves what was signed.
//
// Tiles depend only on the log and on the venue's secrets of record roots: nodes may write the same tile at the same time, and a
// tree that is built again has the same bytes.
package transparency
