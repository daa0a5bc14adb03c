package transparency

import (
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

// Open verifies a checkpoint under the policy. It returns ErrQuorum if only cosignatures are missing.
func (p *Policy) Open(signed []byte) (*Opened, error) {
	o, err := p.open(signed)
	if err == nil && !o.Quorum {
		err = ErrQuorum
	}
	return o, err
}

// OpenSigned is Open for a checkpoint that witnesses need not have cosigned. Cosignatures that it has must be valid.
func (p *Policy) OpenSigned(signed []byte) (*Opened, error) { return p.open(signed) }

func (p *Policy) open(signed []byte) (*Opened, error) {
	verifiers := append([]note.Verifier(nil), p.Logs...)
	for _, w := range p.Witnesses {
		verifiers = append(verifiers, w.Key)
	}
	n, err := note.Open(signed, note.VerifierList(verifiers...))
	if err != nil {
		return nil, fmt.Errorf("the checkpoint's signatures: %w", err)
	}
	o := &Opened{Text: n.Text}
	for _, s := range n.Sigs {
		p.count(o, s)
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

// count notes a valid signature.
func (p *Policy) count(o *Opened, s note.Signature) {
	for _, v := range p.Logs {
		if v.Name() == s.Name && v.KeyHash() == s.Hash {
			o.Origin = s.Name
			return
		}
	}
	for _, w := range p.Witnesses {
		if w.Key.Name() == s.Name && w.Key.KeyHash() == s.Hash {
			o.Cosigned = append(o.Cosigned, Cosignature{w.Name, cosignedAt(s)})
		}
	}
}

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
	return size, root, nil
}
