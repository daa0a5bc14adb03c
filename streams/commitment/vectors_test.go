package commitment_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/disclose/disclosetest"
	"github.com/perpetua-exchange/perpetua/domain/pack/packtest"
	"github.com/perpetua-exchange/perpetua/schemas"
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

// TestVectors compares the roots of records with every event of the journals with those of earlier builds. A root never
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
	for _, r := range exampleRecords(t) {
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
		if err := os.WriteFile(vectorsFile, known.text(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// text returns the vectors as JSON, with one line for each record.
func (v *vectors) text(t *testing.T) []byte {
	t.Helper()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	fmt.Fprintf(&text, "{\"secret\":%q,\"journal_id\":%q,\"records\":[", v.Secret, v.JournalID)
	for i, r := range v.Records {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteByte('\n')
		if err := e.Encode(r); err != nil {
			t.Fatal(err)
		}
		text.Truncate(text.Len() - len("\n"))
	}
	text.WriteString("\n]}\n")
	return text.Bytes()
}

// contents returns what a record is a vector of: the data of its command, and its events.
func contents(v vector) string {
	_, events, _ := strings.Cut(v.Value, `"data":`)
	return events
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

const (
	confined = `{"sub":"one é \" of C1","broker":"beta","customer":"C1"}`
	system   = `{"system":"engine"}`
	keyed    = `{"key":"k:1","fingerprint":"00ff","session":"b1000000-0000-0000-0000-000000000000","source":{"journal":"onboarding","sequence":9},"input":{"symbol":"S","nested":{"list":[1,{}]}}}`
)

// exampleRecords returns records with every event of each journal, in epochs of their own. Each event has every member in
// its schema. Events that concern the same thing are in one record.
func exampleRecords(t *testing.T) (out []vector) {
	t.Helper()
	add := func(journal, actor, data, events string) {
		sequence := int64(len(out))*1500 + 1
		value := strings.Replace(string(aRecord(sequence, actor)), `{"fingerprint":"00ff"}`, data, 1)
		out = append(out, vector{Journal: journal, Sequence: sequence, Value: strings.Replace(value, `"events":[]`, `"events":[`+events+`]`, 1)})
	}
	for i, journal := range []string{"identity", "onboarding", "trading"} {
		groups := make(map[string][]string)
		for _, second := range []bool{false, true} {
			all := disclosetest.Full(t, schemas.Events(), journal, second)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				about, _, _ := strings.Cut(name, ".")
				if !slices.Contains(groups[about], all[name]) {
					groups[about] = append(groups[about], all[name])
				}
			}
		}
		for _, about := range slices.Sorted(maps.Keys(groups)) {
			if i > 0 && slices.Contains([]string{"commitment", "due", "journal", "rules"}, about) { // those of all journals
				continue
			}
			actor := []string{desk, confined, system}[len(out)%3]
			data := []string{`{"fingerprint":"00ff"}`, keyed, `{}`}[len(out)/3%3]
			add(journal, actor, data, strings.Join(groups[about], ","))
		}
	}
	several := []string{"trade.executed", trade, "order.filled", resting}
	add("trading", desk, `{"fingerprint":"00ff"}`, eventsOf(append(several, expired(3)...)...))
	add("trading", confined, keyed, eventsOf("order.opened", resting))
	add("trading", desk, `{}`, eventsOf("order.opened", `{}`, "instrument.listed", `{}`, "trade.executed", `{"taker":{}}`, // empty values
		"funding.posted", `{"customer_code":"bob","postings":[]}`, "funding.posted", `{"customer_code":"bob","postings":[{}]}`))
	add("trading", desk, `{}`, eventsOf("trade.executed", `{"taker":{"customer_code":"bob","fee":"1"},"maker":{"customer_code":"bob","fee":"2"}}`))
	return out
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
