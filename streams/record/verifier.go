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
	chain *Chain
	tear  *Tear
}

// NewVerifier returns a verifier that has seen no value yet.
func NewVerifier(rules decide.Rules, partition int32) *Verifier {
	chain := NewChain(rules, partition, Before)
	return &Verifier{chain, NewTear(chain)}
}

// StartAt has a verifier that has seen no value begin at a base. Values before it count as skipped.
func (v *Verifier) StartAt(b Base) {
	v.chain.StartAt(b)
	v.tear = NewTear(v.chain)
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
		v.tear.Skip(offset, value, outside)
		return false, nil
	}
	if err := outside(entry); err != nil {
		return false, v.chain.Broken(offset, entry.Record.Sequence, err.Error(), err)
	}
	v.tear.Admit(entry.Position)
	return true, nil
}

// Position returns the position of the last valid record.
func (v *Verifier) Position() Position { return v.chain.at }

// Torn is that of Tear.
func (v *Verifier) Torn() error { return v.tear.Torn() }

// Tear finds out whether a log was edited, or lacks a record, so that readers skip all records after that.
//
// Readers cannot tell a missing record from a lost race, and need not, because they compare the log with positions that they
// have read before. For a file there are no such positions, but the skipped records tell. The loser of a race appended its
// first record after a record of this log, and the others after its own. So a record of this journal belongs to another
// history if the log has no record with the hash in its Prev.
//
// It is for one pass over a log from its first record, and holds 8 bytes for each valid record.
type Tear struct {
	chain   *Chain
	before  Position          // of the record before the first of valid
	valid   []uint64          // the first 8 bytes of the hash of each valid record, by sequence
	skipped map[Hash]struct{} // the hashes of this journal's records that readers skip
	torn    *DivergedError    // found since the last valid record
}

// NewTear returns a Tear for a chain that has admitted nothing yet.
func NewTear(chain *Chain) *Tear {
	return &Tear{chain: chain, before: chain.at, skipped: make(map[Hash]struct{})}
}

// Admit takes the position of a record that the chain has admitted.
func (t *Tear) Admit(at Position) { t.valid, t.torn = append(t.valid, begins(at.Hash)), nil }

// Torn returns a *DivergedError if a record was edited or is missing, so that readers skip all records after it, and nil
// otherwise. A valid record clears the error.
func (t *Tear) Torn() error {
	if t.torn == nil {
		return nil
	}
	return t.torn
}

// Skip takes a value that readers skip. If it is a record of this journal, it is remembered. outside tells, because the headers name
// the journal's identity.
func (t *Tear) Skip(offset int64, value []byte, outside func(Entry) error) {
	e, err := parseEnvelope(value)
	if err != nil || outside(Entry{Record: &e.record, Journal: t.chain.id, Value: value}) != nil {
		return
	}
	if t.torn == nil && !t.holds(e.record.Sequence-1, e.record.Prev) {
		t.torn = &DivergedError{Journal: t.chain.journal, Partition: t.chain.partition, Found: t.chain.at,
			Have:   Position{Offset: offset - 1, Sequence: e.record.Sequence - 1, Hash: e.record.Prev},
			Reason: fmt.Sprintf("history was changed, since the record at offset %d goes on from there", offset)}
	}
	t.skipped[sha256.Sum256(value)] = struct{}{}
}

// holds reports whether a record with the sequence and the hash was seen, valid or not.
func (t *Tear) holds(sequence int64, hash Hash) bool {
	if _, ok := t.skipped[hash]; ok || sequence < max(t.before.Sequence, 0) { // what is before a base is not known here
		return true
	}
	if sequence == t.before.Sequence {
		return hash == t.before.Hash
	}
	sequence -= t.before.Sequence + 1
	return sequence < int64(len(t.valid)) && t.valid[sequence] == begins(hash)
}

func begins(h Hash) uint64 { return binary.BigEndian.Uint64(h[:]) }
