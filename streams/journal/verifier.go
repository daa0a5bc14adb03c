package journal

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// Verifier follows the chain of one partition over records that are handed to it one by one, from the first on, wherever
// they were read: a topic, or a file that a log was copied to. It is not safe for concurrent use.
type Verifier struct{ chain *chain }

// NewVerifier returns a verifier that stands before genesis.
func NewVerifier(rules decide.Rules, partition int32) *Verifier {
	return &Verifier{newChain(rules, partition, Before)}
}

// Verify takes the next record and reports whether it is valid, or one that every reader skips. A *BrokenRecordError says
// that it continues the chain and can't be applied, or that its key, headers or timestamp are not those of its value.
func (v *Verifier) Verify(r *kgo.Record) (valid bool, err error) {
	entry, valid, err := v.chain.admit(r.Offset, r.Value)
	if err != nil || !valid {
		return false, err
	}
	if err := VerifyKafka(entry, v.chain.journal, r); err != nil {
		return false, v.chain.broken(r.Offset, entry.Record.Sequence, err.Error(), err)
	}
	return true, nil
}

// Position returns the position of the last valid record.
func (v *Verifier) Position() Position { return v.chain.at }
