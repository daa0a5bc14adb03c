package snapshot

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// magic is the first line of a snapshot file. The second line is the header.
const magic = "perpetua snapshot 1\n"

// Header describes a snapshot. It is a line of JSON, readable as text.
type Header struct {
	Journal   string          `json:"journal"`
	Partition int32           `json:"partition"`
	JournalID scalar.ID       `json:"journal_id"`
	Position  record.Position `json:"position"`
	Time      scalar.Time     `json:"time"` // time of the record at the position
	Term      int64           `json:"term"`
	URL       string          `json:"url"` // URL of the node that took the term
	Rules     int             `json:"rules"`
	Codec     int             `json:"codec"`
	Made      time.Time       `json:"made"`
	Node      string          `json:"node"`
	Anchors   int             `json:"anchors"`
	State     int             `json:"state_bytes"`
}

// anchorSize is the size of an anchor in a file, in bytes.
const anchorSize = 8 + 8 + 32

// appendFile returns the content of a file: the header, the anchors, the state, and an HMAC-SHA-256 of everything
// before, so that only a holder of the key can create or change a snapshot.
func appendFile(key []byte, h Header, anchors []record.Position, state []byte) ([]byte, error) {
	h.Anchors, h.State = len(anchors), len(state)
	line, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	b := make([]byte, 0, len(magic)+len(line)+1+len(anchors)*anchorSize+len(state)+sha256.Size)
	b = append(b, magic...)
	b = append(b, line...)
	b = append(b, '\n')
	for _, p := range anchors {
		b = binary.BigEndian.AppendUint64(b, uint64(p.Sequence))
		b = binary.BigEndian.AppendUint64(b, uint64(p.Offset))
		b = append(b, p.Hash[:]...)
	}
	b = append(b, state...)
	return append(b, seal.MAC(key, b)...), nil
}

var (
	errDamaged = errors.New("it is cut off, damaged or not made by this venue")
	errForm    = errors.New("it is not in the form of a snapshot")
)

// parseFile decodes the result of appendFile. It verifies the HMAC before it decodes anything. The state is a part of
// b.
func parseFile(key, b []byte) (h Header, anchors []record.Position, state []byte, err error) {
	if len(b) < sha256.Size {
		return h, nil, nil, errDamaged
	}
	b, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if !hmac.Equal(sum, seal.MAC(key, b)) {
		return h, nil, nil, errDamaged
	}
	rest, ok := bytes.CutPrefix(b, []byte(magic))
	line, rest, more := bytes.Cut(rest, []byte("\n"))
	if !ok || !more {
		return h, nil, nil, errForm
	}
	if err := json.Unmarshal(line, &h, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false)); err != nil {
		return h, nil, nil, fmt.Errorf("%w: %w", errForm, err)
	}
	if h.Anchors < 0 || h.State < 0 || h.Anchors > len(rest)/anchorSize || len(rest) != h.Anchors*anchorSize+h.State {
		return h, nil, nil, errForm
	}
	anchors = make([]record.Position, h.Anchors)
	for i := range anchors {
		p := &anchors[i]
		p.Sequence, p.Offset = int64(binary.BigEndian.Uint64(rest)), int64(binary.BigEndian.Uint64(rest[8:]))
		copy(p.Hash[:], rest[16:])
		rest = rest[anchorSize:]
		if p.Sequence < 0 || p.Offset < 0 || p.Sequence > h.Position.Sequence || i > 0 && p.Sequence <= anchors[i-1].Sequence {
			return h, nil, nil, errForm
		}
	}
	return h, anchors, rest, nil
}

// maxAnchors is the maximum number of anchors in a file.
const maxAnchors = 1 << 16

// thin drops anchors until at most maxAnchors are left. It keeps those with sequences that are multiples of a power of
// two, 2048 or more.
func thin(anchors []record.Position) []record.Position {
	for every := int64(2048); len(anchors) > maxAnchors; every *= 2 {
		thinned := make([]record.Position, 0, len(anchors)/2+1)
		for _, p := range anchors {
			if p.Sequence%every == 0 {
				thinned = append(thinned, p)
			}
		}
		anchors = thinned
	}
	return anchors
}

// name is the name of a snapshot in the folder of its partition, without the seal that follows. It holds all data that
// an owner needs to verify the snapshot's position in the log.
type name struct {
	Position record.Position
	Codec    int
}

// String returns the name in the bucket, without its seal. The order of names is the order of sequences.
func (n name) String() string {
	return fmt.Sprintf("%020d-%d-%s.%d", n.Position.Sequence, n.Position.Offset, n.Position.Hash, n.Codec)
}

// sealed appends a seal to the key of a blob: its HMAC, truncated to 128 bits. An owner refuses to start if the log
// does not hold the position in a name, so only the venue must be able to create names.
func sealed(key []byte, blob string) string {
	return blob + "." + hex.EncodeToString(seal.MAC(key, []byte(blob))[:16])
}

// isSealed reports whether the key of a blob has a valid seal, and returns the key without it.
func isSealed(key []byte, blob string) (plain string, ok bool) {
	dot := strings.LastIndexByte(blob, '.')
	if dot < 0 {
		return blob, false
	}
	return blob[:dot], hmac.Equal([]byte(sealed(key, blob[:dot])), []byte(blob))
}

// parseName parses the result of String and accepts no other form.
func parseName(s string) (n name, ok bool) {
	body, codec, dotted := strings.Cut(s, ".")
	parts := strings.Split(body, "-")
	if !dotted || len(parts) != 3 {
		return n, false
	}
	var err [4]error
	n.Position.Sequence, err[0] = strconv.ParseInt(parts[0], 10, 64)
	n.Position.Offset, err[1] = strconv.ParseInt(parts[1], 10, 64)
	n.Position.Hash, err[2] = record.ParseHash(parts[2])
	n.Codec, err[3] = strconv.Atoi(codec)
	return n, errors.Join(err[:]...) == nil && n.String() == s && n.Position.Sequence >= 0 && n.Position.Offset >= 0
}
