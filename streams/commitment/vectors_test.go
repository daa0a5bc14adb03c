package commitment_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/pack/packtest"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
)

const vectorsFile = "testdata/vectors.json"

// vectors are roots and proofs for a fixed secret. Other implementations can be held against them.
type vectors struct {
	Secret    string   `json:"secret"` // in hex
	JournalID string   `json:"journal_id"`
	Records   []vector `json:"records"`
}

type vector struct {
	Journal  string          `json:"journal"`
	Sequence int64           `json:"sequence"`
	EpochKey string          `json:"epoch_key"` // in hex
	Value    string          `json:"value"`
	Root     commitment.Hash `json:"root"`
	Units    []vectorUnit    `json:"units"`
}

type vectorUnit struct {
	Bytes   string             `json:"bytes,omitempty"` // absent of the whole value
	Opening commitment.Opening `json:"opening"`
}

// TestVectors compares the roots of records with every golden event of the journals with those of earlier builds. A root never
// changes. PERPETUA_UPDATE_GOLDEN=1 adds records of new events, and keeps what is there.
func TestVectors(t *testing.T) {
	old, err := os.ReadFile(vectorsFile)
	update := os.Getenv(packtest.Update) != ""
	if err != nil && !update {
		t.Fatal(err)
	}
	var known vectors
	if err == nil {
		if err := json.Unmarshal(old, &known); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range known.Records {
		if got := vectorOf(t, r.Journal, r.Sequence, []byte(r.Value)); !equal(t, got, r) {
			t.Errorf("record %d of %s has the root %x, not %x, or other units or proofs", r.Sequence, r.Journal, got.Root, r.Root)
		}
	}
	for _, r := range goldenRecords(t) {
		if slices.ContainsFunc(known.Records, func(k vector) bool { return k.Journal == r.Journal && contents(k) == contents(r) }) {
			continue
		}
		if !update {
			t.Errorf("there is no vector of %s", r.Value)
			continue
		}
		known.Records = append(known.Records, vectorOf(t, r.Journal, r.Sequence, []byte(r.Value)))
	}
	if update {
		known.Secret, known.JournalID = hex.EncodeToString([]byte("a secret of exactly thirty-two b")), journalID.String()
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		if err := e.Encode(known); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(vectorsFile, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// contents returns what a record is a vector of: its events, and the members of its command.
func contents(v vector) string {
	_, events, _ := strings.Cut(v.Value, `"events":`)
	return fmt.Sprint(strings.Contains(v.Value, `"input":`), events)
}

func equal(t *testing.T, a, b vector) bool {
	t.Helper()
	one, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	other, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(one, other)
}

func vectorOf(t *testing.T, journal string, sequence int64, value []byte) vector {
	t.Helper()
	key := epochKey(t, sequence)
	tree, err := committer(t, journal).Tree(key, sequence, value)
	if err != nil {
		t.Fatal(err)
	}
	v := vector{Journal: journal, Sequence: sequence, EpochKey: hex.EncodeToString(key.Bytes()), Value: string(value), Root: tree.Root()}
	for i, u := range tree.Units {
		o, err := tree.Opening(i)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Verify(v.Root, u.Bytes); err != nil {
			t.Error(err)
		}
		one := vectorUnit{Opening: o}
		if i > 0 {
			one.Bytes = string(u.Bytes)
		}
		v.Units = append(v.Units, one)
	}
	return v
}

// goldenRecords returns records with the golden events of each journal, a few at a time, in epochs of their own.
func goldenRecords(t *testing.T) (out []vector) {
	t.Helper()
	for _, journal := range []string{"identity", "onboarding", "trading"} {
		var files []string
		for _, pattern := range []string{journal + "/golden/*.v[0-9]*.json", "journal/golden/*.v[0-9]*.json"} {
			found, err := filepath.Glob("../../schemas/events/" + pattern)
			if err != nil || len(found) == 0 {
				t.Fatalf("no golden files: %v", err)
			}
			files = append(files, found...)
		}
		for i, name := range files {
			if strings.HasSuffix(name, ".input.json") { // of a command
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			data, event := strings.TrimSuffix(string(text), "\n"), strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".json"), ".record")
			if strings.HasSuffix(name, ".record.json") {
				_, data, _ = strings.Cut(data, `"version":1,"data":`)
				data = strings.TrimSuffix(data, "}]}")
			}
			actor := []string{desk, `{"sub":"one é \" of C1","broker":"beta","customer":"C1"}`, `{"system":"engine"}`}[i%3]
			sequence := int64(i)*1500 + 1
			dot := strings.LastIndex(event, ".v")
			value := bytes.Replace(aRecord(sequence, actor, event[:dot], data), []byte(`"version":1`), []byte(`"version":`+event[dot+2:]), 1)
			out = append(out, vector{Journal: journal, Sequence: sequence, Value: string(value)})
		}
	}
	value := aRecord(8191, desk, append([]string{"trade.executed", trade, "order.filled", resting}, expired(3)...)...)
	input := bytes.Replace(aRecord(8192, desk, "order.opened", resting), []byte(`"00ff"`), []byte(`"00ff","input":{"leverage":4}`), 1)
	return append(out, vector{Journal: "trading", Sequence: 8191, Value: string(value)}, vector{Journal: "trading", Sequence: 8192, Value: string(input)})
}

// TestPython has a program that shares no code with this one split the records of the vectors, compute their roots, and
// check their proofs.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no python3")
	}
	said, err := exec.CommandContext(t.Context(), python, "testdata/check.py", vectorsFile, "../../schemas/events").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("%s", said)
}
