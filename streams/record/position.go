package record

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

// Hash is the SHA-256 of a record's value. Its text form is lower-case hex.
type Hash [32]byte

var errHash = errors.New("not a hash of 64 lower-case hex digits")

// ParseHash reads the text form of a hash.
func ParseHash(s string) (Hash, error) {
	var h Hash
	return h, h.UnmarshalText([]byte(s))
}

// String returns the hash in lower-case hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// AppendText appends the hex form. It implements encoding.TextAppender.
func (h Hash) AppendText(b []byte) ([]byte, error) { return hex.AppendEncode(b, h[:]), nil }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return h.AppendText(nil) }

// UnmarshalText reads exactly 64 lower-case hex digits, so that a hash has only one text form.
func (h *Hash) UnmarshalText(b []byte) error {
	if !fastjson.Hex(h[:], b) {
		return errHash
	}
	return nil
}

// Position names the last valid record that a reader applied; reading continues after it. Sequence and Hash identify the
// record. Offset is where the record was last seen, as a hint: in a log that was copied or restored it is elsewhere.
type Position struct {
	_ [0]func() // prevents ==, which would compare offsets; use Equal

	Offset   int64 `json:"offset"`
	Sequence int64 `json:"sequence"`
	Hash     Hash  `json:"hash"`
}

// Before is the position before the genesis, at which a reader without a checkpoint starts.
var Before = Position{Offset: -1, Sequence: -1}

// Equal reports whether p and q name the same record. It ignores the offsets.
func (p Position) Equal(q Position) bool { return p.Sequence == q.Sequence && p.Hash == q.Hash }

// IsBefore reports whether p is the position before the genesis.
func (p Position) IsBefore() bool { return p.Equal(Before) }

// String returns the sequence, the offset and the first digits of the hash.
func (p Position) String() string {
	return fmt.Sprintf("sequence %d at offset %d with hash %s", p.Sequence, p.Offset, p.Hash.String()[:16])
}

// LogPosition is a position in the form that clients get: a record by journal, partition and sequence. Its text form is
// "trading/0@123".
type LogPosition struct {
	Journal   string
	Partition int32
	Sequence  int64
}

// String returns the text form.
func (p LogPosition) String() string {
	return p.Journal + "/" + strconv.Itoa(int(p.Partition)) + "@" + strconv.FormatInt(p.Sequence, 10)
}

// MarshalText implements encoding.TextMarshaler.
func (p LogPosition) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the text form.
func (p *LogPosition) UnmarshalText(b []byte) error {
	v, err := ParseLogPosition(string(b))
	if err != nil {
		return err
	}
	*p = v
	return nil
}

// ParseLogPosition reads the text form. Numbers must be in their shortest form. A sequence of -1 is the position before the
// genesis.
func ParseLogPosition(s string) (LogPosition, error) {
	bad := fmt.Errorf("%q is not a log position like trading/0@123", s)
	name, rest, ok := strings.Cut(s, "/")
	if !ok || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") != "" {
		return LogPosition{}, bad
	}
	partition, sequence, ok := strings.Cut(rest, "@")
	if !ok {
		return LogPosition{}, bad
	}
	p, err := strconv.ParseInt(partition, 10, 32)
	if err != nil || p < 0 || strconv.FormatInt(p, 10) != partition {
		return LogPosition{}, bad
	}
	n, err := strconv.ParseInt(sequence, 10, 64)
	if err != nil || n < -1 || strconv.FormatInt(n, 10) != sequence {
		return LogPosition{}, bad
	}
	return LogPosition{Journal: name, Partition: int32(p), Sequence: n}, nil
}
