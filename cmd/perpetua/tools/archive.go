package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

// archived is the JSON output of an archive for one journal.
type archived struct {
	Journal  string `json:"journal"`
	Ranges   int64  `json:"ranges"`  // full ones
	Records  int64  `json:"records"` // valid ones, with those of the tail
	Skipped  int64  `json:"skipped"` // records that readers skip as invalid
	Tail     int64  `json:"tail"`    // records of Records that are in the tail
	Values   int64  `json:"value_bytes"`
	Bytes    int64  `json:"archive_bytes"`
	Sequence int64  `json:"sequence"` // of the last valid record; -1 if there is none
	Hash     string `json:"hash"`     // of the last valid record
}

// archiveRequest holds the arguments of the tools of archives.
type archiveRequest struct {
	*settings.Settings
	at       string // URL of the bucket
	keyFile  string // of the key that seals the archive instead of the master key; "" for none
	journals journals.Table
	retained blob.Retention // of what the command writes
	list     bool
	json     bool
}

func parseArchive(command, flagName, usage string, args []string, std settings.IO) (r archiveRequest, err error) {
	var name string
	r.Settings, err = settings.Parse(command, args, std, func(fs *flag.FlagSet) {
		fs.StringVar(&r.at, flagName, "", usage)
		fs.StringVar(&name, "journal", "", "journal (default: all)")
		fs.StringVar(&r.keyFile, "key-file", "", "file with a key of 32 bytes in base64 that seals the archive in place of the master key, for a reader outside the venue")
		if command == "log archive" {
			fs.BoolVar(&r.list, "list", false, "print what the archive holds, and archive nothing; --to is then by default the bucket of --archive-url or --blob-url")
		}
		settings.JSONFlag(fs, &r.json)
	})
	if err != nil {
		return r, err
	}
	if r.at == "" && r.list {
		if r.at, err = r.ArchiveBucketURL(); err != nil {
			return r, err
		}
	}
	if r.at == "" {
		return r, settings.Usagef("--%s is needed", flagName)
	}
	if err := blob.CheckURL(r.at); err != nil {
		return r, settings.Usagef("--%s: %v", flagName, err)
	}
	if command == "log archive" && !r.list {
		if r.retained, err = r.ArchiveRetention(r.at); err != nil {
			return r, err
		}
	}
	r.journals, err = journals.All().Only(name)
	return r, err
}

// open opens the bucket and the venue's master key. config returns the archive of a journal there.
func (r *archiveRequest) open(ctx context.Context, at string) (config func(journal string) archive.Config, done func(), err error) {
	box, err := r.box(ctx)
	if err != nil {
		return nil, nil, err
	}
	bucket, err := blob.Open(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	if _, err := settings.CheckLocks(ctx, r.retained, bucket, at); err != nil {
		bucket.Close()
		return nil, nil, err
	}
	store := blob.NewStore(bucket)
	return func(journal string) archive.Config {
		c := r.ArchiveConfig(store, box, journal, 0)
		c.Retention = r.retained
		return c
	}, func() { bucket.Close() }, nil
}

// box returns the key that seals the archive.
func (r *archiveRequest) box(ctx context.Context) (*seal.Box, error) {
	if r.keyFile != "" {
		return settings.ReadKey("key-file", r.keyFile)
	}
	return r.FindMaster(ctx)
}

// ArchiveLog archives the journals, or one of them, in a bucket: all full ranges, and later records as the tail. The venue may be
// running, also in the role archive. ArchiveLog then reads the archive back and verifies it. If the bucket is the one that the venue
// trims by, ArchiveLog renews the copies of the archive's head. With --list it prints what an archive
// holds instead.
func ArchiveLog(ctx context.Context, args []string, std settings.IO) error {
	r, err := parseArchive("log archive", "to", "URL of the bucket to archive to: file, or in binaries for clouds s3, gs, azblob", args, std)
	if err != nil {
		return err
	}
	if r.list {
		return r.listArchives(ctx, std)
	}
	isVenueArchive, err := r.isVenueArchive()
	if err != nil {
		return err
	}
	config, done, err := r.open(ctx, r.at)
	if err != nil {
		return err
	}
	defer done()
	client, stop, err := OpenLog(ctx, r.Settings)
	if err != nil {
		return err
	}
	defer stop()
	former := newArchives(r.Settings)
	defer former.close()
	var complete []archive.Config
	err = each(&r, std, func(j journals.Journal) (archived, error) {
		if _, err := prepareLog(ctx, r.Settings, client, j, 0, std.Err); err != nil {
			return archived{}, err
		}
		past := func() (*archive.Archive, error) { return former.archive(ctx, j.Name(), 0) }
		if err := archiveJournal(ctx, client, j.Rules, config(j.Name()), past, everySecond(j.Name()+", archived", std.Progress())); err != nil {
			if !errors.Is(err, archive.ErrTailKept) {
				return archived{}, fmt.Errorf("%s: %w", j.Name(), err)
			}
			fmt.Fprintf(std.Err, "%s: the records after the last full range are not archived: %v\n", j.Name(), err)
		}
		done, err := verifyArchive(ctx, config(j.Name()), nil, std)
		if err == nil {
			complete = append(complete, config(j.Name()))
		}
		return done, err
	})
	if err != nil || !isVenueArchive {
		return err
	}
	return keepHeads(ctx, r.Settings, complete)
}

// isVenueArchive reports whether the archive is the one that the venue trims by.
func (r *archiveRequest) isVenueArchive() (bool, error) {
	at, err := r.ArchiveBucketURL()
	return r.keyFile == "" && err == nil && blob.Same(r.at, at), err
}

// heads returns the heads in the data folder that the archive must continue. It returns nil unless the archive is the one that the venue
// trims by.
func (r *archiveRequest) heads() (archive.Heads, error) {
	is, err := r.isVenueArchive()
	if err != nil || !is {
		return nil, err
	}
	return r.ArchiveHeads(), nil
}

// openArchive opens an archive, which must continue the head that heads has, unless heads is nil.
func openArchive(ctx context.Context, cfg archive.Config, heads archive.Heads) (*archive.Archive, error) {
	if heads == nil {
		return archive.Open(ctx, cfg)
	}
	return archive.OpenContinuing(ctx, cfg, heads)
}

// VerifyArchive reads an archive and verifies every record in it. It needs no log. An archive that lost its last ranges is sound in itself.
// So the archive that the venue trims by must also continue the heads that the data folder keeps. A bucket without an archive is an error.
func VerifyArchive(ctx context.Context, args []string, std settings.IO) error {
	r, err := parseArchive("log verify", "archive", "URL of the bucket with the archive", args, std)
	if err != nil {
		return err
	}
	heads, err := r.heads()
	if err != nil {
		return err
	}
	config, done, err := r.open(ctx, settings.Existing(r.at))
	if err != nil {
		return err
	}
	defer done()
	isEmpty := true
	err = each(&r, std, func(j journals.Journal) (archived, error) {
		done, err := verifyArchive(ctx, config(j.Name()), heads, std)
		isEmpty = isEmpty && done.Sequence < 0
		return done, err
	})
	if err == nil && isEmpty {
		err = noArchive(r.journals, r.at)
	}
	return err
}

// noArchive returns the error of a bucket without an archive of the journals.
func noArchive(of journals.Table, at string) error {
	return fmt.Errorf("there is no archive of %s in %s", strings.Join(of.Names(), ", "), at)
}

// requireArchive returns an error unless the bucket has records of one of the journals.
func requireArchive(ctx context.Context, of journals.Table, at string, config func(journal string) archive.Config) error {
	for _, j := range of {
		a, err := archive.Open(ctx, config(j.Name()))
		if err != nil || wholelog.End(a) != nil {
			return err
		}
	}
	return noArchive(of, at)
}

// each does the work for all journals and prints the results.
func each[T interface{ print(io.Writer) }](r *archiveRequest, std settings.IO, work func(journals.Journal) (T, error)) error {
	all := []T{}
	for _, j := range r.journals {
		one, err := work(j)
		if err != nil {
			return err
		}
		all = append(all, one)
		if !r.json {
			one.print(std.Out)
		}
	}
	if r.json {
		return std.PrintJSON(all)
	}
	return nil
}

func (a archived) print(out io.Writer) {
	if a.Sequence < 0 {
		fmt.Fprintf(out, "%s: the archive is empty\n", a.Journal)
		return
	}
	fmt.Fprintf(out, "%s: %d ranges and %d records after them, %d records in all and %d that readers skip; %d bytes for %d bytes of values (%.2f %%); it ends with sequence %d, hash %s\n",
		a.Journal, a.Ranges, a.Tail, a.Records, a.Skipped, a.Bytes, a.Values, 100*float64(a.Bytes)/float64(max(a.Values, 1)), a.Sequence, a.Hash)
}

// archiveJournal archives the records of a log up to its current end. It changes nothing in an archive that the log does not continue. It copies records that were
// trimmed from the topic from the archive of the trim, which former opens. The error is an archive.ErrTailKept if only the records
// after the last full range are not archived. tell, if it is not nil, is called with the number of
// records that the archive has.
func archiveJournal(ctx context.Context, client *journal.Client, rules decide.Rules, cfg archive.Config, former func() (*archive.Archive, error), tell func(int64)) error {
	writer, err := archive.NewWriter(ctx, cfg)
	if err != nil {
		return err
	}
	if err := writer.Holds(ctx, func(at record.Position) archive.Source {
		return journal.NewRawReader(client, rules, cfg.Partition, at)
	}); err != nil {
		return err
	}
	w := &toldWriter{Writer: writer, tell: tell}
	r := journal.NewRawReader(client, rules, cfg.Partition, w.Position())
	defer func() { r.Close() }()
	at, err := r.Locate(ctx)
	var trimmed *record.TrimmedError
	if errors.As(err, &trimmed) {
		if err = copyPast(ctx, w, trimmed, client.Topic(cfg.Journal), former); err != nil {
			return err
		}
		r.Close()
		r = journal.NewRawReader(client, rules, cfg.Partition, w.Position())
		at, err = r.Locate(ctx)
	}
	if err != nil {
		return err
	}
	w.Align(at.Offset)
	err = client.ToTip(ctx, cfg.Journal, cfg.Partition, func(some context.Context, end int64) error {
		for r.NextOffset() < end {
			records, err := r.Poll(some)
			if err != nil {
				return err
			}
			for _, k := range records {
				if err := w.Add(ctx, k); err != nil {
					return err
				}
			}
			if has, read := w.Position(), r.Position(); !has.Equal(read) {
				return fmt.Errorf("the log was read up to %v, and the records archived lead to %v", read, has)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := w.Sweep(ctx); err != nil {
		return err
	}
	return w.Tail(ctx)
}

// toldWriter is a writer that reports its progress.
type toldWriter struct {
	*archive.Writer
	tell func(records int64) // nil if nobody listens
}

// Add archives a record.
func (w *toldWriter) Add(ctx context.Context, r *kgo.Record) error {
	before := w.Position().Sequence
	err := w.Writer.Add(ctx, r)
	if n := w.Position().Sequence; err == nil && w.tell != nil && n > before {
		w.tell(n + 1)
	}
	return err
}

// copyPast archives the records from the writer's position up to the base of a trimmed log, with those that readers skip, from the
// archive that has them.
func copyPast(ctx context.Context, w *toldWriter, trimmed *record.TrimmedError, topic string, former func() (*archive.Archive, error)) error {
	b := trimmed.Base
	missing := func(why error) error {
		return fmt.Errorf("the topic begins at record %d, and the archive needs the records from %d on, which the archive named by --archive-url does not give: %w",
			b.Sequence, w.Position().Sequence+1, why)
	}
	from, err := former()
	if err == nil {
		err = wholelog.Reaches(from, b)
	}
	if err != nil {
		return missing(err)
	}
	for r, err := range from.Records(ctx, topic, w.Position().Sequence+1, b.Sequence+1) {
		if err != nil {
			return missing(err)
		}
		if prev, sequence, ok := record.PrevOf(r.Value); ok && sequence == b.Sequence && prev == b.Prev {
			break // the topic has it
		}
		if err := w.Add(ctx, r); err != nil {
			return err
		}
	}
	if !w.Position().Equal(b.Before()) {
		return missing(fmt.Errorf("it leads to %v, and the base follows %v", w.Position(), b.Before()))
	}
	return nil
}

// verifyArchive verifies the archive of a journal. The archive must continue the head that heads has, unless heads is nil.
func verifyArchive(ctx context.Context, cfg archive.Config, heads archive.Heads, std settings.IO) (archived, error) {
	a, err := openArchive(ctx, cfg, heads)
	if err != nil {
		return archived{}, err
	}
	s, err := a.Verify(ctx, everySecond(cfg.Journal+", verified", std.Progress()))
	if err != nil {
		return archived{}, err
	}
	return archived{Journal: cfg.Journal, Ranges: s.Ranges, Records: s.Records, Skipped: s.Skipped, Tail: s.Tail, Values: s.Values, Bytes: s.Bytes,
		Sequence: s.Base.Sequence - 1, Hash: s.Base.Prev.String()}, nil
}
