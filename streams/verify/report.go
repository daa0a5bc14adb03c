package verify

import (
	"fmt"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Check names the comparison that found a Difference.
type Check string

// The checks.
const (
	CheckSource   Check = "source"   // the form of the file or of the archive
	CheckChain    Check = "chain"    // the chain of hashes, sequences, terms, types and versions
	CheckKafka    Check = "kafka"    // key, headers and timestamp of a record
	CheckDecision Check = "decision" // the record is decided again as another one
	CheckSums     Check = "sums"     // the sums of the ledger
	CheckState    Check = "state"    // the state after a record, compared with a snapshot or with another fold
	CheckModel    Check = "model"    // the independent model
	// CheckLiabilities compares a statement of liabilities with the accounts at its position.
	CheckLiabilities Check = "liabilities"
	CheckCheckpoint  Check = "checkpoint" // the tree of a signed checkpoint
)

// Difference says where a log is wrong.
type Difference struct {
	Check    Check  `json:"check"`
	Sequence int64  `json:"sequence"` // of the record, or of the first one that may be affected
	Offset   int64  `json:"offset"`   // of the record, where it is known; else -1
	Reason   string `json:"reason"`
}

// Error names the place and the reason.
func (d *Difference) Error() string {
	at := ""
	if d.Offset >= 0 {
		at = fmt.Sprintf(" (offset %d)", d.Offset)
	}
	return fmt.Sprintf("record %d%s: %s: %s", d.Sequence, at, d.Check, d.Reason)
}

// Skipped counts the messages of one kind that readers skip.
type Skipped struct {
	Messages int64 `json:"messages"`
	First    int64 `json:"first_offset"` // of the first one
}

func (s *Skipped) add(offset int64) {
	if s.Messages == 0 {
		s.First = offset
	}
	s.Messages++
}

// Report is the result of a verification.
type Report struct {
	Journal string `json:"journal"`
	First   int64  `json:"first"`   // sequence of the first record: 0, or that of the base
	Records int64  `json:"records"` // valid ones that were verified, without a different one and those after it

	Tip record.Position `json:"tip"` // of the last one

	// Repeated are second copies of records, Lost are records that lost a race with those of another owner, and Foreign are values
	// that are not records of the journal. Readers skip these messages, and the rules of the log permit them.
	Repeated Skipped `json:"repeated"`
	Lost     Skipped `json:"lost"`
	Foreign  Skipped `json:"foreign"`
	// Before are records before the base that the topic still holds.
	Before Skipped `json:"before_base"`

	Decided Decided `json:"decided"`
	// Snapshots is the number of stored snapshots that are equal to the state at their position.
	Snapshots int `json:"snapshots"`
	// Modeled is the number of records that the Model has checked; NotModeled says why it did not check the others, or is "".
	Modeled    int64  `json:"modeled"`
	NotModeled string `json:"not_modeled,omitzero"`
	// Proven is the number of records that the checkpoint covers, if their tree has its root.
	Proven int64 `json:"proven"`

	Difference *Difference `json:"difference"` // the first one; nil if there is none
}

// Decided counts the records that were decided again, by the results.
type Decided struct {
	Same      int64 `json:"same"`
	Undecided int64 `json:"undecided"` // a genesis, and the records that open terms
	// Without are records of a trimmed log before the first snapshot: no state is known from which to decide them.
	Without       int64            `json:"without_state"`
	NotRedecided  map[string]int64 `json:"not_redecidable"` // by command type
	NotReproduced map[string]int64 `json:"not_reproduced"`  // by command type
	Unverified    map[string]int64 `json:"unverified"`      // facts that a decision rests on, by name
}

func newDecided() Decided {
	return Decided{NotRedecided: make(map[string]int64), NotReproduced: make(map[string]int64), Unverified: make(map[string]int64)}
}

func (d *Decided) add(o *Decided) {
	d.Same, d.Undecided, d.Without = d.Same+o.Same, d.Undecided+o.Undecided, d.Without+o.Without
	for _, m := range [...]struct{ to, from map[string]int64 }{{d.NotRedecided, o.NotRedecided}, {d.NotReproduced, o.NotReproduced}, {d.Unverified, o.Unverified}} {
		for name, n := range m.from {
			m.to[name] += n
		}
	}
}
