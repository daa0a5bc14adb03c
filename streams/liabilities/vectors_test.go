package liabilities_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/pack/packtest"
	"github.com/perpetua-exchange/perpetua/streams/liabilities"
)

const vectorsFile = "testdata/vectors.json"

type vectorCustomer struct {
	Code  string      `json:"code"`
	Value form.Amount `json:"value"`
}

// vectorTree is a tree with the proof of each customer.
type vectorTree struct {
	EpochKey  string           `json:"epoch_key"`
	Position  int64            `json:"position"`
	Record    string           `json:"record"`
	Customers []vectorCustomer `json:"customers"`
	Leaves    int64            `json:"leaves"`
	Total     form.Amount      `json:"total"`
	Root      form.Hash        `json:"root"`
	Proofs    []*form.Proof    `json:"proofs"`
}

// vectors returns trees with few customers and with many digits.
func vectors(t *testing.T) (out struct {
	Trees []vectorTree `json:"trees"`
}) {
	random := rand.New(rand.NewPCG(11, 12))
	for i, n := range []int{1, 2, 5, 12} {
		key, record := sha256.Sum256([]byte{byte(i)}), sha256.Sum256([]byte("record "+fmt.Sprint(i)))
		all := customers(random, n)
		if n == 5 {
			all[1].Value = form.Amount{Hi: 1 << 62, Lo: 5}
		}
		position := int64(4000 + i)
		v := vectorTree{EpochKey: hex.EncodeToString(key[:]), Position: position, Record: hex.EncodeToString(record[:])}
		tree, err := liabilities.Build(form.TreeKey(key, position, record), position, slices.Clone(all))
		if err != nil {
			t.Fatal(err)
		}
		statement := published(tree)
		statement.Position = position
		v.Leaves, v.Total, v.Root = tree.Leaves(), tree.Root().Sum, tree.Root().Hash
		for _, c := range all {
			v.Customers = append(v.Customers, vectorCustomer(c))
			p, _ := tree.Prove(statement, c.Code)
			if err := p.Verify(&statement); err != nil {
				t.Fatal(err)
			}
			v.Proofs = append(v.Proofs, p)
		}
		out.Trees = append(out.Trees, v)
	}
	return out
}

// TestVectors compares the vectors with those of earlier builds. PERPETUA_UPDATE_GOLDEN=1 writes them.
func TestVectors(t *testing.T) {
	now, err := json.Marshal(vectors(t), jsontext.WithIndent(" "))
	if err != nil {
		t.Fatal(err)
	}
	now = append(now, '\n')
	if os.Getenv(packtest.Update) != "" {
		if err := os.WriteFile(vectorsFile, now, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if then, err := os.ReadFile(vectorsFile); err != nil || !bytes.Equal(then, now) {
		t.Errorf("the form of the tree changed, so that recorded roots can no longer be computed (%v)", err)
	}
}

// TestPython has a program that shares no code with this one check the vectors.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no python3")
	}
	said, err := exec.CommandContext(t.Context(), python, "testdata/check.py", vectorsFile).CombinedOutput()
	if err != nil || !strings.Contains(string(said), "4 trees, 20 proofs") {
		t.Errorf("%v: %s", err, said)
	}
}

// verify reads a proof and checks it.
func verify(text []byte, statement *form.Published) error {
	p, err := form.ParseProof(text)
	if err != nil {
		return err
	}
	return p.Verify(statement)
}
