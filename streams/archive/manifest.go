package archive

import (
	"bytes"
	"crypto/hmac"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// Manifest describes a range of valid records, and names the object that holds them. Offsets are those of the topic that was
// archived.
type Manifest struct {
	Range       int64       `json:"range"`        // number of the range: First div RangeRecords
	Object      string      `json:"object"`       // key of the object
	Hash        record.Hash `json:"hash"`         // SHA-256 of the object
	Bytes       int64       `json:"bytes"`        // of the object
	First       int64       `json:"first"`        // sequence of the first valid record
	Start       record.Hash `json:"start"`        // hash of the record before First
	FirstOffset int64       `json:"first_offset"` // of the first record, which readers may skip
	LastOffset  int64       `json:"last_offset"`  // of the last record; of a sealed range it is valid
	LastTime    scalar.Time `json:"last_time"`    // time of the last valid record
	Records     int64       `json:"records"`      // valid ones
	Skipped     int64       `json:"skipped"`      // records that readers skip
	Values      int64       `json:"values"`       // bytes of the values of all records
	Content     record.Hash `json:"content"`      // hash of all records, however they are stored
	Previous    record.Hash `json:"previous"`     // SHA-256 of the manifest before; zero for the first
	Base        record.Base `json:"base"`         // of the log that goes on after this range
}

const (
	manifestMagic = "perpetua manifest 1\n"
	tailMagic     = "perpetua tail 1\n"
)

// same reports whether two manifests stand for the same records after the same manifests. Their objects may be compressed in
// other ways.
func (m *Manifest) same(n *Manifest) bool {
	a, b := *m, *n
	a.Object, a.Hash, a.Bytes = b.Object, b.Hash, b.Bytes
	return a == b
}

// encode returns the blob of a manifest: a line with the version, a line of JSON, and a line with the MAC of both in hex.
func (m *Manifest) encode(key []byte, magic string) ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	b = append(append([]byte(magic), b...), '\n')
	return append(hex.AppendEncode(b, seal.MAC(key, b)), '\n'), nil
}

var errMAC = errors.New("its MAC is wrong: it was changed, or made with another master key")

// parseManifest decodes the blob of a manifest. It verifies the MAC before it decodes anything.
func parseManifest(blob string, key []byte, magic string, b []byte) (*Manifest, error) {
	wrong := func(d Damage, err error) error { return &Error{Key: blob, Sequence: -1, Damage: d, Err: err} }
	if !bytes.HasPrefix(b, []byte(magic)) {
		kind, known := magic[:len(magic)-2], []byte(nil)
		if line, _, ok := bytes.Cut(b, []byte("\n")); ok {
			known = line
		}
		switch {
		case bytes.HasPrefix(known, []byte(kind)):
			return nil, wrong(Version, fmt.Errorf("it begins with %q", known))
		case bytes.HasPrefix([]byte(magic), b):
			return nil, wrong(Cut, nil)
		}
		return nil, wrong(Damaged, errForm)
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	if len(lines) < 4 || len(lines[2]) != 65 {
		return nil, wrong(Cut, nil)
	}
	if len(lines) > 4 || len(lines[3]) > 0 {
		return nil, wrong(Damaged, errForm)
	}
	signed := b[:len(lines[0])+len(lines[1])]
	if !hmac.Equal(lines[2][:64], hex.AppendEncode(nil, seal.MAC(key, signed))) {
		return nil, wrong(Damaged, errMAC)
	}
	m := new(Manifest)
	if err := json.Unmarshal(lines[1], m, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false)); err != nil {
		return nil, wrong(Damaged, err)
	}
	if err := m.Base.Validate(); err != nil {
		return nil, wrong(Damaged, err)
	}
	if again, err := m.encode(key, magic); err != nil || !bytes.Equal(again, b) {
		return nil, wrong(Damaged, errForm)
	}
	return m, nil
}

// follows returns an error if m is not the manifest of the range after that of before, which is nil for the first range.
func (m *Manifest) follows(c *Config, key string, before *Manifest, previous record.Hash, tail bool) error {
	wrong := func(d Damage, format string, args ...any) error {
		at := int64(-1)
		if d == Forked {
			at = m.First
		}
		return &Error{Key: key, Sequence: at, Damage: d, Err: fmt.Errorf(format, args...)}
	}
	if m.Base.Journal != c.Journal || m.Base.Partition != c.Partition {
		return wrong(Foreign, "it is of %s/%d", m.Base.Journal, m.Base.Partition)
	}
	number, start, offset, skipped := int64(0), record.Hash{}, int64(-1), m.Records == 0
	if before != nil {
		number, start, offset = before.Range+1, before.Base.Prev, before.LastOffset
		if m.Base.JournalID != before.Base.JournalID {
			return wrong(Foreign, "it is of the journal %v, and what is before it of %v", m.Base.JournalID, before.Base.JournalID)
		}
		if m.Base.Partitions != before.Base.Partitions || m.Base.Term < before.Base.Term {
			return wrong(Forked, "its base contradicts the one before")
		}
	}
	switch {
	case m.Range != number, m.First != number*c.rangeSize():
		return wrong(Forked, "it is that of range %d from record %d on", m.Range, m.First)
	case m.Start != start || skipped && m.Base.Prev != start:
		return wrong(Forked, "it begins after hash %v, and what is before it ends with %v", m.Start, start)
	case m.Previous != previous:
		return wrong(Forked, "it follows a manifest with hash %v, and that before it has hash %v", m.Previous, previous)
	case m.FirstOffset <= offset, m.LastOffset-m.FirstOffset < m.Records+m.Skipped-1:
		return wrong(Forked, "its offsets contradict those before it")
	case m.Base.Sequence != m.First+m.Records, m.Records > c.rangeSize(), m.Records < c.rangeSize() && !tail, m.Records < 0, m.Skipped < 0, m.Values < 0:
		return wrong(Damaged, "it has %d records", m.Records)
	}
	return nil
}
