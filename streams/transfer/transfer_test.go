package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

var rules = journaltest.Words{Name: "words"}

// history makes a log of words, with records between them that readers skip, and returns all of it.
func history(t *testing.T, words int) (Log, []*kgo.Record) {
	t.Helper()
	client := journaltest.NewClient(t, rules.Name)
	o, err := journal.NewOwner(journal.OwnerConfig{Client: client, Rules: rules, Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	for i := range words {
		c := journaltest.Say(strings.Repeat("word ", i%50))
		_, err := o.Submit(ctx, c)
		var busy *submit.NotAcceptedError
		for deadline := time.Now().Add(90 * time.Second); errors.As(err, &busy) && time.Now().Before(deadline); {
			<-time.After(5 * time.Millisecond)
			_, err = o.Submit(ctx, c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	log := Topic(client, rules.Name, "the source")
	all := read(t, log)
	// What lost races and old producers leave: bytes of any kind, a record once more, no key, no value.
	appendAll(t, log, all[1], &kgo.Record{Key: []byte{0xff, 0}, Value: []byte("\x80 no UTF-8")}, &kgo.Record{Value: []byte("")},
		&kgo.Record{Key: []byte{}, Headers: []kgo.RecordHeader{{Key: "twice", Value: nil}, {Key: "twice", Value: []byte{}}}},
		&kgo.Record{Key: []byte("<&\u2028>"), Value: []byte(`{"a":"<b>&\u003c"}`), Timestamp: time.UnixMilli(1)})
	return log, read(t, log)
}

func read(t *testing.T, log Log) (all []*kgo.Record) {
	t.Helper()
	records, err := log.Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	for {
		r, err := records.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

func appendAll(t *testing.T, log Log, records ...*kgo.Record) {
	t.Helper()
	a, err := log.Append(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := a.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// holds wants a log to have exactly the records.
func holds(t *testing.T, log Log, want []*kgo.Record) {
	t.Helper()
	got := read(t, log)
	if len(got) != len(want) {
		t.Fatalf("%s holds %d records, want %d", log, len(got), len(want))
	}
	for i := range want {
		if part := Differs(got[i], want[i]); part != "" {
			t.Fatalf("%s has another %s in record %d: %v, want %v", log, part, i, got[i], want[i])
		}
	}
}

// empty returns a log that holds nothing, on brokers of its own.
func empty(t *testing.T) Log {
	return Topic(journaltest.NewClient(t, rules.Name), rules.Name, "the target")
}

// TestCopyTellsProgress: also while the target is read again, which takes as long as the copy.
func TestCopyTellsProgress(t *testing.T) {
	source, all := history(t, 20)
	told := make(map[string][]int64)
	_, err := Copy(t.Context(), rules, source, Target(filepath.Join(t.TempDir(), "log.zst"), rules.Name), func(work string, n int64) {
		told[work] = append(told[work], n)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, work := range []string{"copied", "read again"} {
		if got := told[work]; len(got) != len(all) || got[0] != 1 || got[len(got)-1] != int64(len(all)) {
			t.Errorf("%s: %v; the log has %d records", work, got, len(all))
		}
	}
}

func TestCopy(t *testing.T) {
	source, want := history(t, 300)
	dir := t.TempDir()
	last := Summary{}
	for i, to := range []Log{empty(t), Target(filepath.Join(dir, "log.jsonl"), rules.Name), Target(filepath.Join(dir, "log.zst"), rules.Name)} {
		s, err := Copy(t.Context(), rules, source, to, nil)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, to, want)
		if s.Records != int64(len(want)) || s.Found != 0 || s.Skipped != 5 || i > 0 && !s.Tip.Equal(last.Tip) {
			t.Errorf("to %s: %+v of %d, and before %+v", to, s, len(want), last)
		}
		if again, err := Copy(t.Context(), rules, source, to, nil); err != nil || again.Found != s.Records {
			t.Errorf("once more to %s: %+v, %v", to, again, err)
		}
		last = s
	}
	for _, name := range []string{"log.jsonl", "log.zst"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s has its name before all of it is there", name)
		}
		if err := Finish(path); err != nil {
			t.Fatal(err)
		}
		back := empty(t)
		if s, err := Copy(t.Context(), rules, Source(path, rules.Name), back, nil); err != nil || !s.Tip.Equal(last.Tip) {
			t.Fatalf("back from %s: %+v, %v", name, s, err)
		}
		holds(t, back, want)
	}
}

// TestCopyGoesOn breaks a copy off after every so many records, in the middle of a line or frame for a file.
func TestCopyGoesOn(t *testing.T) {
	source, want := history(t, 60)
	for _, name := range []string{"log.jsonl", "log.zst"} {
		path := filepath.Join(t.TempDir(), name)
		if _, err := Copy(t.Context(), rules, source, Target(path, rules.Name), nil); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(path + partSuffix)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{0, 1, 5, 17, len(whole) / 3, len(whole) / 2, len(whole) - 1, len(whole)} {
			if err := os.WriteFile(path+partSuffix, whole[:at], 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Copy(t.Context(), rules, source, Target(path, rules.Name), nil); err != nil {
				t.Fatalf("%s broken off at byte %d: %v", name, at, err)
			}
			holds(t, Target(path, rules.Name), want)
		}
	}
	target := empty(t)
	appendAll(t, target, want[:40]...)
	s, err := Copy(t.Context(), rules, source, target, nil)
	if err != nil || s.Found != 40 {
		t.Fatalf("%+v, %v", s, err)
	}
	holds(t, target, want)
}

// fullDisk is a disk with room for half of what is written.
type fullDisk struct{ io.Writer }

func (d fullDisk) Write(p []byte) (int, error) {
	n, err := d.Writer.Write(p[:len(p)/2])
	return n, errors.Join(err, syscall.ENOSPC)
}

// TestAFullDiskKeepsTheBackup appends to a file on a full disk. The file keeps the records that it had, and can be read.
func TestAFullDiskKeepsTheBackup(t *testing.T) {
	_, want := history(t, 20)
	for _, name := range []string{"log.jsonl", "log.zst"} {
		path := filepath.Join(t.TempDir(), name)
		appendAll(t, Target(path, rules.Name), want[:10]...)
		if err := Finish(path); err != nil {
			t.Fatal(err)
		}
		appender, err := Target(path, rules.Name).Append(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		to := appender.(*fileAppender)
		to.out = fullDisk{to.out}
		if err := to.Append(t.Context(), want[10]); err != nil {
			t.Fatal(err)
		}
		if err := to.Close(t.Context()); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s on a full disk: %v", name, err)
		}
		holds(t, Source(path, rules.Name), want[:10])
		appendAll(t, Target(path, rules.Name), want[10:]...)
		holds(t, Source(path, rules.Name), want)
	}
}

// TestInterruptedSource reads a file into which a copy was killed. A source names what is wrong, and only a source that allows for it
// leaves out the incomplete end. Both refuse a file that no copy has written.
func TestInterruptedSource(t *testing.T) {
	_, want := history(t, 20)
	for _, name := range []string{"log.jsonl", "log.zst"} {
		path := filepath.Join(t.TempDir(), name)
		appendAll(t, Target(path, rules.Name), want[:10]...)
		if err := Finish(path); err != nil {
			t.Fatal(err)
		}
		appendAll(t, Target(path, rules.Name), want[10])
		about, err := os.Stat(path)
		if err == nil {
			err = os.Truncate(path, about.Size()-5)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Copy(t.Context(), rules, Source(path, rules.Name), empty(t), nil); err == nil || !strings.Contains(err.Error(), "--interrupted") {
			t.Errorf("%s: %v", name, err)
		}
		to := empty(t)
		if _, err := Copy(t.Context(), rules, InterruptedSource(path, rules.Name), to, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		holds(t, to, want[:10])
	}
	path := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(path, []byte("a letter"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := InterruptedSource(path, rules.Name).Records(t.Context()); err == nil {
		t.Error("a file that no copy has written is read as an empty log")
	}
	if _, err := InterruptedSource(path+".none", rules.Name).Records(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestCopyAppendsFrames has a compressed file grow with the source, in several frames of several journals.
func TestCopyAppendsFrames(t *testing.T) {
	source, want := history(t, 20)
	path := filepath.Join(t.TempDir(), "log.zst")
	for n := 5; n <= len(want); n += 5 {
		appendAll(t, Target(path, "other"), want[n-1])
		appendAll(t, Target(path, rules.Name), want[n-5:n]...)
	}
	if err := Finish(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Copy(t.Context(), rules, source, Target(path, rules.Name), nil); err != nil {
		t.Fatal(err)
	}
	holds(t, Source(path, rules.Name), want)
}

// TestCopyRestoresTimestamps: somebody had set message.timestamp.type for a while, and the brokers replaced the timestamps of
// records. No reader that checks them passes these records, and the copy has what the owner wrote.
func TestCopyRestoresTimestamps(t *testing.T) {
	_, sound := history(t, 20)
	client := journaltest.NewClient(t, rules.Name)
	kafka, err := client.Kafka()
	if err != nil {
		t.Fatal(err)
	}
	admin := kadm.NewClient(kafka)
	defer admin.Close()
	source := Topic(client, rules.Name, "the source")
	for i, kind := range []string{"CreateTime", "LogAppendTime", "CreateTime"} {
		changes := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "message.timestamp.type", Value: &kind}}
		if _, err := admin.AlterTopicConfigs(t.Context(), changes, client.Topic(rules.Name)); err != nil {
			t.Fatal(err)
		}
		appendAll(t, source, sound[i*5:i*5+5]...)
	}
	records, err := client.Kafka(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{client.Topic(rules.Name): {0: kgo.NewOffset().At(9)}}))
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	if fetched := records.PollFetches(t.Context()).Records(); len(fetched) == 0 || !journal.IsRestamped(fetched[0]) {
		t.Skip("the brokers of this test replace no timestamps")
	}
	reader := journal.NewReader(client, rules, 0, record.Before)
	defer reader.Close()
	reader.Audit()
	err = reader.ToTip(t.Context(), func([]record.Entry) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "perpetua log copy") {
		t.Errorf("a reader that checks the timestamps: %v", err)
	}
	to := empty(t)
	if _, err := Copy(t.Context(), rules, source, to, nil); err != nil {
		t.Fatal(err)
	}
	holds(t, to, sound[:15])
}

// restamping is a log with some records whose timestamps brokers have replaced.
type restamping struct{ Log }

// Records implements Log.
func (l restamping) Records(ctx context.Context) (Records, error) {
	records, err := l.Log.Records(ctx)
	return restamped{records}, err
}

type restamped struct{ Records }

// Next implements Records.
func (r restamped) Next(ctx context.Context) (*kgo.Record, error) {
	next, err := r.Records.Next(ctx)
	if err != nil || next.Offset%3 != 1 {
		return next, err
	}
	if _, err := record.DecodeHead(next.Value); err != nil { // its own timestamp is not known
		return next, nil
	}
	changed := *next
	changed.Timestamp = changed.Timestamp.Add(time.Hour)
	changed.Attrs = kgo.NewRecordAttrs(kgo.RecordAttrsOpts{TimestampType: 1})
	return &changed, nil
}

// TestCopyTellsOfRestoredTimestamps, in a first copy and in a repeated one. A target with replaced timestamps is not equal to the source.
func TestCopyTellsOfRestoredTimestamps(t *testing.T) {
	source, all := history(t, 20)
	to := empty(t)
	want := int64(0) // the log also holds values that are not in the form of a record
	for _, r := range all {
		if _, err := record.DecodeHead(r.Value); err == nil && r.Offset%3 == 1 {
			want++
		}
	}
	for _, found := range []int64{0, int64(len(all))} {
		s, err := Copy(t.Context(), rules, restamping{source}, to, nil)
		if err != nil || s.Found != found || want == 0 || s.Restored != want {
			t.Fatalf("%+v, %v", s, err)
		}
		holds(t, to, all)
	}
	if s, err := Copy(t.Context(), rules, source, to, nil); err != nil || s.Restored != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	var other *OtherError
	if _, err := Copy(t.Context(), rules, source, restamping{to}, nil); !errors.As(err, &other) || other.Reason != "has another timestamp" {
		t.Error(err)
	}
}

// TestCopyRefusesARecordThatIsNotWhatItsValueSays copies from logs in which one thing about one valid record was changed that
// the chain does not cover. It is named, wherever the copy meets it, and does not get into the target.
func TestCopyRefusesARecordThatIsNotWhatItsValueSays(t *testing.T) {
	_, sound := history(t, 20)
	const at = 9
	for what, change := range map[string]func(r *kgo.Record){
		"key":       func(r *kgo.Record) { r.Key = []byte("words/1") },
		"no key":    func(r *kgo.Record) { r.Key = nil },
		"header":    func(r *kgo.Record) { r.Headers[3].Value = []byte("else") },
		"headers":   func(r *kgo.Record) { r.Headers = r.Headers[:5] },
		"timestamp": func(r *kgo.Record) { r.Timestamp = r.Timestamp.Add(time.Millisecond) },
	} {
		all := slices.Clone(sound)
		wrong := *sound[at]
		wrong.Headers = slices.Clone(wrong.Headers)
		change(&wrong)
		all[at] = &wrong
		source, file := empty(t), filepath.Join(t.TempDir(), "log.jsonl")
		appendAll(t, source, all...)
		appendAll(t, Target(file, rules.Name), all...)
		if err := Finish(file); err != nil {
			t.Fatal(err)
		}
		for _, from := range []Log{source, Source(file, rules.Name)} {
			to := empty(t)
			_, err := Copy(t.Context(), rules, from, to, nil)
			var broken *record.BrokenRecordError
			if !errors.As(err, &broken) || broken.Sequence != at || !strings.Contains(err.Error(), "record 9: ") {
				t.Errorf("%s, from %s: %v", what, from, err)
			}
			if n := len(read(t, to)); n > at {
				t.Errorf("%s, from %s: the target holds %d records", what, from, n)
			}
		}
	}
}

// TestCopyRefuses what is not the beginning of the source, and leaves it as it is.
func TestCopyRefuses(t *testing.T) {
	source, want := history(t, 30)
	other := *want[7]
	other.Headers = append([]kgo.RecordHeader{}, other.Headers...)
	other.Headers[2].Value = []byte("else")
	late := *want[7]
	late.Timestamp = late.Timestamp.Add(time.Millisecond)
	longer := append(append([]*kgo.Record{}, want...), want[0])
	for name, there := range map[string][]*kgo.Record{
		"another header":    append(append([]*kgo.Record{}, want[:7]...), &other),
		"another timestamp": append(append([]*kgo.Record{}, want[:7]...), &late),
		"something else":    {{Value: []byte("x"), Timestamp: time.UnixMilli(5)}},
		"more":              longer,
		"a hole":            append(append([]*kgo.Record{}, want[:7]...), want[8]),
	} {
		for _, target := range []Log{empty(t), Target(filepath.Join(t.TempDir(), "log.zst"), rules.Name)} {
			appendAll(t, target, there...)
			var refused *OtherError
			if _, err := Copy(t.Context(), rules, source, target, nil); !errors.As(err, &refused) {
				t.Errorf("%s with %s: %v", target, name, err)
			}
			holds(t, target, there)
		}
	}
}

// TestCopyLeavesOtherFiles refuses a file that no copy has written, and leaves every byte of it, although it holds no whole line.
func TestCopyLeavesOtherFiles(t *testing.T) {
	source, _ := history(t, 3)
	for name, there := range map[string]string{
		"notes.txt": "no line ends here", "conf.json": `{"a":1}`, "short.jsonl": "{", "x.zst": "abc", "y.zst": strings.Repeat("x", 100),
		"log.jsonl.part": "not a line",
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(there), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Copy(t.Context(), rules, source, Target(strings.TrimSuffix(path, partSuffix), rules.Name), nil)
		if name == "short.jsonl" { // which a copy may have left
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if after, _ := os.ReadFile(path); err == nil || string(after) != there {
			t.Errorf("%s holds %q after %v", name, after, err)
		}
	}
}

// TestCopyOfAShorterLog ends where the source lost its end after a copy had been told where that was.
func TestCopyOfAShorterLog(t *testing.T) {
	source, want := history(t, 3)
	records, err := source.Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	records.(*topicRecords).end += 2
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range want {
		if _, err := records.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := records.Next(ctx); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "lost its end") {
		t.Fatalf("%v, %v", r, err)
	}
}

// TestCopyRefusesChangedHistory edits a record or leaves one out, which has readers skip all that follow it. Only what others
// have left in the log besides is skipped without a word.
func TestCopyRefusesChangedHistory(t *testing.T) {
	_, want := history(t, 20)
	last := len(want) - 6 // the last valid one
	edited := *want[last-10]
	edited.Value = bytes.Replace(edited.Value, []byte(`"word":"word`), []byte(`"word":"Word`), 1)
	other, stranger := *want[last], *want[last]
	other.Headers = slices.Clone(other.Headers) // of another journal that has the same name
	other.Headers[1].Value = []byte("00000000-0000-4000-8000-000000000000/" + strconv.Itoa(last))
	other.Value = bytes.Replace(other.Value, []byte(`"prev":"`), []byte(`"prev":"0`), 1)
	stranger.Value = bytes.Replace(stranger.Value, []byte(`"prev":"`), []byte(`"prev":"f`), 1)
	for what, c := range map[string]struct {
		log  []*kgo.Record
		torn int64 // the sequence of what is missing
	}{
		"nothing":                          {want, 0},
		"the last record":                  {want[:last], 0}, // nothing tells of it
		"a word":                           {append(append(slices.Clone(want[:last-10]), &edited), want[last-9:]...), int64(last - 10)},
		"a record left out":                {append(slices.Clone(want[:last-3]), want[last-2:]...), int64(last - 3)},
		"a record moved to the end":        {append(append(slices.Clone(want[:last-3]), want[last-2:]...), want[last-3]), 0}, // which is valid there
		"the record before the last":       {append(slices.Clone(want[:last-1]), want[last]), int64(last - 1)},
		"a record once more":               {append(slices.Clone(want), want[4], want[5]), 0},
		"a record of another journal":      {append(slices.Clone(want), &other), 0},
		"a record that is in no journal":   {append(slices.Clone(want), &stranger), 0},
		"two records, and what was before": {append(slices.Clone(want[:last-4]), want[last-2:]...), int64(last - 3)},
	} {
		path := filepath.Join(t.TempDir(), "log.jsonl")
		appendAll(t, Target(path, rules.Name), c.log...)
		_, err := Copy(t.Context(), rules, Target(path, rules.Name), empty(t), nil)
		var diverged *record.DivergedError
		if torn := errors.As(err, &diverged); torn != (c.torn > 0) || torn && diverged.Have.Sequence != c.torn || err != nil && !torn {
			t.Errorf("%s: %v, and sequence %d is missing", what, err, c.torn)
		}
	}
}

// TestCopyChecksTheChain stops at a record that continues the chain and is none.
func TestCopyChecksTheChain(t *testing.T) {
	client := journaltest.NewClient(t, rules.Name)
	source := Topic(client, rules.Name, "the source")
	_, sound := history(t, 3)
	broken := *sound[2]
	broken.Value = bytes.Replace(broken.Value, []byte(`"sequence":2`), []byte(`"sequence":3`), 1)
	appendAll(t, source, sound[0], sound[1], &broken)
	target := empty(t)
	var fault *record.BrokenRecordError
	if _, err := Copy(t.Context(), rules, source, target, nil); !errors.As(err, &fault) {
		t.Fatalf("a broken chain: %v", err)
	}
	holds(t, target, []*kgo.Record{sound[0], sound[1]})
}

// TestSourceFilesAreWhole refuses files that were not made, or not finished, by a copy.
func TestSourceFilesAreWhole(t *testing.T) {
	_, want := history(t, 3)
	dir := t.TempDir()
	for name, change := range map[string]func([]byte) []byte{
		"cut.jsonl":  func(b []byte) []byte { return b[:len(b)-1] },
		"cut.zst":    func(b []byte) []byte { return b[:len(b)-1] },
		"else.jsonl": func(b []byte) []byte { return append(b, "{}\n"...) },
		"else.zst":   func(b []byte) []byte { return append(b, "what?"...) },
		"member.jsonl": func(b []byte) []byte {
			return bytes.Replace(b, []byte(`{"journal"`), []byte(`{"topic":"x","journal"`), 1)
		},
	} {
		path := filepath.Join(dir, name)
		appendAll(t, Target(path, rules.Name), want...)
		b, err := os.ReadFile(path + partSuffix)
		if err == nil {
			err = os.WriteFile(path, change(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Copy(t.Context(), rules, Source(path, rules.Name), empty(t), nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Copy(t.Context(), rules, Source(filepath.Join(dir, "none"), rules.Name), empty(t), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestLineIsParsedFast: a line as a copy writes it takes the fast path, up to characters that are escaped in another way.
func TestLineIsParsedFast(t *testing.T) {
	for value, fast := range map[string]bool{`{"a":"b\\c"}`: true, "": true, "\n": false, "\x7f": false, "é": false, "\xff": false} {
		r := &kgo.Record{Offset: 12, Timestamp: time.UnixMilli(1), Key: []byte("trading/0"), Value: []byte(value),
			Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte("x/12")}, {Key: "ce_type", Value: []byte{}}}}
		b, err := appendLine(nil, "trading", r)
		if err != nil {
			t.Fatal(err)
		}
		journal, got, ok := new(lineParser).written(bytes.TrimSuffix(b, []byte("\n")))
		if ok != fast || ok && (journal != "trading" || got.Offset != 12 || Differs(r, got) != "") {
			t.Errorf("%s: %v, %v", b, ok, got)
		}
	}
}

// FuzzLine holds what a line is read as against what is written of it, and the fast path against the other.
func FuzzLine(f *testing.F) {
	for _, r := range []*kgo.Record{{}, {Key: []byte("k"), Value: []byte(`{"a":"\"}`), Headers: []kgo.RecordHeader{{Key: "a", Value: []byte{}}}}, {Key: []byte{}, Value: []byte("\xff")}, {Headers: []kgo.RecordHeader{{Key: "a"}, {Key: "\xfe", Value: []byte("\u2028")}}}} {
		b, err := appendLine(nil, "trading", r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		journal, r, err := parseLine(text)
		if name, fast, ok := new(lineParser).written(text); ok && (err != nil || name != journal || fast.Offset != r.Offset || fast.Partition != r.Partition || Differs(r, fast) != "") {
			t.Fatalf("%q is read as %v of %s, and by the fast path as %v of %s: %v", text, r, journal, fast, name, err)
		}
		if err != nil {
			return
		}
		b, err := appendLine(nil, journal, r)
		if err != nil {
			t.Fatalf("%q is read and not written: %v", text, err)
		}
		again, r2, err := parseLine(bytes.TrimSuffix(b, []byte("\n")))
		if err != nil || again != journal || Differs(r, r2) != "" {
			t.Fatalf("%q is written as %q, which differs: %v", text, b, err)
		}
	})
}
