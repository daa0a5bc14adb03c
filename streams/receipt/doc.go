// Package receipt makes and verifies receipts. A receipt shows one party its part of a record, and proves that the record is in
// a transparency log.
//
// A Receipt holds the record's unit 1, the units of the party, and the public units of the events that concern it, each with its
// salt and its path to the record root (package commitment). The root is in the entry of the log, and a c2sp.org/tlog-proof leads
// from the entry to a signed checkpoint (package transparency). Units of others are not in it, and nothing that could confirm a
// guess of them: their salts are missing.
//
// Verify needs nothing but the receipt and a policy. A Prover makes receipts from the log.
package receipt
