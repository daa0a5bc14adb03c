package transparency

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/streams/commitment"
)

// proofHeader is the first line of a proof.
const proofHeader = "c2sp.org/tlog-proof@v1"

// maxPath bounds the hashes of a proof of inclusion: one for each level of the largest tree.
const maxPath = 63

// Proof proves that an entry is in a log: the path from its leaf to the root of a checkpoint. Its text is a c2sp.org/tlog-proof.
type Proof struct {
	Index      int64 // of the entry
	Path       tlog.RecordProof
	Checkpoint []byte // a signed note
}

// String returns the text of the proof.
func (p *Proof) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nindex %d\n", proofHeader, p.Index)
	for _, h := range p.Path {
		b.WriteString(h.String() + "\n")
	}
	b.WriteString("\n")
	b.Write(p.Checkpoint)
	return b.String()
}

// ParseProof reads a proof and verifies nothing. Its errors name the line. Extra data is ignored: nothing authenticates it.
func ParseProof(text string) (*Proof, error) {
	head, checkpoint, found := strings.Cut(text, "\n\n")
	if !found {
		return nil, errors.New("the proof is cut off before its checkpoint")
	}
	lines := strings.Split(head, "\n")
	if lines[0] != proofHeader {
		return nil, fmt.Errorf("line 1: a proof begins with %s, not %.60q", proofHeader, lines[0])
	}
	at := 1
	if len(lines) > at && strings.HasPrefix(lines[at], "extra ") {
		at++
	}
	p := &Proof{Checkpoint: []byte(checkpoint)}
	if len(lines) == at {
		return nil, fmt.Errorf("line %d: the index is missing", at+1)
	}
	number, ok := strings.CutPrefix(lines[at], "index ")
	index, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || index < 0 || strconv.FormatInt(index, 10) != number {
		return nil, fmt.Errorf("line %d: %.60q is not an index", at+1, lines[at])
	}
	p.Index = index
	if hashes := lines[at+1:]; len(hashes) > maxPath {
		return nil, fmt.Errorf("the path has %d hashes, more than a tree has levels", len(hashes))
	}
	for i, line := range lines[at+1:] {
		b, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(b) != tlog.HashSize || strings.Contains(line, "\r") { // which the decoder skips
			return nil, fmt.Errorf("line %d: %.60q is not a hash", at+2+i, line)
		}
		p.Path = append(p.Path, tlog.Hash(b))
	}
	return p, nil
}

// ErrNotIncluded reports that a proof leads to another root than the checkpoint has.
var ErrNotIncluded = errors.New("the path of the proof does not lead to the root of the checkpoint")

// Verify verifies the checkpoint under a policy, and that it covers the entry.
func (p *Proof) Verify(policy *Policy, entry []byte) (*Opened, error) {
	o, err := policy.Open(p.Checkpoint)
	if err != nil {
		return nil, err
	}
	if p.Index >= o.Size {
		return nil, fmt.Errorf("the checkpoint covers %d records, and not record %d", o.Size, p.Index)
	}
	if err := tlog.CheckRecord(p.Path, o.Size, o.Root, p.Index, tlog.RecordHash(entry)); err != nil {
		return nil, ErrNotIncluded
	}
	return o, nil
}

// ParseEntry returns the record root of an entry.
func ParseEntry(entry []byte) (commitment.Hash, error) {
	if len(entry) != EntrySize || entry[0] != entryKind {
		return commitment.Hash{}, fmt.Errorf("an entry has %d bytes and begins with %d", EntrySize, entryKind)
	}
	return commitment.Hash(entry[1:]), nil
}
