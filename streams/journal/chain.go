package journal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// unknownTerm is the term of a chain that was not followed from genesis.
const unknownTerm = -1

// chain applies the rule of validity to the values of one partition as they come.
type chain struct {
	journal   string
	partition int32
	decoder   *Decoder
	built     *built // what need not be decoded again; nil for nothing
	id        scalar.ID
	at        Position
	term      int64 // of the last valid taken record; 0 before the first, unknownTerm if not known

	// decodeFrom is the first sequence whose events are wanted. What comes before is only followed, which costs a
	// fraction: its entries have no Record.
	decodeFrom int64
}

func newChain(rules decide.Rules, partition int32, from Position) *chain {
	c := &chain{journal: rules.Journal(), partition: partition, decoder: NewDecoder(rules.Registry()), at: from, term: unknownTerm}
	if from.IsBefore() {
		c.term = 0
	}
	return c
}

// admit judges the next value of the partition. It returns the entry if the value is valid, ok false if it is to be
// skipped, and a *BrokenRecordError if it continues the chain and can't be applied.
func (c *chain) admit(offset int64, value []byte) (entry Entry, ok bool, err error) {
	if entry, ok := c.known(offset, value); ok {
		return entry, true, nil
	}
	if n := c.at.Sequence + 1; n >= c.decodeFrom && n > 0 {
		if r, ok := c.decoder.written(value, &c.at.Hash); ok && r.Sequence == n {
			c.at = Position{Offset: offset, Sequence: n, Hash: sha256.Sum256(value)}
			return Entry{Record: r, Position: c.at, Journal: c.id, Value: value}, true, nil
		}
	}
	e, err := parseEnvelope(value)
	if err != nil {
		if sequence, meant := continues(value, c.at.Hash); meant {
			return Entry{}, false, c.broken(offset, sequence, "it is not in the form of a record", nil)
		}
		return Entry{}, false, nil
	}
	if e.record.Prev != c.at.Hash {
		return Entry{}, false, nil
	}
	if n, from := e.record.Sequence, c.decodeFrom; n < from && n == c.at.Sequence+1 && n > 0 {
		if !jsontext.Value(value).IsValid() {
			return Entry{}, false, nil
		}
		c.term = unknownTerm
		c.at = Position{Offset: offset, Sequence: n, Hash: sha256.Sum256(value)}
		return Entry{Position: c.at, Journal: c.id, Value: value}, true, nil
	}
	r, err := e.finish(c.decoder.own, c.decoder.rules)
	if err != nil {
		if !jsontext.Value(value).IsValid() {
			return Entry{}, false, nil
		}
		return Entry{}, false, c.broken(offset, e.record.Sequence, err.Error(), err)
	}
	if r.Sequence != c.at.Sequence+1 {
		return Entry{}, false, c.broken(offset, r.Sequence, fmt.Sprintf("its sequence should be %d", c.at.Sequence+1), nil)
	}
	if err := c.opening(r); err != nil {
		return Entry{}, false, c.broken(offset, r.Sequence, err.Error(), nil)
	}
	c.at = Position{Offset: offset, Sequence: r.Sequence, Hash: sha256.Sum256(value)}
	return Entry{Record: r, Position: c.at, Journal: c.id, Value: value}, true, nil
}

// admitDecoded is admit for a value that was decoded before. What it may be without a doubt is checked against the chain
// here; everything else has admit to judge it.
func (c *chain) admitDecoded(offset int64, value []byte, s decoded) (entry Entry, ok bool, err error) {
	r, n := s.record, c.at.Sequence+1
	if r == nil || r.Prev != c.at.Hash || r.Sequence != n || n < c.decodeFrom || c.opening(r) != nil {
		return c.admit(offset, value)
	}
	c.at = Position{Offset: offset, Sequence: n, Hash: s.hash}
	return Entry{Record: r, Position: c.at, Journal: c.id, Value: value}, true, nil
}

// plain reports whether the next value needs no decoding, in all likelihood.
func (c *chain) plain() bool {
	n := c.at.Sequence + 1
	if n < c.decodeFrom {
		return true
	}
	_, ok := c.built.find(n)
	return ok
}

// known is admit for what this process has built itself: the same bytes, which have the same hash. What is kept of it is
// what was built, and not the bytes that were fetched together with others.
func (c *chain) known(offset int64, value []byte) (entry Entry, ok bool) {
	n := c.at.Sequence + 1
	b, ok := c.built.find(n)
	if !ok || n == 0 || b.record.Command.Type == TypeTaken || n < c.decodeFrom || b.record.Prev != c.at.Hash || !bytes.Equal(b.value, value) {
		return Entry{}, false
	}
	c.at = Position{Offset: offset, Sequence: n, Hash: b.hash}
	return Entry{Record: b.record, Position: c.at, Journal: c.id, Value: b.value}, true
}

// opening checks what only the journal's own records must satisfy, and takes over what they say.
func (c *chain) opening(r *Record) error {
	genesis, isGenesis := r.Events[0].(*Genesis)
	taken, isTaken := r.Events[0].(*Taken)
	switch {
	case isGenesis != (r.Sequence == 0), isGenesis != (r.Command.Type == TypeGenesis):
		return errors.New("a journal begins with its genesis and has no other")
	case isTaken != (r.Command.Type == TypeTaken):
		return errors.New("a taken record must carry its type twice")
	case (isGenesis || isTaken) && len(r.Events) != 1:
		return errors.New("genesis and taken records have one event")
	case isGenesis:
		if genesis.Journal != c.journal || genesis.Partition != c.partition {
			return fmt.Errorf("it is the genesis of %s/%d", genesis.Journal, genesis.Partition)
		}
		c.id = genesis.JournalID
	case isTaken:
		if c.term != unknownTerm && taken.Term != c.term+1 {
			return fmt.Errorf("it opens term %d after term %d", taken.Term, c.term)
		}
		c.term = taken.Term
	}
	return nil
}

func (c *chain) broken(offset, sequence int64, reason string, cause error) error {
	return &BrokenRecordError{Journal: c.journal, Partition: c.partition, Offset: offset, Sequence: sequence,
		Reason: reason, Cause: cause}
}
