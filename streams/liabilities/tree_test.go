package liabilities_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/streams/liabilities"
)

var treeKey = form.TreeKey([32]byte{7}, 4711, sha256.Sum256([]byte("a record")))

// customers returns n customers whose values have up to 64 bits, with codes of up to 32 bytes.
func customers(random *rand.Rand, n int) []liabilities.Customer {
	out := make([]liabilities.Customer, n)
	for i := range out {
		code := fmt.Sprintf("C-%d", i)
		if i%5 == 0 {
			code += strings.Repeat("x", form.CodeSize-len(code))
		}
		out[i] = liabilities.Customer{Code: code, Value: form.AmountOf(random.Uint64() >> random.IntN(64))}
		if i%7 == 0 {
			out[i].Value = form.Amount{}
		}
	}
	return out
}

// published returns a statement with the root of a tree.
func published(t *liabilities.Tree) form.Published {
	p := form.Published{Sequence: 4720, Timestamp: 1, Position: 4711, Totals: form.Totals{Asset: "USDC", Scale: 8, Leaves: t.Leaves(), Total: t.Root().Sum, Root: t.Root().Hash}}
	p.Deficits = p.Total // so that the sum is right for any total
	return p
}

// slowRoot computes the root from the definition, with every leaf in one list.
func slowRoot(key form.Hash, position int64, customers []liabilities.Customer) form.Node {
	type leaf struct {
		order uint64
		code  string
		part  int
		value form.Amount
	}
	var leaves []leaf
	for _, c := range customers {
		nonce := form.Nonce(key, c.Code)
		values, n := form.Split(nonce, c.Value)
		for part, order := range form.Order(nonce) {
			if part < n {
				leaves = append(leaves, leaf{order, c.Code, part, values[part]})
			}
		}
	}
	width := form.Width(int64(len(leaves)))
	for i := int64(0); int64(len(leaves)) < width; i++ {
		leaves = append(leaves, leaf{form.PaddingOrder(form.Nonce(key, ""), i), "", 0, form.Amount{}})
	}
	slices.SortFunc(leaves, func(a, b leaf) int {
		if a.order < b.order {
			return -1
		}
		return 1
	})
	var nodes []form.Node
	for i, l := range leaves {
		nodes = append(nodes, form.Leaf(form.SubNonce(form.Nonce(key, l.code), position, l.code), l.value, int64(i)))
	}
	for len(nodes) > 1 {
		var next []form.Node
		for i := 0; i < len(nodes); i += 2 {
			n, err := form.Parent(&nodes[i], &nodes[i+1])
			if err != nil {
				panic(err)
			}
			next = append(next, n)
		}
		nodes = next
	}
	return nodes[0]
}

// TestTrees builds trees of many sizes. Each has the root of the definition, whatever the order of the customers, and every
// customer's proof checks.
func TestTrees(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := 0; n < 300; n += 1 + n/3 {
		all := customers(random, n)
		tree, err := liabilities.Build(treeKey, 4711, slices.Clone(all))
		if err != nil {
			t.Fatal(err)
		}
		if want := slowRoot(treeKey, 4711, all); tree.Root() != want {
			t.Fatalf("%d customers have the root %v, not %v", n, tree.Root(), want)
		}
		random.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
		again, err := liabilities.Build(treeKey, 4711, slices.Clone(all))
		if err != nil || again.Root() != tree.Root() {
			t.Fatalf("another order gives another root (%v)", err)
		}
		statement := published(tree)
		for _, c := range all {
			p, known := tree.Prove(statement, c.Code)
			if !known || p.Value != c.Value {
				t.Fatalf("%s: %v %v", c.Code, known, p)
			}
			text, err := p.Encode()
			if err != nil {
				t.Fatal(err)
			}
			read, err := form.ParseProof(append(text, '\n'))
			if err != nil {
				t.Fatal(err)
			}
			if err := read.Verify(&statement); err != nil {
				t.Fatalf("%s of %d: %v", c.Code, n, err)
			}
		}
		if _, known := tree.Prove(statement, "nobody"); known {
			t.Error("nobody has leaves")
		}
	}
}

// TestOtherTrees: another key, position, or record gives another tree.
func TestOtherTrees(t *testing.T) {
	all := customers(rand.New(rand.NewPCG(3, 4)), 9)
	roots := make(map[form.Hash]bool)
	for _, epoch := range []byte{7, 8} {
		for _, position := range []int64{4711, 4712} {
			for _, record := range []string{"a record", "another"} {
				tree, err := liabilities.Build(form.TreeKey([32]byte{epoch}, position, sha256.Sum256([]byte(record))), position, slices.Clone(all))
				if err != nil {
					t.Fatal(err)
				}
				roots[tree.Root().Hash] = true
			}
		}
	}
	if len(roots) != 8 {
		t.Errorf("%d roots", len(roots))
	}
}

func TestTreesThatAreRefused(t *testing.T) {
	large := form.Amount{Hi: math.MaxUint64}
	for name, all := range map[string][]liabilities.Customer{
		"no code":       {{Code: ""}},
		"a long code":   {{Code: strings.Repeat("c", form.CodeSize+1)}},
		"a zero byte":   {{Code: "a\x00"}},
		"one code":      {{Code: "a"}, {Code: "b"}, {Code: "a"}},
		"the sum of 2":  {{Code: "a", Value: large}, {Code: "b", Value: large}},
		"the sum of 99": append(customers(rand.New(rand.NewPCG(5, 6)), 97), liabilities.Customer{Code: "a", Value: large}, liabilities.Customer{Code: "b", Value: large}),
	} {
		if _, err := liabilities.Build(treeKey, 1, all); err == nil {
			t.Errorf("%s has a tree", name)
		} else if strings.HasPrefix(name, "the sum") && !errors.Is(err, form.ErrOverflow) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTamperedProofs changes proofs byte by byte: by any other byte, without one, and with one more. None checks against the
// recorded statement.
func TestTamperedProofs(t *testing.T) {
	all := customers(rand.New(rand.NewPCG(7, 8)), 23)
	tree, err := liabilities.Build(treeKey, 4711, slices.Clone(all))
	if err != nil {
		t.Fatal(err)
	}
	statement := published(tree)
	p, _ := tree.Prove(statement, all[1].Code)
	text, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	tampered := func(t interface{ Fatalf(string, ...any) }, text []byte) {
		if p, err := form.ParseProof(text); err == nil && p.Verify(&statement) == nil {
			t.Fatalf("a tampered proof checks: %s", text)
		}
	}
	for at := range text { // the bytes that are most like numbers, hashes and JSON
		for _, other := range []byte(`0189AZaz+/=-," {[`) {
			if text[at] != other {
				changed := slices.Clone(text)
				changed[at] = other
				tampered(t, changed)
			}
		}
		tampered(t, slices.Delete(slices.Clone(text), at, at+1))
		tampered(t, text[:at])
	}
	rapid.Check(t, func(t *rapid.T) {
		changed := slices.Clone(text)
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		b := rapid.Byte().Draw(t, "byte")
		if rapid.Bool().Draw(t, "insert") {
			changed = slices.Insert(changed, at, b)
		} else {
			changed[at] = b
		}
		if !bytes.Equal(changed, text) {
			tampered(t, changed)
		}
	})
}

// leaveOut takes a part out of a proof, and out of its value.
func leaveOut(p *form.Proof, i int) {
	p.Parts = slices.Delete(slices.Clone(p.Parts), i, i+1)
	p.Value = form.Amount{}
	for _, part := range p.Parts {
		p.Value, _ = p.Value.Plus(part.Value)
	}
}

// TestPartsLeftOut takes each part out of the proof of each customer that has three or four. What is left leads to the root, but is not
// the customer's value.
func TestPartsLeftOut(t *testing.T) {
	all := customers(rand.New(rand.NewPCG(13, 14)), 60)
	tree, err := liabilities.Build(treeKey, 4711, slices.Clone(all))
	if err != nil {
		t.Fatal(err)
	}
	statement := published(tree)
	seen := 0
	for _, c := range all {
		whole, _ := tree.Prove(statement, c.Code)
		if len(whole.Parts) == form.MinParts {
			continue
		}
		for i := range whole.Parts {
			p := *whole
			leaveOut(&p, i)
			if err := p.Verify(&statement); err == nil || !strings.Contains(err.Error(), "parts") {
				t.Errorf("%s without part %d of %d, of the value %s: %v", c.Code, i, len(whole.Parts), c.Value, err)
			}
			seen++
		}
	}
	if seen < 60 {
		t.Errorf("only %d proofs with three or four parts", seen)
	}
}

// TestTamperedFields changes one member of a proof at a time, and expects an error that names the place.
func TestTamperedFields(t *testing.T) {
	all := customers(rand.New(rand.NewPCG(9, 10)), 23)
	tree, err := liabilities.Build(treeKey, 4711, slices.Clone(all))
	if err != nil {
		t.Fatal(err)
	}
	statement := published(tree)
	max := form.Amount{Hi: math.MaxUint64, Lo: math.MaxUint64}
	for _, tt := range []struct {
		name, place string
		change      func(*form.Proof)
	}{
		{"another customer", "parts[0].path", func(p *form.Proof) { p.CustomerCode = "C-2" }},
		{"no customer", "customer_code", func(p *form.Proof) { p.CustomerCode = "" }},
		{"a long customer", "customer_code", func(p *form.Proof) { p.CustomerCode = strings.Repeat("c", 33) }},
		{"a customer with a zero byte", "customer_code", func(p *form.Proof) { p.CustomerCode += "\x00" }},
		{"another nonce", "parts[0].path", func(p *form.Proof) { p.Nonce[31]++ }},
		{"another value", "value: it is", func(p *form.Proof) { p.Value.Lo++ }},
		{"a part of another value", "parts[1].path", func(p *form.Proof) { p.Parts[1].Value.Lo++ }},
		{"a part that overflows", "parts[1].value", func(p *form.Proof) { p.Parts[1].Value = max }},
		{"another leaf", "parts[0].path", func(p *form.Proof) { p.Parts[0].Index ^= 1 }},
		{"a leaf below 0", "parts[0].index", func(p *form.Proof) { p.Parts[0].Index = -1 }},
		{"a leaf beyond", "parts[1].index", func(p *form.Proof) { p.Parts[1].Index = p.Recorded.Leaves }},
		{"one leaf twice", "parts[1].index", func(p *form.Proof) { p.Parts[1] = p.Parts[0] }},
		{"a part too few", "parts: there", func(p *form.Proof) { p.Parts = p.Parts[:1] }},
		{"a part left out of the value", "parts", func(p *form.Proof) { leaveOut(p, len(p.Parts)-1) }},
		{"no part", "parts: there", func(p *form.Proof) { p.Parts = nil }},
		{"a shorter path", "parts[0].path", func(p *form.Proof) { p.Parts[0].Path = p.Parts[0].Path[1:] }},
		{"another step", "parts[0].path", func(p *form.Proof) { p.Parts[0].Path[2].Hash[0]++ }},
		{"a wrong sum", "parts[0].path: it leads to the sum", func(p *form.Proof) { p.Parts[0].Path[2].Sum.Lo++ }},
		{"a sum that overflows", "parts[0].path[3]", func(p *form.Proof) { p.Parts[0].Path[2].Sum, p.Parts[0].Path[3].Sum = form.Amount{Lo: 1}, max }},
	} {
		p, _ := tree.Prove(statement, all[1].Code)
		if len(p.Parts) < 2 || p.Verify(&statement) != nil {
			t.Fatalf("%s: %+v", tt.name, p)
		}
		tt.change(p)
		if err := p.Verify(&statement); err == nil || !strings.Contains(err.Error(), tt.place) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	for name, change := range map[string]func(*form.Published){
		"sequence":    func(s *form.Published) { s.Sequence++ },
		"timestamp":   func(s *form.Published) { s.Timestamp++ },
		"position":    func(s *form.Published) { s.Position++ },
		"asset":       func(s *form.Published) { s.Asset = "USD" },
		"scale":       func(s *form.Published) { s.Scale++ },
		"leaves":      func(s *form.Published) { s.Leaves *= 2 },
		"total":       func(s *form.Published) { s.Total.Lo++; s.Deficits.Lo++ },
		"deficits":    func(s *form.Published) { s.Deficits.Lo++ },
		"insurance":   func(s *form.Published) { s.Venue.Insurance++ },
		"net paid in": func(s *form.Published) { s.NetPaidIn++ },
		"root":        func(s *form.Published) { s.Root[0]++ },
	} {
		p, _ := tree.Prove(statement, all[1].Code)
		change(&p.Recorded)
		if err := p.Verify(&statement); err == nil || !strings.Contains(err.Error(), "recorded") {
			t.Errorf("another %s: %v", name, err)
		}
		switch name { // what the tree itself is bound to
		case "position", "leaves", "total", "deficits", "insurance", "net paid in", "root":
			own := p.Recorded
			if err := p.Verify(&own); err == nil {
				t.Errorf("another %s, also in the statement, checks", name)
			}
		}
	}
}

// FuzzParseProof: whatever is read, is read as what it encodes to.
func FuzzParseProof(f *testing.F) {
	tree, err := liabilities.Build(treeKey, 4711, customers(rand.New(rand.NewPCG(1, 1)), 3))
	if err != nil {
		f.Fatal(err)
	}
	p, _ := tree.Prove(published(tree), "C-1")
	text, err := p.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":"perpetua-liabilities-v1","parts":[{"path":[["1","2","3"]]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := form.ParseProof(text)
		if err != nil {
			return
		}
		if again, err := p.Encode(); err != nil || !bytes.Equal(again, bytes.TrimSuffix(text, []byte("\n"))) {
			t.Errorf("%s is read as %s (%v)", text, again, err)
		}
		_ = p.Verify(&p.Recorded)
	})
}
