package record

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// Verifier follows the chain of one partition over values that are handed to it one by one, from the first on, wherever
// they were read: a topic, or a file that a log was copied to. It is not safe for concurrent use.
type Verifier struct {
	chain   *Chain
	valid   []uint64          // what the hashes of the valid records begin with, by sequence
	skipped map[Hash]struct{} // of this journal's records that readers skip
	torn    *DivergedError    // since the last valid record
}

// NewVerifier returns a verifier that stands before genesis.
func NewVerifier(rules decide.Rules, partition int32) *Verifier {
	return &Verifier{chain: NewChain(rules, partition, Before), skipped: make(map[Hash]struct{})}
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

// Torn returns a *DivergedError if history was changed and nothing valid has followed since: a record was edited, or is
// missing, so that readers skip all that came after it.
//
// Readers can't tell that from a lost race, and need not: they hold the log against positions of their own. For a file none
// are known, but what was skipped tells. The loser of a race began on top of a record that is in the log, and went on on top
// of its own. A record of this journal on top of one that the log does not hold belongs to another history.
func (v *Verifier) Torn() error {
	if v.torn == nil {
		return nil
	}
	return v.torn
}

// skip takes note of a record that readers skip, if it is this journal's: it names the journal's identity.
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

// holds reports whether a record with a sequence and a hash has gone by, valid or not.
func (v *Verifier) holds(sequence int64, hash Hash) bool {
	if _, ok := v.skipped[hash]; ok || sequence < 0 {
		return true
	}
	return sequence < int64(len(v.valid)) && v.valid[sequence] == begins(hash)
}

func begins(h Hash) uint64 { return binary.BigEndian.Uint64(h[:]) }
