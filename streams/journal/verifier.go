package journal

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Verifier is a record.Verifier for Kafka records. It also compares their keys, headers and timestamps with their values.
type Verifier struct {
	*record.Verifier
	journal string
}

// NewVerifier returns a verifier that has seen no record of the partition yet.
func NewVerifier(rules decide.Rules, partition int32) *Verifier {
	return &Verifier{record.NewVerifier(rules, partition), rules.Journal()}
}

// Verify takes the next record and reports whether it is valid, or one that every reader skips. A *record.BrokenRecordError
// says that it continues the chain but cannot be applied, or that its key, headers or timestamp do not match its value.
func (v *Verifier) Verify(r *kgo.Record) (valid bool, err error) {
	return v.Verifier.Verify(r.Offset, r.Value, func(e record.Entry) error { return VerifyKafka(e, v.journal, r) })
}

// Skip passes a record that readers skip to a Tear.
func Skip(t *record.Tear, journal string, r *kgo.Record) {
	t.Skip(r.Offset, r.Value, func(e record.Entry) error { return VerifyKafka(e, journal, r) })
}
