package verify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// history follows the chain of one partition and explains every message that readers skip. Readers need no explanation, since
// they compare the log with positions that they have read before.
//
// The first record of an owner that lost a race names the hash of an earlier record of the log, and its other records name each
// other. So a record of the journal that names a hash which no earlier message has was changed itself, or the one before it was
// changed, is missing, or comes later. That is a Difference.
type history struct {
	journal string
	chain   *record.Chain
	before  record.Position          // of the record before the first of valid
	valid   []uint64                 // the first 8 bytes of the hash of each valid record, by sequence
	skipped map[record.Hash]struct{} // the hashes of this journal's records that readers skip
	offset  int64                    // of the last message
	report  *Report

	// suspect is a record that names an unknown hash. The next record shows whether it or the one before was changed.
	suspect *suspect
}

type suspect struct {
	sequence, offset int64
	hash             record.Hash
}

func newHistory(rules decide.Rules, base *record.Base, report *Report) *history {
	h := &history{journal: rules.Journal(), chain: record.NewChain(rules, 0, record.Before), before: record.Before,
		skipped: make(map[record.Hash]struct{}), offset: -1, report: report}
	if base != nil {
		h.chain.StartAt(*base)
		h.before = base.Before()
		report.First = base.Sequence
	}
	return h
}

// admit takes the next message and its decoded value. It returns false if readers skip the message.
func (h *history) admit(m *Message, d record.Decoded) (record.Entry, bool, *Difference) {
	if m.Offset <= h.offset {
		return record.Entry{}, false, h.wrong(CheckSource, m.Offset, fmt.Sprintf("the offset %d comes after %d", m.Offset, h.offset))
	}
	h.offset = m.Offset
	if h.suspect != nil {
		return record.Entry{}, false, h.judge(m, d)
	}
	e, ok, err := h.chain.AdmitDecoded(m.Offset, m.Value, d)
	if err != nil {
		return e, false, h.wrong(CheckChain, m.Offset, reason(err))
	}
	if !ok {
		return e, false, h.skip(m, d)
	}
	h.valid = append(h.valid, begins(e.Position.Hash))
	return e, true, nil
}

// reason returns the text of an error of the chain, without the position of the record.
func reason(err error) string {
	var broken *record.BrokenRecordError
	if errors.As(err, &broken) {
		return broken.Reason
	}
	return err.Error()
}

// wrong returns a difference at the record after the last valid one.
func (h *history) wrong(c Check, offset int64, reason string) *Difference {
	return &Difference{Check: c, Sequence: h.chain.Position().Sequence + 1, Offset: offset, Reason: reason}
}

// skip explains a message that is not valid.
func (h *history) skip(m *Message, d record.Decoded) *Difference {
	r := d.Record
	if r == nil {
		var err error
		if r, err = record.DecodeHead(m.Value); err != nil {
			return h.foreign(m, "its value is not a record")
		}
	}
	if m.Kafka != nil {
		if err := journal.VerifyKafka(record.Entry{Record: r, Journal: h.chain.ID(), Value: m.Value}, h.journal, m.Kafka); err != nil {
			return h.foreign(m, err.Error())
		}
	}
	prev := record.Position{Sequence: r.Sequence - 1, Hash: r.Prev}
	switch {
	case !h.holds(prev):
		h.suspect = &suspect{r.Sequence, m.Offset, d.Hash}
		return nil
	case r.Sequence <= h.before.Sequence:
		h.report.Before.add(m.Offset)
	case h.holds(record.Position{Sequence: r.Sequence, Hash: d.Hash}):
		h.report.Repeated.add(m.Offset)
	default:
		h.report.Lost.add(m.Offset)
	}
	h.skipped[d.Hash] = struct{}{}
	return nil
}

// foreign counts a message that is not a record of this journal. If its headers name the journal, it was one and is damaged.
func (h *history) foreign(m *Message, reason string) *Difference {
	if m.Kafka != nil {
		for _, header := range m.Kafka.Headers {
			id, sequence, cut := strings.Cut(string(header.Value), "/")
			if n, err := strconv.ParseInt(sequence, 10, 64); header.Key == "ce_id" && cut && err == nil && id == h.chain.ID().String() && h.chain.ID() != (scalar.ID{}) {
				return &Difference{Check: CheckChain, Sequence: min(n, h.chain.Position().Sequence+1), Offset: m.Offset, Reason: reason}
			}
		}
	}
	h.report.Foreign.add(m.Offset)
	return nil
}

// judge says by the next message whether the suspect was changed, or the record before it.
func (h *history) judge(m *Message, d record.Decoded) *Difference {
	r := d.Record
	if r == nil {
		r, _ = record.DecodeHead(m.Value)
	}
	if r != nil && r.Sequence == h.suspect.sequence+1 && r.Prev != h.suspect.hash {
		return &Difference{Check: CheckChain, Sequence: h.suspect.sequence, Offset: h.suspect.offset,
			Reason: "it does not continue the chain, and the next record does not continue it"}
	}
	return h.end()
}

// end returns a difference if the last message was a suspect, or no message is the first record.
func (h *history) end() *Difference {
	if h.suspect == nil {
		if n := h.report.Foreign.Messages; len(h.valid) == 0 && n > 0 {
			return h.wrong(CheckChain, h.report.Foreign.First, "the log does not begin with this record")
		}
		return nil
	}
	return &Difference{Check: CheckChain, Sequence: h.suspect.sequence - 1, Offset: -1, Reason: fmt.Sprintf(
		"the record is missing or was changed: record %d at offset %d names another hash for it", h.suspect.sequence, h.suspect.offset)}
}

// holds reports whether a record with the position was seen, valid or not.
func (h *history) holds(p record.Position) bool {
	if _, ok := h.skipped[p.Hash]; ok || p.Sequence < h.before.Sequence { // what is before a base is not known here
		return true
	}
	if p.Sequence == h.before.Sequence {
		return p.Hash == h.before.Hash
	}
	n := p.Sequence - h.before.Sequence - 1
	return n < int64(len(h.valid)) && h.valid[n] == begins(p.Hash)
}

func begins(h record.Hash) uint64 { return binary.BigEndian.Uint64(h[:]) }
