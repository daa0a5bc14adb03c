package verify_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

var names = []string{"trading", "onboarding", "identity"}

// copyAll copies the samples into a file.
func copyAll(t *testing.T, path string) {
	t.Helper()
	for _, s := range samples() {
		if _, err := transfer.Copy(t.Context(), s.Rules, log{records: s.records}, transfer.Target(path, s.name()), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := transfer.Finish(path); err != nil {
		t.Fatal(err)
	}
}

// inFile returns the configuration for a sample in a file.
func (s *sample) inFile(path string) verify.Config {
	cfg := s.Config
	cfg.Source = verify.FromLog(transfer.Source(path, s.name(), names...))
	return cfg
}

// TestFiles flips bytes of a file with all journals, and removes, repeats and swaps its lines.
func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs.jsonl")
	copyAll(t, path)
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples() {
		if report := run(t, s.inFile(path)); report.Difference != nil || report.Records != int64(len(s.records)) {
			t.Fatalf("%+v", report)
		}
	}
	lines := bytes.SplitAfter(sound, []byte("\n"))
	lines = lines[:len(lines)-1]
	random := rand.New(rand.NewPCG(5, 6))
	for n := range 120 {
		at := random.IntN(len(lines) - 4)
		changed := slices.Clone(lines)
		what := []string{"flip", "flip", "flip", "drop", "swap"}[n%5]
		switch what {
		case "flip":
			line := bytes.Clone(lines[at])
			line[random.IntN(len(line))] ^= 1 << random.IntN(8)
			changed[at] = line
		case "drop":
			changed = slices.Delete(changed, at, at+1)
		case "swap":
			changed[at], changed[at+1] = changed[at+1], changed[at]
		}
		place := slices.IndexFunc(samples(), func(s *sample) bool { return bytes.HasPrefix(lines[at], []byte(`{"journal":"`+s.name()+`"`)) })
		s, number := samples()[place], at
		for _, before := range samples()[:place] {
			number -= len(before.records)
		}
		if number >= len(s.records)-3 { // of what is not found there, see TestTheEnd
			continue
		}
		if err := os.WriteFile(path, bytes.Join(changed, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		d := run(t, s.inFile(path)).Difference
		// The offset of a line contradicts that of the next one.
		if d == nil || d.Sequence != int64(number) && (d.Check != verify.CheckSource || d.Sequence != int64(number+1)) {
			t.Errorf("%s of record %d of %s, line %d: %v", what, number, s.name(), at+1, d)
		}
	}
	if err := os.WriteFile(path, sound[:len(sound)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	last := samples()[2]
	if d := run(t, last.inFile(path)).Difference; d == nil || d.Sequence != int64(len(last.records)-1) || !strings.Contains(d.Reason, "logs.jsonl:"+strconv.Itoa(len(lines))) {
		t.Errorf("the end is cut off: %v", d)
	}
}

// archived writes records to an archive in a folder.
func archived(t testing.TB, dir string, s *sample, records []*kgo.Record) archive.Config {
	t.Helper()
	bucket, err := blob.Open(t.Context(), blob.URLOf(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bucket.Close() })
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	cfg := archive.Config{Store: blob.NewStore(bucket), Box: box, Journal: s.name()}
	w, err := archive.NewWriter(t.Context(), cfg)
	for _, r := range records {
		if err == nil {
			err = w.Add(t.Context(), r)
		}
	}
	if err == nil {
		err = w.Tail(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// inArchive returns the configuration for a sample in an archive.
func (s *sample) inArchive(t *testing.T, at archive.Config) verify.Config {
	t.Helper()
	cfg := s.Config
	a, err := archive.Open(context.Background(), at)
	var damage *archive.Error
	switch {
	case errors.As(err, &damage):
		cfg.Source = verify.Damaged(damage)
	case err != nil:
		t.Fatal(err)
	default:
		cfg.Source = verify.FromArchive(a)
	}
	return cfg
}

// TestArchives flips bytes of the blobs of archives, and archives a forged log.
func TestArchives(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for _, s := range samples() {
		dir := t.TempDir()
		at := archived(t, dir, s, s.records)
		for _, workers := range []int{1, 3} {
			cfg := s.inArchive(t, at)
			cfg.Workers = workers
			if report := run(t, cfg); report.Difference != nil || report.Records != int64(len(s.records)) || report.Decided.Undecided != 2 {
				t.Fatalf("%+v", report)
			}
		}
		var blobs []string
		if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && !strings.HasSuffix(path, ".attrs") {
				blobs = append(blobs, path)
			}
			return err
		}); err != nil || len(blobs) != 2 { // the object and its manifest
			t.Fatal(blobs, err)
		}
		for range 40 {
			path := blobs[random.IntN(len(blobs))]
			sound, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			changed := bytes.Clone(sound)
			flip(random, changed)
			if err := os.WriteFile(path, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			if d := run(t, s.inArchive(t, at)).Difference; d == nil || d.Check != verify.CheckSource || d.Sequence != 0 {
				t.Errorf("a byte of %s is another: %v", path, d)
			}
			if err := os.WriteFile(path, sound, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := samples()[0]
	records, n := s.forge(t, 100, `"fee":"`, `"fee":"1`)
	at := archived(t, t.TempDir(), s, records)
	if d := run(t, s.inArchive(t, at)).Difference; d == nil || d.Sequence != int64(n) || d.Check != verify.CheckDecision {
		t.Errorf("a fee in record %d: %v", n, d)
	}
	records = slices.Clone(s.records)
	records[n] = clone(records[n])
	records[n].Headers[5].Value[0]++
	at = archived(t, t.TempDir(), s, records)
	if d := run(t, s.inArchive(t, at)).Difference; d == nil || d.Sequence != int64(n) || d.Check != verify.CheckKafka {
		t.Errorf("a header of record %d: %v", n, d)
	}
}

// TestTopics verifies the journals in topics: sound ones, and then with a forged record, without a record, and with a repeated one.
func TestTopics(t *testing.T) {
	for name, logs := range map[string]func(*sample) (records []*kgo.Record, n int){
		"sound": func(s *sample) ([]*kgo.Record, int) { return s.records, -1 },
		"changed": func(s *sample) ([]*kgo.Record, int) {
			switch s.name() {
			case "trading":
				return s.forge(t, 100, `"fee":"`, `"fee":"1`)
			case "identity":
				return slices.Delete(slices.Clone(s.records), 77, 78), 77
			}
			records := slices.Clone(s.records)
			records[50] = clone(records[50])
			records[50].Value[200] ^= 2
			return records, 50
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := journaltest.NewClient(t, names...)
			for _, s := range samples() {
				records, n := logs(s)
				topic := transfer.Topic(client, s.name(), "the topic")
				to, err := topic.Append(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range records {
					if err := to.Append(t.Context(), r); err != nil {
						t.Fatal(err)
					}
				}
				if err := to.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				cfg := s.Config
				cfg.Source = verify.FromLog(topic)
				report := run(t, cfg)
				if d := report.Difference; (d == nil) != (n < 0) || d != nil && d.Sequence != int64(n) {
					t.Errorf("%s: %v, not at record %d", s.name(), d, n)
				}
				if n < 0 && report.Records != int64(len(records)) {
					t.Errorf("%s: %+v", s.name(), report)
				}
			}
		})
	}
}
