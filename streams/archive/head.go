package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Head names the newest manifest of an archive. Its copies outside of the bucket tell an owner what was archived while the bucket
// is away.
type Head struct {
	Range      int64       `json:"range"`       // number of the last full range
	Manifest   record.Hash `json:"manifest"`    // SHA-256 of its manifest, which stands for all before it
	LastOffset int64       `json:"last_offset"` // of the last record, as in the manifest; a hint
	Base       record.Base `json:"base"`        // of a log that begins after the range
}

// Head returns the head of the archive that ends with a full range.
func (s *Sealed) Head() Head { return Head{s.Range, s.Signed, s.LastOffset, s.Base} }

// Head returns the head of the archive, or nil if it has no full range.
func (a *Archive) Head() *Head {
	if len(a.sealed) == 0 {
		return nil
	}
	h := a.sealed[len(a.sealed)-1].Head()
	return &h
}

// Position returns the position of the last archived record.
func (h *Head) Position() record.Position {
	p := h.Base.Before()
	p.Offset = h.LastOffset
	return p
}

// Validate returns an error if no archive can have this head.
func (h *Head) Validate() error {
	if err := h.Base.Validate(); err != nil {
		return err
	}
	if h.Range < 0 || h.LastOffset < 0 || h.Manifest == (record.Hash{}) {
		return errors.New("this is not the head of an archive")
	}
	return nil
}

// JSON returns the form of a copy in a file.
func (h *Head) JSON() []byte {
	text, err := json.Marshal(h)
	if err != nil { // only a string that is not UTF-8 can't be marshaled, and Validate refuses that
		panic(err)
	}
	return text
}

// ParseHead reads the form of JSON. It accepts exactly the bytes that JSON returns.
func ParseHead(text []byte) (*Head, error) {
	h := new(Head)
	if err := json.Unmarshal(text, h, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false)); err != nil {
		return nil, fmt.Errorf("this is not the head of an archive: %w", err)
	}
	if err := h.Validate(); err != nil {
		return nil, err
	}
	if string(h.JSON()) != string(text) {
		return nil, errors.New("this is not the head of an archive: its JSON is not in the canonical form")
	}
	return h, nil
}

// ErrContradiction says that two heads cannot be of the same archive.
var ErrContradiction = errors.New("archive: two heads contradict each other")

// Replaces reports whether h is newer than a copy that is kept, which may be nil. The error is an ErrContradiction.
func (h *Head) Replaces(stored *Head) (bool, error) {
	if stored == nil {
		return true, nil
	}
	why := stored.Base.Contradicts(h.Base)
	if why == "" && stored.Range == h.Range && stored.Manifest != h.Manifest {
		why = fmt.Sprintf("range %d has the manifests %v and %v", h.Range, stored.Manifest, h.Manifest)
	}
	if why != "" {
		return false, fmt.Errorf("%w: %s", ErrContradiction, why)
	}
	return h.Base.Sequence > stored.Base.Sequence, nil
}

// Heads keeps a copy of the head of each archive.
type Heads interface {
	// Head returns the copy, or nil if there is none.
	Head(ctx context.Context, journal string, partition int32) (*Head, error)
	// Keep stores a copy durably. It MUST NOT replace a newer one, and then returns nil. If the copy that is kept contradicts h,
	// the error is an ErrContradiction.
	Keep(ctx context.Context, h Head) error
	// String names the place for humans.
	String() string
}

// Known makes copies of heads sources of known positions: a log that lacks the last archived record has lost it, or was rewritten.
func Known(client *journal.Client, copies ...Heads) (all []journal.Known) {
	for _, c := range copies {
		all = append(all, known{c, client})
	}
	return all
}

// known implements journal.Known with one copy.
type known struct {
	Heads
	client *journal.Client
}

// Positions implements journal.Known. An old copy may be of a record before the base of the log. A log is only trimmed to the end of
// a range of the same archive, and each manifest names the one before. So the base vouches for the old copy.
func (k known) Positions(ctx context.Context, name string, partition int32) ([]record.Position, error) {
	h, err := k.Head(ctx, name, partition)
	if err != nil || h == nil {
		return nil, err
	}
	b, _, err := k.client.Base(ctx, name, partition)
	if err != nil {
		return nil, err
	}
	if b != nil && b.JournalID == h.Base.JournalID && h.Base.Sequence < b.Sequence {
		return nil, nil
	}
	return []record.Position{h.Position()}, nil
}
