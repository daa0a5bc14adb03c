package record

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// UnknownTerm is the term of a Chain that does not begin at the genesis and has seen no TermStarted yet.
const UnknownTerm = -1

// Chain applies the rule of validity to the values of one partition, in the order of their offsets. A value is valid if its
// prev is the hash of the last valid value. All other values are skipped. It is not safe for concurrent use.
type Chain struct {
	journal   string
	partition int32
	decoder   *Decoder
	cache     *EncodedCache // of records that need not be decoded; may be nil

	at   Position  // of the last valid record
	head *Record   // of a record that was not decoded, if it is the last valid one
	id   scalar.ID // of the journal; zero if not known
	term int64     // of the last valid TermStarted; 0 before the first, or UnknownTerm

	// decodeFrom is the first sequence to decode. Following the chain without decoding takes a fraction of the time.
	decodeFrom int64
}

// NewChain returns a chain that continues after the position from.
func NewChain(rules decide.Rules, partition int32, from Position) *Chain {
	c := &Chain{journal: rules.Journal(), partition: partition, decoder: NewDecoder(rules.Registry()), at: from, term: UnknownTerm}
	if from.IsBefore() {
		c.term = 0
	}
	return c
}

// NewGenesisChain returns a chain for a reader that stops at the genesis: it can't decode the records of the rules.
func NewGenesisChain(journal string, partition int32) *Chain {
	return &Chain{journal: journal, partition: partition, decoder: NewDecoder(decide.NewRegistry()), at: Before}
}

// NewHeadChain returns a chain that continues after the position from, and decodes no events but those of a genesis. It knows the
// rules of no journal, so it can follow the log of any build.
func NewHeadChain(journal string, partition int32, from Position) *Chain {
	c := NewGenesisChain(journal, partition)
	c.at, c.decodeFrom, c.term = from, math.MaxInt64, UnknownTerm
	return c
}

// UseCache lets the chain take records from the cache of the partition instead of decoding and hashing them.
func (c *Chain) UseCache(cache *EncodedCache) { c.cache = cache }

// DecodeFrom makes the chain decode only records with the given sequence and later ones. The entries of earlier records have
// a nil Record, and the values of their events are checked no further than that they are JSON.
func (c *Chain) DecodeFrom(sequence int64) { c.decodeFrom = sequence }

// Journal returns the name of the journal.
func (c *Chain) Journal() string { return c.journal }

// Position returns the position of the last valid record.
func (c *Chain) Position() Position { return c.at }

// Head returns the last valid record, perhaps without its events. It is nil if the entry of that record holds it.
func (c *Chain) Head() *Record {
	if c.head == nil || c.head.Sequence != c.at.Sequence {
		return nil
	}
	return c.head
}

// SetOffset corrects the offset of the last valid record, which is a hint.
func (c *Chain) SetOffset(offset int64) { c.at.Offset = offset }

// ID returns the identity of the journal, which the genesis record holds. It is zero if the chain does not begin at the
// genesis and SetID was not called.
func (c *Chain) ID() scalar.ID { return c.id }

// SetID sets the identity of the journal, for a chain that does not begin at the genesis.
func (c *Chain) SetID(id scalar.ID) { c.id = id }

// Term returns the term that the last valid record belongs to. It is 0 before the first term, and may be UnknownTerm.
func (c *Chain) Term() int64 { return c.term }

// SetTerm sets the term that the last valid record belongs to, for a chain that does not begin at the genesis. The next
// TermStarted must then open the term after it.
func (c *Chain) SetTerm(term int64) { c.term = term }

// StartAt moves a chain that has admitted nothing to the record before a base.
func (c *Chain) StartAt(b Base) { c.at, c.id, c.term = b.Before(), b.JournalID, b.Term }

// Admit applies the rule of validity to the next value of the partition and its offset. It returns the entry and true if the
// value is valid, false if readers skip it, and a *BrokenRecordError if it continues the chain but cannot be applied.
func (c *Chain) Admit(offset int64, value []byte) (entry Entry, ok bool, err error) {
	if entry, ok := c.fromCache(offset, value); ok {
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
			return Entry{}, false, c.Broken(offset, sequence, "it is not in the form of a record", nil)
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
		c.term, c.head = UnknownTerm, &e.record
		c.at = Position{Offset: offset, Sequence: n, Hash: sha256.Sum256(value)}
		return Entry{Position: c.at, Journal: c.id, Value: value}, true, nil
	}
	r, err := e.finish(c.decoder.journal, c.decoder.rules)
	if err != nil {
		if !jsontext.Value(value).IsValid() {
			return Entry{}, false, nil
		}
		return Entry{}, false, c.Broken(offset, e.record.Sequence, err.Error(), err)
	}
	if r.Sequence != c.at.Sequence+1 {
		return Entry{}, false, c.Broken(offset, r.Sequence, fmt.Sprintf("its sequence should be %d", c.at.Sequence+1), nil)
	}
	if err := c.checkOwn(r); err != nil {
		return Entry{}, false, c.Broken(offset, r.Sequence, err.Error(), nil)
	}
	c.at = Position{Offset: offset, Sequence: r.Sequence, Hash: sha256.Sum256(value)}
	return Entry{Record: r, Position: c.at, Journal: c.id, Value: value}, true, nil
}

// AdmitDecoded is Admit for a value that was hashed and decoded before, perhaps by another goroutine. If the value is not
// clearly valid, it calls Admit.
func (c *Chain) AdmitDecoded(offset int64, value []byte, d Decoded) (entry Entry, ok bool, err error) {
	r, n := d.Record, c.at.Sequence+1
	if r == nil || r.Prev != c.at.Hash || r.Sequence != n || n < c.decodeFrom || c.checkOwn(r) != nil {
		return c.Admit(offset, value)
	}
	c.at = Position{Offset: offset, Sequence: n, Hash: d.Hash}
	return Entry{Record: r, Position: c.at, Journal: c.id, Value: value}, true, nil
}

// SkipsDecoding reports whether Admit will probably not decode the next value, so that decoding it before would be a waste.
func (c *Chain) SkipsDecoding() bool {
	n := c.at.Sequence + 1
	if n < c.decodeFrom {
		return true
	}
	_, ok := c.cache.find(n)
	return ok
}

// fromCache is Admit for the value of a record in the cache. The entry refers to the cached bytes, so that it does not keep the
// whole buffer in memory that the value was fetched in.
func (c *Chain) fromCache(offset int64, value []byte) (entry Entry, ok bool) {
	n := c.at.Sequence + 1
	b, ok := c.cache.find(n)
	if !ok || n == 0 || b.record.Command.Type == TypeTermStarted || b.record.Prev != c.at.Hash || !bytes.Equal(b.value, value) {
		return Entry{}, false
	}
	c.at = Position{Offset: offset, Sequence: n, Hash: b.hash}
	e := Entry{Record: b.record, Position: c.at, Journal: c.id, Value: b.value}
	if n < c.decodeFrom {
		c.term, c.head, e.Record = UnknownTerm, b.record, nil
	}
	return e, true
}

// checkOwn checks the rules for genesis and term records, and that no other record is one. If r follows them, it takes the
// identity or the term from r.
func (c *Chain) checkOwn(r *Record) error {
	genesis, isGenesis := r.Events[0].(*Genesis)
	started, isStart := r.Events[0].(*TermStarted)
	switch {
	case isGenesis != (r.Sequence == 0), isGenesis != (r.Command.Type == TypeGenesis):
		return errors.New("a journal begins with its genesis and has no other")
	case isStart != (r.Command.Type == TypeTermStarted):
		return errors.New("a taken record must carry its type twice")
	case (isGenesis || isStart) && len(r.Events) != 1:
		return errors.New("genesis and taken records have one event")
	case isGenesis:
		if genesis.Journal != c.journal || genesis.Partition != c.partition {
			return fmt.Errorf("it is the genesis of %s/%d", genesis.Journal, genesis.Partition)
		}
		c.id = genesis.JournalID
	case isStart:
		if c.term != UnknownTerm && started.Term != c.term+1 {
			return fmt.Errorf("it opens term %d after term %d", started.Term, c.term)
		}
		c.term = started.Term
	}
	return nil
}

// Broken returns a *BrokenRecordError. sequence is that of the record, or -1. cause may be nil.
func (c *Chain) Broken(offset, sequence int64, reason string, cause error) error {
	return &BrokenRecordError{Journal: c.journal, Partition: c.partition, Offset: offset, Sequence: sequence,
		Reason: reason, Cause: cause}
}
