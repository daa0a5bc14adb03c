package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
	"github.com/perpetua-exchange/perpetua/streams/trim"
)

// trimmed is the JSON output of a trim for one journal.
type trimmed struct {
	Journal  string       `json:"journal"`
	From     int64        `json:"from"`         // first record that the topic had to hold
	To       int64        `json:"to"`           // first record that it must hold now
	Compared int64        `json:"compared"`     // records read back from the archive and compared with the topic
	Start    int64        `json:"start_offset"` // lowest offset that is left; -1 if nothing was deleted
	Limits   []trim.Limit `json:"limits"`
	Why      []trim.Limit `json:"why"` // the limits that allow no later record
	DryRun   bool         `json:"dry_run"`
}

// trimRequest holds the arguments of a trim.
type trimRequest struct {
	*settings.Settings
	journals journals.Table
	policy   trim.Policy
	witness  *transparency.Policy // of the policy's quorum
	json     bool
}

func parseTrim(args []string, std settings.IO) (r trimRequest, err error) {
	var name, before string
	r.Settings, err = settings.Parse("log trim", args, std, func(fs *flag.FlagSet) {
		fs.StringVar(&name, "journal", "", "journal (default: all)")
		fs.Int64Var(&r.policy.Keep, "keep", 0, "keep this many of the last archived records, in addition to those that --trim-after keeps")
		fs.StringVar(&before, "before", "", "keep records that are not older than this time, like 2026-01-31T00:00:00Z")
		fs.BoolVar(&r.policy.DryRun, "dry-run", false, "compare and report, but delete nothing")
		settings.JSONFlag(fs, &r.json)
	})
	if err != nil {
		return r, err
	}
	if before != "" {
		if r.policy.Before, err = time.Parse(time.RFC3339, before); err != nil {
			return r, settings.Usagef("--before takes a time like 2026-01-31T00:00:00Z, not %q", before)
		}
	}
	if r.policy.Keep < 0 {
		return r, settings.Usagef("--keep takes a number of records, not %d", r.policy.Keep)
	}
	p, err := r.TrimPolicy()
	if err != nil {
		return r, err
	}
	r.policy.After, r.policy.Quorum, r.witness = p.After, p.Quorum, p.Witnesses
	r.journals, err = journals.All().Only(name)
	return r, err
}

// TrimLog deletes the records of the journals, or of one journal, that the archive holds and that nothing needs. It reads them back
// from the archive first and compares them with the topic. If a node runs on an embedded broker, TrimLog can only report.
func TrimLog(ctx context.Context, args []string, std settings.IO) error {
	r, err := parseTrim(args, std)
	if err != nil {
		return err
	}
	t, done, err := openTrimming(ctx, r)
	if err != nil {
		return err
	}
	defer done()
	all := []trimmed{}
	for _, j := range r.journals {
		report, err := t.Run(ctx, j, r.policy, false, everySecond(j.Name()+", compared", std.Progress()))
		if err != nil {
			return err
		}
		if !r.json {
			printTrim(std.Out, report, r.policy.DryRun)
		}
		all = append(all, trimmed{report.Journal, report.From, report.To, report.Compared, report.Start,
			append([]trim.Limit{}, report.Limits...), append([]trim.Limit{}, report.Why...), r.policy.DryRun})
	}
	if r.json {
		return std.PrintJSON(all)
	}
	return nil
}

func printTrim(out io.Writer, r trim.Report, dry bool) {
	switch {
	case !r.Trimmed():
		fmt.Fprintf(out, "%s: nothing is trimmed; the log begins at record %d\n", r.Journal, r.From)
	case dry:
		fmt.Fprintf(out, "%s: would be trimmed to record %d; the log begins at record %d, and %d records equal the archive's\n", r.Journal, r.To, r.From, r.Compared)
	default:
		fmt.Fprintf(out, "%s: trimmed to record %d, after %d records were compared with the archive; the topic begins at offset %d\n", r.Journal, r.To, r.Compared, r.Start)
	}
	for _, l := range r.Why {
		fmt.Fprintf(out, "  no further: from record %d on, %s\n", l.First, l.Reason)
	}
}

// errRuns is the error of a command that needs the broker of a data folder for itself.
var errRuns = errors.New("a node runs on the data folder")

// checkTrimmed returns an error unless the settings may name a log to trim. A follower of an archive has its own copy of the log. Of
// another log, its rows and snapshots do not say how far it may be trimmed.
func checkTrimmed(s *settings.Settings) error {
	follows, own := (&local.Folder{Dir: s.Data}).Follows(), len(s.Brokers()) == 0
	switch {
	case own && follows == local.FollowsBrokers, !own && keysOfFollower(s):
		return fmt.Errorf("the folder %s is that of a follower, and only the venue trims the log on its brokers", s.Data)
	case s.Stores.ArchiveKey != "" && !(own && follows == local.FollowsArchive):
		return settings.Usagef("--archive-key-file is for the data folder of a node that follows an archive: a venue trims by the archive of its own master key")
	}
	return nil
}

// openTrimming opens the parts of the venue that the settings name.
func openTrimming(ctx context.Context, r trimRequest) (t journals.Trimming, done func(), err error) {
	if err := checkTrimmed(r.Settings); err != nil {
		return t, nil, err
	}
	var opened []func()
	closeAll := func() {
		for _, shut := range slices.Backward(opened) {
			shut()
		}
	}
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	client, embedded, stop, err := openTrimmable(ctx, r.Settings, r.policy.DryRun)
	if errors.Is(err, errRuns) {
		err = fmt.Errorf("%w, and its broker deletes records only by itself: it does so while --trim is on; stop it to trim now, or add --dry-run", err)
	}
	if err != nil {
		return t, nil, err
	}
	opened = append(opened, stop)
	rows, closeRows, err := OpenReadModels(ctx, r.Settings)
	if err != nil {
		return t, nil, err
	}
	opened = append(opened, closeRows)
	if err := needTablesOf(ctx, rows); err != nil {
		return t, nil, err
	}
	client.AddBases(projections.Bases{Pool: rows})
	at := withRows(ctx, r.Settings, rows)
	opened = append(opened, at.close)
	if at.failed != nil {
		return t, nil, at.failed
	}
	archives := newArchives(r.Settings)
	opened = append(opened, archives.close)
	if _, err := archives.config(ctx, "", 0); err != nil {
		return t, nil, err
	}
	keepers, err := keepers(r.Settings, rows)
	if err != nil {
		return t, nil, err
	}
	t = journals.Trimming{Client: client, Trimmer: client.Trimmer(), Rows: rows, Keepers: keepers, TLogHost: r.TLog.Host, Witnesses: r.witness, Known: at.known(client), Heads: at.heads,
		Archive: func(name string) archive.Config { return r.ArchiveConfig(archives.store, archives.box, name, 0) }}
	if at.saved != nil {
		t.Snapshots = at.saved.snapshots
	}
	if embedded != nil {
		t.Trimmer = embedded
	}
	return t, closeAll, nil
}

// keepers returns the places for the copies of the base: Postgres, and the data folder if it belongs to the log.
func keepers(s *settings.Settings, rows *pgxpool.Pool) ([]base.Keeper, error) {
	all := []base.Keeper{projections.Bases{Pool: rows}}
	ours, _, err := folderOfLog(s)
	if err == nil && ours {
		all = append(all, s.Bases())
	}
	return all, err
}

// openTrimmable opens a log that can be trimmed. For a data folder on which no node runs, it starts the broker, which is then the
// trimmer. If a node runs there, the error is errRuns.
func openTrimmable(ctx context.Context, s *settings.Settings, dry bool) (client *journal.Client, embedded *broker.Broker, stop func(), err error) {
	if len(s.Brokers()) > 0 || dry {
		client, stop, err = OpenLog(ctx, s)
		return client, nil, stop, err
	}
	path := local.Folder{Dir: s.Data}
	if _, runs, err := local.ReadRunFile(path.Path("run.json")); err != nil {
		return nil, nil, nil, err
	} else if runs {
		return nil, nil, nil, errRuns
	}
	folder, err := local.OpenFolder(s.Data)
	if err != nil {
		return nil, nil, nil, err
	}
	b, err := broker.Start(ctx, broker.Config{Dir: folder.Path("kafka"), Sync: true, SegmentBytes: s.SegmentBytes, Logger: slog.New(slog.DiscardHandler), Checked: tellChecked(s.Progress, time.Now)})
	if err != nil {
		folder.Close()
		return nil, nil, nil, err
	}
	closeBroker := func() { b.Close(); folder.Close() }
	config, err := s.JournalConfig(b.Addrs())
	if err == nil {
		client, err = journal.NewClient(config)
	}
	if err == nil {
		err = addFolderBases(s, client)
	}
	if err != nil {
		closeBroker()
		return nil, nil, nil, err
	}
	return client, b, func() { client.Close(); closeBroker() }, nil
}
