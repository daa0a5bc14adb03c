package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// Verifier follows the chain of one partition over records that are handed to it one by one, from the first on, wherever
// they were read: a topic, or a file that a log was copied to. It is not safe for concurrent use.
type Verifier struct {
	chain   *chain
	valid   []uint64          // what the hashes of the valid records begin with, by sequence
	skipped map[Hash]struct{} // of this journal's records that readers skip
	torn    *DivergedError    // since the last valid record
}

// NewVerifier returns a verifier that stands before genesis.
func NewVerifier(rules decide.Rules, partition int32) *Verifier {
	return &Verifier{chain: newChain(rules, partition, Before), skipped: make(map[Hash]struct{})}
}

// Verify takes the next record and reports whether it is valid, or one that every reader skips. A *BrokenRecordError says
// that it continues the chain and can't be applied, or that its key, headers or timestamp are not those of its value.
func (v *Verifier) Verify(r *kgo.Record) (valid bool, err error) {
	entry, valid, err := v.chain.admit(r.Offset, r.Value)
	if err != nil {
		return false, err
	}
	if !valid {
		v.skip(r)
		return false, nil
	}
	if err := VerifyKafka(entry, v.chain.journal, r); err != nil {
		return false, v.chain.broken(r.Offset, entry.Record.Sequence, err.Error(), err)
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
func (v *Verifier) skip(r *kgo.Record) {
	e, err := parseEnvelope(r.Value)
	if err != nil || VerifyKafka(Entry{Record: &e.record, Journal: v.chain.id, Value: r.Value}, v.chain.journal, r) != nil {
		return
	}
	if v.torn == nil && !v.holds(e.record.Sequence-1, e.record.Prev) {
		v.torn = &DivergedError{Journal: v.chain.journal, Partition: v.chain.partition, Found: v.chain.at,
			Have:   Position{Offset: r.Offset - 1, Sequence: e.record.Sequence - 1, Hash: e.record.Prev},
			Reason: fmt.Sprintf("history was changed, since the record at offset %d goes on from there", r.Offset)}
	}
	v.skipped[sha256.Sum256(r.Value)] = struct{}{}
}

// holds reports whether a record with a sequence and a hash has gone by, valid or not.
func (v *Verifier) holds(sequence int64, hash Hash) bool {
	if _, ok := v.skipped[hash]; ok || sequence < 0 {
		return true
	}
	return sequence < int64(len(v.valid)) && v.valid[sequence] == begins(hash)
}

func begins(h Hash) uint64 { return binary.BigEndian.Uint64(h[:]) }
