package tools

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

// TestArchiveOfATopic archives a topic and reads it back as the topic has it.
func TestArchiveOfATopic(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
	defer stop()
	client, said := oneWord(ctx, t, journaltest.Words{Name: "trading"})
	bucket, err := blob.Open(ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	cfg := archive.Config{Store: blob.NewStore(bucket), Box: box, Journal: "trading"}
	for range 2 { // the second time, nothing is new
		var told int64
		if err := archiveJournal(ctx, client, journaltest.Words{Name: "trading"}, cfg, nil, func(n int64) { told = n }); err != nil {
			t.Fatal(err)
		}
		if told != said.Entry.Position.Sequence+1 {
			t.Errorf("%d records are archived", told)
		}
	}
	found, err := verifyArchive(ctx, cfg, nil, settings.IO{Out: new(bytes.Buffer), Err: new(bytes.Buffer)})
	if last := said.Entry.Position; err != nil || found.Sequence != last.Sequence || found.Hash != last.Hash.String() || found.Ranges != 0 || found.Tail != found.Records {
		t.Errorf("%+v, %v; the log ends with %v", found, err, last)
	}
	a, err := archive.Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	records, err := transfer.Topic(client, "trading", "the log").Records(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	for got, err := range a.Records(ctx, client.Topic("trading"), 0, math.MaxInt64) {
		if err != nil {
			t.Fatal(err)
		}
		want, err := records.Next(ctx)
		if err != nil || got.Offset != want.Offset || string(got.Value) != string(want.Value) || string(got.Key) != string(want.Key) ||
			!got.Timestamp.Equal(want.Timestamp) || len(got.Headers) != len(want.Headers) {
			t.Errorf("%v is not %v: %v", got, want, err)
		}
	}
	if r, err := records.Next(ctx); err == nil {
		t.Errorf("the archive ends before %v", r)
	}
}

// TestArchiveOfATrimmedTopic archives it to a new bucket, and to one with an older part. What the topic lacks comes from the former
// archive. Without that, the command fails and names what is missing.
func TestArchiveOfATrimmedTopic(t *testing.T) {
	const n, at = 150, 96
	ctx, rules, folder := t.Context(), journaltest.Words{Name: "trading"}, base.Folder{Dir: t.TempDir()}
	client := journaltest.Connect(t, journal.Config{Bases: []base.Source{folder}}, "trading")
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	bucket := func() archive.Config {
		b, err := blob.Open(ctx, "mem://")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		return archive.Config{Store: blob.NewStore(b), Box: box, Journal: "trading"}.WithRangeRecords(32)
	}
	all, _, first := termsOf(client.Topic("trading"), n, at)
	junk := func() *kgo.Record {
		return &kgo.Record{Topic: client.Topic("trading"), Value: []byte("junk"), Timestamp: time.UnixMilli(5)}
	}
	all = slices.Insert(slices.Insert(all, at, junk()), 40, junk())
	kc, err := client.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer kc.Close()
	produce := func(some []*kgo.Record) {
		t.Helper()
		if err := kc.ProduceSync(ctx, some...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	content := func(cfg archive.Config) (found []string) {
		t.Helper()
		a, err := archive.Open(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range a.Records(ctx, "trading", 0, math.MaxInt64) {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, fmt.Sprintf("%d %s", r.Offset, r.Value))
		}
		return found
	}
	former, part, old := bucket(), bucket(), bucket()
	produce(all[:70])
	for _, cfg := range []archive.Config{part, old} {
		if err := archiveJournal(ctx, client, rules, cfg, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	produce(all[70:])
	if err := archiveJournal(ctx, client, rules, former, nil, nil); err != nil {
		t.Fatal(err)
	}
	want := content(former)
	if len(want) != len(all) {
		t.Fatalf("%d records are archived of %d", len(want), len(all))
	}
	if err := folder.Keep(ctx, first); err != nil {
		t.Fatal(err)
	}
	if start, err := client.Trim(ctx, client.Trimmer(), first, at+2); err != nil || start != at+2 {
		t.Fatal(start, err)
	}
	opens := func(cfg archive.Config) func() (*archive.Archive, error) {
		return func() (*archive.Archive, error) { return archive.Open(ctx, cfg) }
	}
	client.SetHistory(wholelog.Archives{Once: true, Config: func(context.Context, string, int32) (archive.Config, error) { return former, nil }})
	for what, from := range map[string]archive.Config{"none": bucket(), "one that ends before the base": old} {
		to := bucket()
		err := archiveJournal(ctx, client, rules, to, opens(from), nil)
		if err == nil || !strings.Contains(err.Error(), "begins at record 96") || !strings.Contains(err.Error(), "the records from 0 on") || len(content(to)) > 0 {
			t.Errorf("the former archive is %s: %v", what, err)
		}
	}
	for what, to := range map[string]archive.Config{"a new bucket": bucket(), "one with a part": part} {
		if err := archiveJournal(ctx, client, rules, to, opens(former), nil); err != nil {
			t.Errorf("to %s: %v", what, err)
		} else if got := content(to); !slices.Equal(got, want) {
			t.Errorf("%s has %d records of %d", what, len(got), len(want))
		}
	}
}

// TestNothingIsRestoredUnderEngines on brokers.
func TestNothingIsRestoredUnderEngines(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
	defer stop()
	client := journaltest.NewClient(t, "trading")
	if err := checkStopped(ctx, client, journals.All(), "brokers"); err != nil {
		t.Fatal(err)
	}
	engine, err := client.KafkaFor(journal.ForGroup, kgo.ClientID("http://engine"), kgo.ConsumerGroup(client.Prefix()+ownership.Group),
		kgo.InstanceID("n1"), kgo.ConsumeTopics(client.Topic("trading")))
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	for err == nil && ctx.Err() == nil { // until it has joined
		engine.PollFetches(within(ctx, t))
		err = checkStopped(ctx, client, journals.All(), "brokers")
	}
	if err == nil || !strings.Contains(err.Error(), "1 engines are at work there, http://engine") {
		t.Errorf("beside an engine: %v", err)
	}
}

// within returns a context for one look.
func within(ctx context.Context, t *testing.T) context.Context {
	some, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	t.Cleanup(stop)
	return some
}

// TestArchiveRenewsTheHeadOfTheVenue archives a data folder in the bucket that a trim reads, and in another one.
func TestArchiveRenewsTheHeadOfTheVenue(t *testing.T) {
	const n, inRange = 100, 32
	all, _, _ := termsOf("trading", n, 0)
	dir := filledFolder(t, all, 64<<10, func(*broker.Broker, *journal.Client, base.Folder) {})
	heads := archive.HeadFolder{Dir: filepath.Join(dir, "archive-heads")}
	std := outputTo(new(bytes.Buffer))
	std.ArchiveRange = inRange
	other, own := blob.URLOf(t.TempDir()), blob.URLOf(filepath.Join(dir, blob.Folder))
	for _, c := range []struct {
		to   string
		want int64 // first record after the head
	}{{other, 0}, {own, n / inRange * inRange}, {other, n / inRange * inRange}} {
		err := Log(t.Context(), []string{"archive", "--data", dir, "--to", c.to, "--journal", "trading", "--master-key", base64.StdEncoding.EncodeToString(make([]byte, seal.KeySize))}, std)
		if err != nil {
			t.Fatal(err)
		}
		h, err := heads.Head(t.Context(), "trading", 0)
		if err != nil || (h == nil) != (c.want == 0) || h != nil && h.Base.Sequence != c.want {
			t.Errorf("after an archive in %s the head that is kept is %+v (%v), want one before record %d", c.to, h, err, c.want)
		}
	}
}

// TestVerifyNoticesLostRanges verifies archives that have lost their last range, or everything. What is left is sound. Only the head that
// the data folder keeps says that the venue's own archive had more.
func TestVerifyNoticesLostRanges(t *testing.T) {
	const n, inRange = 100, 32
	all, _, _ := termsOf("trading", n, 0)
	dir := filledFolder(t, all, 64<<10, func(*broker.Broker, *journal.Client, base.Folder) {})
	std := outputTo(new(bytes.Buffer))
	std.ArchiveRange = inRange
	key := base64.StdEncoding.EncodeToString(make([]byte, seal.KeySize))
	run := func(args ...string) error {
		return Log(t.Context(), append(args, "--data", dir, "--journal", "trading", "--master-key", key), std)
	}
	own, other := filepath.Join(dir, blob.Folder), t.TempDir()
	for _, bucket := range []string{own, other} {
		if err := run("archive", "--to", blob.URLOf(bucket)); err != nil {
			t.Fatal(err)
		}
	}
	lose := func(bucket, pattern string) {
		t.Helper()
		lost, err := filepath.Glob(filepath.Join(bucket, "archive", "trading", "0", pattern))
		if err != nil || len(lost) == 0 {
			t.Fatalf("no %s in %s: %v", pattern, bucket, err)
		}
		for _, file := range lost {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	verify := func(bucket, want string) {
		t.Helper()
		err := run("verify", "--archive", blob.URLOf(bucket))
		audited := Audit(t.Context(), []string{"verify", "--archive", blob.URLOf(bucket), "--chain-only", "--data", dir, "--journal", "trading", "--master-key", key}, std)
		for _, err := range []error{err, audited} {
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	verify(own, "")
	verify(other, "")
	for _, bucket := range []string{own, other} {
		lose(bucket, "tail*")
		lose(bucket, "manifest-0000000002")
	}
	verify(own, "archive/trading/0/manifest-0000000002 is missing from record 64 on")
	verify(other, "") // it may be a copy that has not the last range yet
	lose(own, "*")
	verify(own, "manifest-0000000002 is missing")
	lose(other, "*")
	verify(other, "there is no archive")
}

// TestRestoreNeedsAnArchive restores from buckets that lack the archive of a journal, or of all. No folder is made from which a start would
// begin a new log.
func TestRestoreNeedsAnArchive(t *testing.T) {
	all, _, _ := termsOf("trading", 10, 0)
	from := filledFolder(t, all, 64<<10, func(*broker.Broker, *journal.Client, base.Folder) {})
	key := base64.StdEncoding.EncodeToString(make([]byte, seal.KeySize))
	empty, one := blob.URLOf(t.TempDir()), blob.URLOf(t.TempDir())
	if err := Log(t.Context(), []string{"archive", "--data", from, "--to", one, "--journal", "trading", "--master-key", key}, outputTo(new(bytes.Buffer))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ bucket, journal, want string }{
		{empty, "", "there is no archive of identity, trading, onboarding in " + empty + "; --archive-url names its bucket"},
		{one, "", "there is no archive of identity, onboarding in " + one + "; --journal restores one journal"},
		{one, "identity", "there is no archive of identity in " + one + "; --archive-url names its bucket"},
		{one, "trading", ""},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		err := Log(t.Context(), []string{"restore", "--data", dir, "--archive-url", c.bucket, "--journal", c.journal, "--master-key", key}, outputTo(new(bytes.Buffer)))
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%v, want %q", err, c.want)
		}
		if _, found := os.Stat(dir); err != nil && !errors.Is(found, fs.ErrNotExist) {
			t.Errorf("the data folder: %v", found)
		}
	}
}

// TestReadersNeedAnArchive reads a bucket without an archive, which must not count as one without records or differences. That a venue
// has not archived anything yet is no exception.
func TestReadersNeedAnArchive(t *testing.T) {
	const all, trading = "identity, trading, onboarding", "trading"
	bucket, to := blob.URLOf(t.TempDir()), filepath.Join(t.TempDir(), "to")
	key := base64.StdEncoding.EncodeToString(make([]byte, seal.KeySize))
	for _, c := range []struct {
		run  func(context.Context, []string, settings.IO) error
		args string
		of   string
	}{
		{Log, "verify", all},
		{Log, "verify --journal trading", trading},
		{Log, "verify --archive-url " + bucket, all},
		{Audit, "verify", all},
		{Audit, "verify --journal trading", trading},
		{Audit, "what-if", trading},
		{Log, "parquet --to " + to, "trading, onboarding"},
	} {
		args := append(strings.Fields(c.args), "--archive", bucket, "--data", t.TempDir(), "--master-key", key, "--json")
		out := new(bytes.Buffer)
		err := c.run(t.Context(), args, outputTo(out))
		var usage *settings.UsageError
		if want := "there is no archive of " + c.of + " in " + bucket; err == nil || err.Error() != want || errors.As(err, &usage) {
			t.Errorf("%s: %v, want %s", c.args, err, want)
		}
		if strings.Contains(out.String(), `"equal": true`) {
			t.Errorf("%s: %s", c.args, out)
		}
	}
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder for Parquet files: %v", err)
	}
}

// TestArchiveIsCompleteWithoutItsCopies archives two journals in the venue's own bucket while Postgres is away.
func TestArchiveIsCompleteWithoutItsCopies(t *testing.T) {
	const n, inRange = 100, 32
	all, _, _ := termsOf("trading", n, 0)
	dir := filledFolder(t, all, 64<<10, func(*broker.Broker, *journal.Client, base.Folder) {})
	std, out := outputTo(new(bytes.Buffer)), new(bytes.Buffer)
	std.Out, std.ArchiveRange = out, inRange
	err := Log(t.Context(), []string{"archive", "--data", dir, "--to", blob.URLOf(filepath.Join(dir, blob.Folder)), "--database-url", "postgres://127.0.0.1:1/x",
		"--master-key", base64.StdEncoding.EncodeToString(make([]byte, seal.KeySize))}, std)
	if err == nil || !strings.Contains(err.Error(), "the archive is complete, but") {
		t.Errorf("Postgres is away: %v", err)
	}
	for _, name := range journals.All().Names() {
		if !strings.Contains(out.String(), name+": ") {
			t.Errorf("%s is not archived: %s", name, out)
		}
	}
	h, err := archive.HeadFolder{Dir: filepath.Join(dir, "archive-heads")}.Head(t.Context(), "trading", 0)
	if err != nil || h == nil || h.Base.Sequence != n/inRange*inRange {
		t.Errorf("the head in the folder is %+v (%v)", h, err)
	}
}

// TestTheListIsOfTheVenuesArchive: without --to, `log archive --list` reads the bucket that the role archive writes to.
func TestTheListIsOfTheVenuesArchive(t *testing.T) {
	std := settings.IO{Out: io.Discard, Err: io.Discard, Env: func(string) (string, bool) { return "", false }}
	for want, args := range map[string][]string{
		"file:///archive": {"--archive-url", "file:///archive", "--blob-url", "file:///bucket"},
		"file:///bucket":  {"--blob-url", "file:///bucket"},
		"file:///other":   {"--archive-url", "file:///archive", "--to", "file:///other"},
	} {
		if r, err := parseArchive("log archive", "to", "", append(args, "--list"), std); err != nil || r.at != want {
			t.Errorf("%v: %q, not %q: %v", args, r.at, want, err)
		}
	}
}
