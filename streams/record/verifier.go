package record

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// Verifier follows the chain of one partition from the genesis, or from the base of a trimmed log. Its caller reads the values, from a topic or from a file that a
// log was copied to, and passes each in order. A Verifier is not safe for concurrent use.
type Verifier struct {
	chain   *Chain
	before  Position          // of the record before the first of valid
	valid   []uint64          // the first 8 bytes of the hash of each valid record, by sequence
	skipped map[Hash]struct{} // the hashes of this journal's records that readers skip
	torn    *DivergedError    // found since the last valid record
}

// NewVerifier returns a verifier that has seen no value yet.
func NewVerifier(rules decide.Rules, partition int32) *Verifier {
	return &Verifier{chain: NewChain(rules, partition, Before), before: Before, skipped: make(map[Hash]struct{})}
}

// StartAt has a verifier that has seen no value begin at a base. Values before it count as skipped.
func (v *Verifier) StartAt(b Base) {
	v.chain.StartAt(b)
	v.before = b.Before()
}

// Verify takes the next value and its offset. It reports whether the record is valid, or one that every reader skips. outside
// compares what the log stores outside of the value, such as a key or a timestamp, with the record, and returns an error where
// they differ. Verify calls it for valid records, and for others that may belong to the journal; these have no Events.
//
// A *BrokenRecordError says that the record continues the chain and can't be applied, or that outside found a difference.
func (v *Verifier) Verify(offset int64, value []byte, outside func(Entry) error) (valid bool, err error) {
	entry, valid, err := v.chain.Admit(offset, value)
	if err != nil {
		return false, err
	}
	if !valid {
		v.skip(offset, value, outside)
		return false, nil
	}
	if err := outside(entry); err != nil {
		return false, v.chain.Broken(offset, entry.Record.Sequence, err.Error(), err)
	}
	v.valid, v.torn = append(v.valid, begins(entry.Position.Hash)), nil
	return true, nil
}

// Position returns the position of the last valid record.
func (v *Verifier) Position() Position { return v.chain.at }

// Torn returns a *DivergedError if a record was edited or is missing, so that readers skip all records after it, and nil
// otherwise. A valid record clears the error.
//
// Readers cannot tell a missing record from a lost race, and need not, because they compare the log with positions that they
// have read before. For a file there are no such positions, but the skipped records tell. The loser of a race appended its
// first record after a record of this log, and the others after its own. So a record of this journal belongs to another
// history if the log has no record with the hash in its Prev.
func (v *Verifier) Torn() error {
	if v.torn == nil {
		return nil
	}
	return v.torn
}

// skip remembers a record that readers skip, if it belongs to this journal. outside tells, because the headers name the
// journal's identity.
func (v *Verifier) skip(offset int64, value []byte, outside func(Entry) error) {
	e, err := parseEnvelope(value)
	if err != nil || outside(Entry{Record: &e.record, Journal: v.chain.id, Value: value}) != nil {
		return
	}
	if v.torn == nil && !v.holds(e.record.Sequence-1, e.record.Prev) {
		v.torn = &DivergedError{Journal: v.chain.journal, Partition: v.chain.partition, Found: v.chain.at,
			Have:   Position{Offset: offset - 1, Sequence: e.record.Sequence - 1, Hash: e.record.Prev},
			Reason: fmt.Sprintf("history was changed, since the record at offset %d goes on from there", offset)}
	}
	v.skipped[sha256.Sum256(value)] = struct{}{}
}

// holds reports whether a record with the sequence and the hash was seen, valid or not.
func (v *Verifier) holds(sequence int64, hash Hash) bool {
	if _, ok := v.skipped[hash]; ok || sequence < max(v.before.Sequence, 0) { // what is before a base is not known here
		return true
	}
	if sequence == v.before.Sequence {
		return hash == v.before.Hash
	}
	sequence -= v.before.Sequence + 1
	return sequence < int64(len(v.valid)) && v.valid[sequence] == begins(hash)
}

func begins(h Hash) uint64 { return binary.BigEndian.Uint64(h[:]) }
