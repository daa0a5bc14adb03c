package liabilities

import (
	"bytes"
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Format names the form of a Proof.
const Format = "perpetua-liabilities-v1"

// Proof shows that a customer's money is part of the total of a statement.
type Proof struct {
	Format       string    `json:"format"`
	Recorded     Published `json:"recorded"`
	CustomerCode string    `json:"customer_code"`
	Nonce        Hash      `json:"nonce"`
	Value        Amount    `json:"value"` // what the venue owes the customer: 0 for a negative balance
	Parts        []Part    `json:"parts"`
}

// Part is one leaf of the customer, and the way from it to the root.
type Part struct {
	Index int64  `json:"index"` // of the leaf, from 0
	Value Amount `json:"value"`
	Path  []Step `json:"path"` // the sibling of the leaf, that of the node above, and so on
}

// Step is the sibling of a node on the path to the root. In JSON it is an array of the sum and the hash.
type Step Node

// MarshalJSON implements json.Marshaler.
func (s Step) MarshalJSON() ([]byte, error) {
	hash, _ := s.Hash.MarshalText()
	return fmt.Appendf(nil, `["%s","%s"]`, s.Sum, hash), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Step) UnmarshalJSON(text []byte) error {
	var pair []jsontext.Value
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("a step has a sum and a hash, not %d members", len(pair))
	}
	if err := json.Unmarshal(pair[0], &s.Sum); err != nil {
		return err
	}
	return json.Unmarshal(pair[1], &s.Hash)
}

// Encode returns the proof as JSON without insignificant space. ParseProof reads nothing else.
func (p *Proof) Encode() ([]byte, error) { return json.Marshal(p) }

// ParseProof reads a proof that Encode returned, and possibly a line feed after it. The errors name the member.
func ParseProof(text []byte) (*Proof, error) {
	text = bytes.TrimSuffix(text, []byte("\n"))
	p := new(Proof)
	if err := json.Unmarshal(text, p, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("liabilities: the proof can't be read: %w", err)
	}
	if p.Format != Format {
		return nil, fmt.Errorf("liabilities: format: it is %.50q, and this build knows %s", p.Format, Format)
	}
	again, err := p.Encode()
	if err != nil {
		return nil, err
	}
	for i := range again {
		if i >= len(text) || again[i] != text[i] {
			return nil, fmt.Errorf("liabilities: byte %d: the proof is not written as proofs are", i)
		}
	}
	if len(text) > len(again) {
		return nil, fmt.Errorf("liabilities: byte %d: something follows the proof", len(again))
	}
	return p, nil
}

// refused is an error with the path of a member.
func refused(path, format string, args ...any) error {
	return fmt.Errorf("liabilities: "+path+": "+format, args...)
}

// Verify returns nil if the statement recorded contains the customer's value. The statement must come from another source
// than the proof: from the journal, or from the venue's public list.
func (p *Proof) Verify(recorded *Published) error {
	if p.Recorded != *recorded {
		return refused("recorded", "record %d says something else", recorded.Sequence)
	}
	return p.verify()
}

// verify checks the proof against its own statement.
func (p *Proof) verify() error {
	if err := p.Recorded.Check(); err != nil {
		return refused("recorded", "%w", err)
	}
	if p.CustomerCode == "" || len(p.CustomerCode) > CodeSize || bytes.IndexByte([]byte(p.CustomerCode), 0) >= 0 {
		return refused("customer_code", "it has %d bytes", len(p.CustomerCode))
	}
	if n := len(p.Parts); n < MinParts || n > MaxParts {
		return refused("parts", "there are %d", n)
	}
	var value Amount
	var err error
	for i, part := range p.Parts {
		path := fmt.Sprintf("parts[%d]", i)
		if i > 0 && part.Index <= p.Parts[i-1].Index {
			return refused(path+".index", "leaf %d comes after leaf %d", part.Index, p.Parts[i-1].Index)
		}
		if value, err = value.Plus(part.Value); err != nil {
			return refused(path+".value", "%w", err)
		}
		if err := p.lead(path, &part); err != nil {
			return err
		}
	}
	if value != p.Value {
		return refused("value", "it is %s, and the parts sum to %s", p.Value, value)
	}
	return p.whole()
}

// whole returns an error unless the parts are those into which the nonce splits the value, in their order. Without this, a broker
// that hands on a proof could leave parts out and state a lower value.
func (p *Proof) whole() error {
	values, n := Split(p.Nonce, p.Value)
	if n != len(p.Parts) {
		return refused("parts", "there are %d, and the nonce splits the value into %d", len(p.Parts), n)
	}
	order := Order(p.Nonce)
	parts := []int{0, 1, 2, 3}[:n]
	slices.SortFunc(parts, func(a, b int) int { return cmp.Or(cmp.Compare(order[a], order[b]), cmp.Compare(a, b)) })
	for i, part := range parts {
		if p.Parts[i].Value != values[part] {
			return refused(fmt.Sprintf("parts[%d].value", i), "it is %s, and the nonce splits %s so that it is %s", p.Parts[i].Value, p.Value, values[part])
		}
	}
	return nil
}

// lead follows a part to the root.
func (p *Proof) lead(path string, part *Part) error {
	depth := bits.TrailingZeros64(uint64(p.Recorded.Leaves))
	if part.Index < 0 || part.Index >= p.Recorded.Leaves {
		return refused(path+".index", "there is no leaf %d of %d", part.Index, p.Recorded.Leaves)
	}
	if len(part.Path) != depth {
		return refused(path+".path", "it has %d steps, and the tree %d levels", len(part.Path), depth)
	}
	at := Leaf(SubNonce(p.Nonce, p.Recorded.Position, p.CustomerCode), part.Value, part.Index)
	for level := range part.Path {
		left, right := &at, (*Node)(&part.Path[level])
		if part.Index>>level&1 == 1 {
			left, right = right, left
		}
		above, err := Parent(left, right)
		if err != nil {
			return refused(fmt.Sprintf("%s.path[%d]", path, level), "%w", err)
		}
		at = above
	}
	if at.Sum != p.Recorded.Total {
		return refused(path+".path", "it leads to the sum %s, and the total is %s", at.Sum, p.Recorded.Total)
	}
	if at.Hash != p.Recorded.Root {
		return refused(path+".path", "it does not lead to the root: the nonce, the customer, the position, the value, or a step is another")
	}
	return nil
}
