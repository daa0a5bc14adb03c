package transparency

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Opened is a checkpoint with valid signatures.
type Opened struct {
	Origin   string
	Size     int64
	Root     tlog.Hash
	Text     string        // what was signed
	Cosigned []Cosignature // of the policy's witnesses
	Quorum   bool          // they meet the policy's quorum
	// Retired is when the key retired if only a retired one has signed. A quorum cosigned the checkpoint before that.
	Retired time.Time
}

// Tree returns size and root in the form of package tlog.
func (o *Opened) Tree() tlog.Tree { return tlog.Tree{N: o.Size, Hash: o.Root} }

// Cosignature is a valid cosignature.
type Cosignature struct {
	Witness string // its name in the policy
	Time    time.Time
}

// ErrQuorum reports that witnesses that the policy asks for have not cosigned.
var ErrQuorum = errors.New("the checkpoint lacks cosignatures of witnesses that the policy asks for")

// ErrRetired reports that no key in force has signed a checkpoint, and that no quorum had cosigned it when its key retired.
var ErrRetired = errors.New("only a retired key has signed the checkpoint, and the cosignatures from before it retired do not meet a quorum")

// Open verifies a checkpoint under the policy. It returns ErrQuorum if only cosignatures are missing, and ErrRetired if a retired key
// has signed too late.
func (p *Policy) Open(signed []byte) (*Opened, error) {
	o, err := p.OpenSigned(signed)
	if err == nil && !o.Quorum {
		err = ErrQuorum
	}
	return o, err
}

// OpenSigned is Open for a checkpoint that witnesses need not have cosigned. Cosignatures that it has must be valid.
// For a retired key it returns ErrRetired, as Open does.
func (p *Policy) OpenSigned(signed []byte) (*Opened, error) {
	o, err := p.OpenRemembered(signed)
	if err == nil && !o.Retired.IsZero() && !p.cosignedBefore(o) {
		return nil, ErrRetired
	}
	return o, err
}

// cosignedBefore reports whether a quorum with witnesses cosigned a checkpoint before its key retired.
func (p *Policy) cosignedBefore(o *Opened) bool {
	var names []string
	for _, c := range o.Cosigned {
		if c.Time.Before(o.Retired) {
			names = append(names, c.Witness)
		}
	}
	return p.NeedsWitnesses() && p.satisfied(names)
}

// OpenRemembered is OpenSigned for a checkpoint that the caller verified before and has remembered: its key may have retired since.
func (p *Policy) OpenRemembered(signed []byte) (*Opened, error) {
	verifiers := make([]note.Verifier, 0, len(p.Logs)+len(p.Witnesses))
	for _, l := range p.Logs {
		verifiers = append(verifiers, l)
	}
	for _, w := range p.Witnesses {
		verifiers = append(verifiers, w.Key)
	}
	n, err := note.Open(signed, note.VerifierList(verifiers...))
	if err != nil {
		return nil, fmt.Errorf("the checkpoint's signatures: %w%s", err, signers(err))
	}
	o, inForce := &Opened{Text: n.Text}, false
	for _, s := range n.Sigs {
		if b, err := base64.StdEncoding.Strict().DecodeString(s.Base64); err != nil || base64.StdEncoding.EncodeToString(b) != s.Base64 {
			return nil, fmt.Errorf("the checkpoint's signatures: that of %s is not base64 in its usual form", s.Name)
		}
		inForce = p.count(o, s) || inForce
	}
	if inForce {
		o.Retired = time.Time{}
	}
	if o.Origin == "" {
		return nil, errors.New("the checkpoint is not signed by a key of the log")
	}
	if o.Size, o.Root, err = parseCheckpoint(o.Origin, n.Text); err != nil {
		return nil, err
	}
	names := make([]string, len(o.Cosigned))
	for i, c := range o.Cosigned {
		names[i] = c.Witness
	}
	o.Quorum = p.satisfied(names)
	return o, nil
}

// mostSigners is the number of keys that an error names at most.
const mostSigners = 5

// signers names the keys that claim to have signed a note, if none of them could be verified. Names may have any length.
func signers(err error) string {
	var unverified *note.UnverifiedNoteError
	if !errors.As(err, &unverified) {
		return ""
	}
	sigs := unverified.Note.UnverifiedSigs
	names := make([]string, min(len(sigs), mostSigners))
	for i := range names {
		names[i] = fmt.Sprintf("%.200s+%08x", sigs[i].Name, sigs[i].Hash)
	}
	if more := len(sigs) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return ": they are of other keys, " + strings.Join(names, ", ")
}

// count notes a valid signature. It returns true for one by a key of the log that is in force.
func (p *Policy) count(o *Opened, s note.Signature) bool {
	for _, l := range p.Logs {
		if l.Name() != s.Name || l.KeyHash() != s.Hash {
			continue
		}
		o.Origin = s.Name
		if l.Until.IsZero() || p.now().Before(l.Until) {
			return true
		}
		if l.Until.After(o.Retired) {
			o.Retired = l.Until
		}
		return false
	}
	for _, w := range p.Witnesses {
		if w.Key.Name() == s.Name && w.Key.KeyHash() == s.Hash {
			o.Cosigned = append(o.Cosigned, Cosignature{w.Name, cosignedAt(s)})
		}
	}
	return false
}

// maxSize bounds the size of a log: a sequence is a number in JSON, which is exact up to here. Package tlog does not end for trees of
// more than 2⁶² leaves.
const maxSize = 1 << 53

// parseCheckpoint returns size and root of a checkpoint with a text.
func parseCheckpoint(origin, text string) (size int64, root tlog.Hash, err error) {
	lines := strings.SplitN(text, "\n", 4)
	if len(lines) == 4 {
		if size, err = strconv.ParseInt(lines[1], 10, 64); err == nil {
			root, err = tlog.ParseHash(lines[2])
		}
	}
	// The text is rebuilt, so that a number or a hash has one form. Lines may follow.
	if len(lines) < 4 || err != nil || size < 0 || !strings.HasPrefix(text, checkpointText(origin, size, root)) {
		return 0, tlog.Hash{}, fmt.Errorf("transparency: the note is not a checkpoint of %s", origin)
	}
	if size > maxSize {
		return 0, tlog.Hash{}, fmt.Errorf("transparency: the checkpoint covers %d records, and a log has at most %d", size, int64(maxSize))
	}
	if size == 0 && root != sha256.Sum256(nil) {
		return 0, tlog.Hash{}, errors.New("transparency: the checkpoint covers no record, and has another root than the empty tree")
	}
	return size, root, nil
}
