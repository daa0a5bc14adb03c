package receipt_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/note"

	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/domain/disclose/disclosetest"
	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/receipt"
	"github.com/perpetua-exchange/perpetua/streams/receipt/receipttest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
	"github.com/perpetua-exchange/perpetua/streams/transparency/witnesstest"
)

var compiled = sync.OnceValues(func() (*disclose.Policy, error) { return disclose.Compile(schemas.Events()) })

// log is a log of records with every event of a journal, of which every text is a marker that occurs once.
type log struct {
	receipttest.Source
	t       *testing.T
	classes *disclose.Policy
	journal string
	values  [][]byte
	tlog    *receipttest.Log
}

func newLog(t *testing.T, journal string, policy *transparency.Policy) *log {
	t.Helper()
	classes, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	l := &log{t: t, classes: classes, journal: journal}
	for _, second := range []bool{false, true} {
		all := disclosetest.Full(t, schemas.Events(), journal, second)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			for _, actor := range []string{`{"sub":"marker-sub","broker":"marker-broker"}`, `{"sub":"marker-sub","broker":"marker-broker","customer":"marker-customer"}`} {
				l.values = append(l.values, fmt.Appendf(nil, `{"sequence":%d,"prev":"%s","time":"2026-01-02T03:04:05.678901Z","command":{"id":"marker-id","type":"t","actor":%s,"data":{"key":"marker-key","fingerprint":"marker-print"}},"outcome":"accepted","events":[%s]}`,
					len(l.values), strings.Repeat("ab", 32), actor, all[name]))
			}
		}
	}
	l.tlog = receipttest.NewLog(t, classes, journal, l.entries)
	l.Source = receipttest.NewSource(t, l.tlog, classes, journal, policy)
	return l
}

func (l *log) entries() (all []record.Entry) {
	for i, v := range l.values {
		all = append(all, record.Entry{Position: record.Position{Sequence: int64(i)}, Value: v})
	}
	return all
}

// policy accepts what the log has signed.
func (l *log) policy() *transparency.Policy {
	l.t.Helper()
	v, err := note.NewVerifier(l.tlog.Verifier())
	if err != nil {
		l.t.Fatal(err)
	}
	return transparency.NewPolicy(v)
}

// receipt returns the JSON of a receipt.
func (l *log) receipt(sequence int, parties ...string) []byte {
	l.t.Helper()
	r, err := l.Prove(l.t.Context(), l.entries()[sequence], parties)
	if err != nil {
		l.t.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		l.t.Fatal(err)
	}
	return b
}

var quoted = regexp.MustCompile(`"([^"\\]+)"`)

// texts returns the texts in JSON, names of members included.
func texts(b []byte) map[string]bool {
	out := make(map[string]bool)
	for _, m := range quoted.FindAllSubmatch(b, -1) {
		out[string(m[1])] = true
	}
	return out
}

// TestOnlyOnesOwn makes a receipt of a record with each event for each party, and verifies it. It has nothing of another party: no
// text that only units of others have, no salt of such a unit, and so nothing that could confirm a guess.
func TestOnlyOnesOwn(t *testing.T) {
	parties, hidden := 0, 0
	for _, journal := range []string{"trading", "onboarding", "identity"} {
		l := newLog(t, journal, nil)
		s, err := l.classes.Splitter(journal)
		if err != nil {
			t.Fatal(err)
		}
		policy := l.policy()
		for sequence, value := range l.values {
			units, err := s.Split(value, disclosetest.Hash)
			if err != nil {
				t.Fatal(err)
			}
			owners := map[string]bool{"customer/stranger": true}
			for _, u := range units {
				if u.Owner != nil {
					owners[string(u.Owner)] = true
				}
			}
			for party := range owners {
				parties++
				got := l.receipt(sequence, party)
				v, err := receipt.Verify(got, policy)
				if err != nil {
					t.Fatalf("%s for %s: %v", value, party, err)
				}
				if v.Sequence != int64(sequence) || len(v.Owners) > 1 || len(v.Owners) == 1 && v.Owners[0] != party {
					t.Errorf("%s: the receipt for %s is of record %d for %v", value, party, v.Sequence, v.Owners)
				}
				var plain struct{ Units []struct{ Unit string } }
				if err := json.Unmarshal(got, &plain, json.MatchCaseInsensitiveNames(true)); err != nil {
					t.Fatal(err)
				}
				shown := make(map[string]bool)
				for _, u := range plain.Units {
					maps.Copy(shown, texts([]byte(u.Unit)))
				}
				visible := make(map[string]bool) // of the units that the party may see
				for _, u := range units[1:] {
					if u.Class == disclose.Public || string(u.Owner) == party {
						maps.Copy(visible, texts(u.Bytes))
					}
				}
				for i, u := range units[1:] {
					if u.Class == disclose.Public || string(u.Owner) == party {
						continue
					}
					for text := range texts(u.Bytes) {
						if isMarker(text) && shown[text] && !visible[text] {
							t.Errorf("%s: the receipt for %s holds %q of unit %d of %v %s", value, party, text, i+1, u.Class, u.Owner)
						}
					}
					hidden++
				}
				if n := strings.Count(string(got), `"salt"`); n != len(v.Units) {
					t.Errorf("%d salts for %d units", n, len(v.Units))
				}
				for _, u := range v.Units {
					if strings.Contains(u, `"class":"venue"`) || strings.Contains(u, `"prev":`) {
						t.Errorf("the receipt holds %s", u)
					}
				}
			}
		}
	}
	if parties < 300 || hidden < 300 {
		t.Errorf("%d receipts, %d hidden units", parties, hidden)
	}
	t.Logf("%d receipts, %d hidden units", parties, hidden)
}

var numbered = regexp.MustCompile(`-[0-9]+$`)

// isMarker reports whether a text is a value that the record has once. Names of members and values of fixed lists are not.
func isMarker(text string) bool {
	return strings.HasPrefix(text, "marker-") || numbered.MatchString(text)
}

// find returns the sequence of a record that discloses something of an event to a party, and the party.
func (l *log) find(event string) (sequence int, party string) {
	l.t.Helper()
	s, err := l.classes.Splitter(l.journal)
	if err != nil {
		l.t.Fatal(err)
	}
	for i, v := range l.values {
		if !strings.Contains(string(v), `"type":"`+event+`"`) {
			continue
		}
		units, err := s.Split(v, disclosetest.Hash)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, u := range units {
			if u.Owner != nil && u.Event == 0 {
				return i, string(u.Owner)
			}
		}
	}
	l.t.Fatalf("no party has a unit of %s", event)
	return 0, ""
}

// TestTamperedReceipts changes one byte at a time, cuts, and exchanges. Every change is refused, and says where.
func TestTamperedReceipts(t *testing.T) {
	l := newLog(t, "trading", nil)
	policy := l.policy()
	sequence, party := l.find("trade.executed")
	good := l.receipt(sequence, party)
	if v, err := receipt.Verify(good, policy); err != nil || len(v.Units) < 3 {
		t.Fatalf("%v, %s", err, good)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		bad := slices.Clone(good)
		at := random.IntN(len(bad))
		bad[at] ^= 1 << random.IntN(7)
		if _, err := receipt.Verify(bad, policy); err == nil {
			t.Errorf("byte %d was changed: %s", at, bad)
		}
	}
	for at := 0; at < len(good); at += 1 + len(good)/300 {
		if _, err := receipt.Verify(good[:at], policy); err == nil {
			t.Errorf("it was cut off at byte %d", at)
		}
	}
	other := string(l.receipt(sequence+2, party))
	foreign := newLog(t, "identity", nil)
	replace := func(old, with string) []byte { return []byte(strings.Replace(string(good), old, with, 1)) }
	field := func(of, name string) string {
		return regexp.MustCompile(`"` + name + `":(\[.*\]|"[^"]*")`).FindString(of)
	}
	entry := regexp.MustCompile(`"entry":"([^"]*)"`).FindStringSubmatch(string(good))[1]
	var kind receipt.Base64
	if err := kind.UnmarshalText([]byte(entry)); err != nil {
		t.Fatal(err)
	}
	kind[0] = 2
	otherKind, err := kind.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	for want, bad := range map[string][]byte{
		"format:":                 replace("receipt@v1", "receipt@v2"),
		"entry:":                  replace(entry, string(otherKind)),
		"proof: ":                 replace(field(string(good), "proof"), field(other, "proof")),
		"units[0]":                replace(field(string(good), "units"), field(other, "units")),
		"units: ":                 replace(field(string(good), "units"), `"units":[]`),
		"line 1":                  replace("tlog-proof@v1", "tlog-proof@v2"),
		"line 2":                  replace(`\nindex `, `\nindex 0`),
		"line 10":                 replace(`=\n\n`, `=\r\n\n`),
		"/entry":                  replace(`"entry":"`, `"entry":"\n`),
		"/units/0/salt":           replace(`"salt":"`, `"salt":"\n`),
		"unknown":                 replace(`{"format"`, `{"more":1,"format"`),
		"checkpoint's signatures": foreign.receipt(0, party),
	} {
		if _, err := receipt.Verify(bad, policy); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\n%s", want, err, bad)
		}
	}
}

// TestWaiting waits for a checkpoint that covers the record, and for the witnesses.
func TestWaiting(t *testing.T) {
	w := witnesstest.Start(t, "witness.example/w1")
	policy, err := transparency.ParsePolicy([]byte("witness w1 " + w.Key().String() + "\nquorum w1\n"))
	if err != nil {
		t.Fatal(err)
	}
	l := newLog(t, "trading", policy)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l.tlog.Hold(true)
	for range 2 { // first nothing is signed, then no witness has cosigned
		if _, err := l.Prove(ended, l.entries()[3], nil); !errors.Is(err, receipt.ErrNotSigned) {
			t.Errorf("%v", err)
		}
		l.tlog.Hold(false)
	}
	l.tlog.Cosign = w.Cosign
	got := l.receipt(3)
	verify, err := policy.ForLog(l.tlog.Verifier())
	if err != nil {
		t.Fatal(err)
	}
	v, err := receipt.Verify(got, verify)
	if err != nil || len(v.Checkpoint.Cosigned) != 1 || time.Since(v.Checkpoint.Cosigned[0].Time) > time.Hour {
		t.Errorf("%v, %+v", err, v)
	}
	line := strings.TrimSuffix(w.Cosign("x"), "\n")
	cut := regexp.MustCompile(`\\n— witness.example[^\\]*`).ReplaceAllString(string(got), "")
	if _, err := receipt.Verify([]byte(cut), verify); !errors.Is(err, transparency.ErrQuorum) {
		t.Errorf("without the cosignature: %v\n%s", err, cut)
	}
	wrong := regexp.MustCompile(`— witness.example[^\\]*`).ReplaceAllString(string(got), line)
	if _, err := receipt.Verify([]byte(wrong), verify); err == nil || errors.Is(err, transparency.ErrQuorum) {
		t.Errorf("with the cosignature of another text: %v", err)
	}
}

// TestPython has a program that shares no code with this one verify receipts, and refuse what is wrong with others.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no python3")
	}
	w := witnesstest.Start(t, "witness.example/w1")
	text := "# one of two\nwitness w1 " + w.Key().String() + "\nwitness w2 " + witnesstest.Start(t, "w2").Key().String() + "\ngroup g any w1 w2\nquorum g\n"
	policy, err := transparency.ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l := newLog(t, "trading", policy)
	l.tlog.Cosign = w.Cosign
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	policyFile := write("policy", []byte(text))
	verify := func(b []byte) (string, error) {
		said, err := exec.CommandContext(t.Context(), python, "testdata/verify_receipt.py", write("receipt", b), l.tlog.Verifier(), policyFile).CombinedOutput()
		return string(said), err
	}
	for _, sequence := range []int{0, 7, len(l.values) - 1} {
		if said, err := verify(l.receipt(sequence, "customer/nobody")); err != nil || !strings.Contains(said, fmt.Sprintf("record %d of venue.example", sequence)) {
			t.Errorf("%v\n%s", err, said)
		}
	}
	sequence, party := l.find("trade.executed")
	good := l.receipt(sequence, party)
	if said, err := verify(good); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	random := rand.New(rand.NewPCG(2, 2))
	for range 8 {
		bad := slices.Clone(good)
		bad[random.IntN(len(bad))] ^= 1
		if said, err := verify(bad); err == nil {
			t.Errorf("%s is accepted: %s", bad, said)
		}
	}
	var longer struct {
		Format string           `json:"format"`
		Units  []map[string]any `json:"units"`
		Entry  string           `json:"entry"`
		Proof  string           `json:"proof"`
	}
	if err := json.Unmarshal(good, &longer); err != nil {
		t.Fatal(err)
	}
	longer.Units[0]["owner"] = "customer/nobody"
	unknown, err := json.Marshal(longer)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := verify(unknown); err == nil || !strings.Contains(said, "a unit has other members") {
		t.Errorf("with an unknown member: %v\n%s", err, said)
	}
	delete(longer.Units[0], "owner")
	longer.Units[0]["salt"] = strings.TrimSuffix(longer.Units[0]["salt"].(string), "=") + "A" // a zero byte more
	bad, err := json.Marshal(longer)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := verify(bad); err == nil {
		t.Errorf("with a longer salt: %s", said)
	}
	extra := strings.Replace(string(good), `\nindex `, `\nextra eA==\nindex `, 1)
	if said, err := verify([]byte(extra)); err != nil {
		t.Errorf("with extra data: %v\n%s", err, said)
	}
	if said, err := verify([]byte(strings.Replace(extra, `\nextra eA==`, `\nextra eA==\nextra eA==`, 1))); err == nil {
		t.Errorf("with extra data twice: %s", said)
	}
	uncosigned := regexp.MustCompile(`\\n— witness.example[^\\]*`).ReplaceAllString(string(good), "")
	if said, err := verify([]byte(uncosigned)); err == nil {
		t.Errorf("without cosignature: %s", said)
	}
}

// TestKeysThatDoNotCome: the time for a key is bounded, also where the caller's is not.
func TestKeysThatDoNotCome(t *testing.T) {
	l := newLog(t, "trading", nil)
	committer, err := commitment.NewCommitter(l.classes, "trading")
	if err != nil {
		t.Fatal(err)
	}
	p := receipt.NewProver(receipt.Config{Log: l.tlog, Committer: committer, Poll: time.Millisecond, Key: func(ctx context.Context, _ int64) (*commitment.EpochKey, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the time for a key is not bounded")
		}
		return nil, context.DeadlineExceeded
	}})
	if _, err := p.Prove(t.Context(), l.entries()[3], nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
