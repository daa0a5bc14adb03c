// Package recordtest compares the records that this build makes of fixed commands with the records that earlier builds made
// of the same commands, byte by byte.
//
// A log of 100,000 records is too large to keep as a file, so a Digest keeps its SHA-256. The commands come from a seeded
// random load, and their records have no wall-clock times and no random ids, so every build makes the same log.
package recordtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/pack/packtest"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

// File holds what a package has frozen, relative to the package's folder. Each line is a name, a colon, and a value. The
// value of a Digest is the number of records and the SHA-256 in lower-case hex.
const File = "testdata/frozen"

// Long is the environment variable that makes the frozen tests build logs of at least 100,000 records.
const Long = "PERPETUA_TEST_FROZEN"

// Digest is the SHA-256 of the values of records, one after the other and without separators. Its zero value is that of no
// records.
type Digest struct {
	// Each, if set, gets the value of each record.
	Each func(value []byte)

	sum     hash.Hash
	records int
}

// Add adds the value of the next record.
func (d *Digest) Add(value []byte) {
	if d.sum == nil {
		d.sum = sha256.New()
	}
	d.sum.Write(value)
	d.records++
	if d.Each != nil {
		d.Each(value)
	}
}

// Records returns the number of records added so far.
func (d *Digest) Records() int { return d.records }

// Check fails the test if File has another number of records or another hash for the name. If the environment variable
// packtest.Update is set, it writes them to File instead.
func (d *Digest) Check(t *testing.T, name string) {
	t.Helper()
	var sum []byte
	if d.sum != nil {
		sum = d.sum.Sum(nil)
	}
	Frozen(t, name, fmt.Sprintf("%d %s", d.records, hex.EncodeToString(sum)))
}

// Frozen fails the test if File has another value for the name. If the environment variable packtest.Update is set, it
// writes the value to File instead. A value is one line.
func Frozen(t *testing.T, name, now string) {
	t.Helper()
	text, err := os.ReadFile(File)
	update := os.Getenv(packtest.Update) != ""
	if err != nil && !(update && os.IsNotExist(err)) {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, name+": ") })
	switch line := name + ": " + now; {
	case i >= 0 && lines[i] == line:
		return
	case !update && i < 0:
		t.Errorf("%s has no line %q; this build makes %q", File, name, line)
		return
	case !update:
		t.Errorf("this build makes other bytes than earlier builds, which old logs and clients rely on:\nnow  %s\nthen %s", line, lines[i])
		return
	case i >= 0:
		lines[i] = line
	default:
		lines = append(lines, line)
	}
	slices.Sort(lines)
	lines = slices.DeleteFunc(lines, func(l string) bool { return l == "" })
	if err := os.WriteFile(File, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Log encodes records as the owner of a journal does, chains them by their hashes, and adds their values to a Digest. It
// decodes each value and fails the test if encoding the result gives other bytes. It also decides each record again on the
// state that the decoded records lead to.
type Log struct {
	t        *testing.T
	digest   *Digest
	decoder  *record.Decoder
	tip      record.Position
	id       scalar.ID
	state    decide.State
	payloads *decide.Payloads
	again    Verdicts
}

// Verdicts counts the verdicts of deciding records again, by the verdict, a space, and the command type.
type Verdicts map[string]int

// NewLog returns a log that holds the genesis record of the journal that the rules and the payloads belong to. It adds its
// records to d and their verdicts to again.
func NewLog(t *testing.T, d *Digest, rules decide.Rules, payloads *decide.Payloads, again Verdicts, id scalar.ID, at scalar.Time) *Log {
	l := &Log{t: t, digest: d, decoder: record.NewDecoder(rules.Registry()), tip: record.Before, id: id, state: rules.NewState(),
		payloads: payloads, again: again}
	l.Append(&record.Record{Time: at, Command: decide.Recorded{Type: record.TypeGenesis, Actor: decide.Engine}, Outcome: decide.Accepted,
		Events: []decide.Event{&record.Genesis{Journal: rules.Journal(), JournalID: id, Partitions: 1}}})
	return l
}

// DecidedIn sets the journal id with which the next records were decided, if it is not that of the genesis record.
func (l *Log) DecidedIn(id scalar.ID) { l.id = id }

// Append appends a record. It sets the record's Sequence and Prev. It fails the test if the record is decided again as another
// one, and if it cannot be decided again although the rules in force record inputs.
func (l *Log) Append(r *record.Record) {
	l.t.Helper()
	r.Sequence, r.Prev = l.tip.Sequence+1, l.tip.Hash
	value, err := record.Encode(nil, r)
	if err != nil {
		l.t.Fatal(err)
	}
	read, err := l.decoder.Decode(value)
	if err != nil {
		l.t.Fatalf("%s can't be decoded: %v", value, err)
	}
	if again, err := record.Encode(nil, read); err != nil || !bytes.Equal(again, value) {
		l.t.Fatalf("%s is encoded from its record as %s (%v)", value, again, err)
	}
	l.digest.Add(value)
	l.tip = record.Position{Sequence: read.Sequence, Hash: sha256.Sum256(value)}
	entry := record.Entry{Record: read, Position: l.tip, Journal: l.id, Value: value}
	result := redecide.Redecide(l.state, l.payloads, entry)
	recorder, ok := l.state.(decide.InputRecorder)
	if result.Verdict == redecide.Different || result.Verdict == redecide.NotRedecidable && ok && recorder.RecordsInputs() {
		l.t.Fatalf("%s is decided again as\n%s: %s", value, result.Value, result.Reason)
	}
	l.again[result.Verdict.String()+" "+read.Command.Type]++
	l.state.Evolve(entry.Stamp(), read.Command, read.Outcome, read.Events)
}
