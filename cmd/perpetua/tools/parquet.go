package tools

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
)

// exported is the JSON output of ParquetLog for one journal.
type exported struct {
	Journal  string `json:"journal"`
	Records  int64  `json:"records"`  // that were read; the records of a last file that was replaced count again
	Rows     int64  `json:"rows"`     // of these records
	Files    int64  `json:"files"`    // that were written or replaced
	Sequence int64  `json:"sequence"` // of the last record in the files; -1 if there is none
}

// parquetRequest holds the arguments of `perpetua log parquet`.
type parquetRequest struct {
	*settings.Settings
	to            string // folder
	file, archive string // where the log is; both are empty for the topics
	from          int64  // first record; -1 if it is not given
	journals      journals.Table
	json          bool
}

func parseParquet(args []string, std settings.IO) (r parquetRequest, err error) {
	var name string
	r.from = -1
	r.Settings, err = settings.Parse("log parquet", args, std, func(fs *flag.FlagSet) {
		fs.StringVar(&r.to, "to", "", "folder to write to; a later run adds the new records")
		fs.StringVar(&r.file, "file", "", "read the logs in a file that log copy wrote")
		fs.StringVar(&r.archive, "archive", "", "read the archive in a bucket, named by its URL")
		fs.StringVar(&name, "journal", "", "journal: trading or onboarding (default: both)")
		fs.Func("from", "`record` to begin with, rounded down to the beginning of a range (default: the first file, or 0 in a new folder)", r.parseFrom)
		settings.JSONFlag(fs, &r.json)
	})
	if err != nil {
		return r, err
	}
	if r.journals, err = journals.All().Only(name); err != nil {
		return r, err
	}
	r.journals = slices.DeleteFunc(r.journals, func(j journals.Journal) bool { return !slices.Contains(dataset.Journals(), j.Name()) })
	switch {
	case r.to == "":
		return r, settings.Usagef("--to is needed")
	case len(r.journals) == 0:
		return r, settings.Usagef("the journal %s has no tables", name)
	case r.isVenue():
		return r, settings.Usagef("--to: %s is the data folder of a venue; name another folder", r.to)
	case r.from >= 0 && name == "":
		return r, settings.Usagef("--from needs --journal")
	case r.file != "" && r.archive != "":
		return r, settings.Usagef("--file and --archive name two logs")
	}
	if r.archive != "" {
		if err := blob.CheckURL(r.archive); err != nil {
			return r, settings.Usagef("--archive: %v", err)
		}
	}
	return r, nil
}

// parseFrom parses the argument of --from.
func (r *parquetRequest) parseFrom(text string) (err error) {
	if r.from, err = strconv.ParseInt(text, 10, 64); err != nil || r.from < 0 {
		return errors.New("it takes the sequence of a record")
	}
	return nil
}

// isVenue reports whether the folder to write to is the data folder of a venue: the one of the settings, or one with a log or a node's id.
func (r *parquetRequest) isVenue() bool {
	to, err := os.Stat(r.to)
	if err != nil {
		return filepath.Clean(r.to) == filepath.Clean(r.Data)
	}
	data, err := os.Stat(r.Data)
	if err == nil && os.SameFile(to, data) {
		return true
	}
	for _, name := range []string{"kafka", "node-id"} {
		if _, err := os.Stat(filepath.Join(r.to, name)); err == nil {
			return true
		}
	}
	return false
}

// ParquetLog writes the tables of the journals, or of one journal, as Parquet files. It reads only records that full files do not
// have. The venue may be running.
func ParquetLog(ctx context.Context, args []string, std settings.IO) error {
	r, err := parseParquet(args, std)
	if err != nil {
		return err
	}
	source, done, err := r.open(ctx, std)
	if err != nil {
		return err
	}
	defer done()
	folder, err := local.OpenFolder(r.to) // locks the folder, because two writers would take each other's unfinished files
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	defer folder.Close()
	all := []exported{}
	for _, j := range r.journals {
		one, err := r.export(ctx, j, source, std)
		if err != nil {
			return fmt.Errorf("%s: %w", j.Name(), err)
		}
		if all = append(all, one); !r.json {
			one.print(std.Out, r.to)
		}
	}
	if r.json {
		return std.PrintJSON(all)
	}
	return nil
}

// open opens the log that the arguments name.
func (r *parquetRequest) open(ctx context.Context, std settings.IO) (source recordSource, done func(), err error) {
	switch {
	case r.archive != "":
		a := archiveRequest{Settings: r.Settings}
		config, done, err := a.open(ctx, settings.Existing(r.archive))
		if err != nil {
			return nil, nil, err
		}
		if err := requireArchive(ctx, r.journals, r.archive, config); err != nil {
			done()
			return nil, nil, err
		}
		return archiveSource(config), done, nil
	case r.file != "":
		_, err := transfer.Held(ctx, r.file, r.journals.Names())
		return fileSource(r.file), func() {}, err
	}
	client, done, err := OpenLog(ctx, r.Settings)
	return topicSource(r.Settings, client, std.Err), done, err
}

// export writes the files of a journal.
func (r *parquetRequest) export(ctx context.Context, j journals.Journal, source recordSource, std settings.IO) (exported, error) {
	w, err := dataset.NewWriter(dataset.Config{Dir: r.to, Journal: j.Name(), Range: cmp.Or(r.ArchiveRange, archive.RangeRecords), From: r.from})
	if err != nil {
		return exported{}, err
	}
	defer w.Abandon()
	read, report := int64(0), everySecond(j.Name(), std.Progress())
	after, known := w.After()
	err = source(ctx, j.Rules, after, known, func(e *record.Entry) error {
		if read++; report != nil {
			report(read)
		}
		return w.Add(e)
	})
	if err != nil {
		return exported{}, err
	}
	sum, err := w.Finish()
	return exported{Journal: j.Name(), Records: sum.Records, Rows: sum.Rows, Files: sum.Files, Sequence: sum.Next - 1}, err
}

func (e exported) print(out io.Writer, folder string) {
	if e.Sequence < 0 {
		fmt.Fprintf(out, "%s: the log is empty\n", e.Journal)
		return
	}
	fmt.Fprintf(out, "%s: %d records read with %d rows; %d files were written to %s, which ends with record %d\n",
		e.Journal, e.Records, e.Rows, e.Files, folder, e.Sequence)
}
