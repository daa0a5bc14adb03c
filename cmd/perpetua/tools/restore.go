package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

// restored is the JSON output of a restore for one journal.
type restored struct {
	Journal  string `json:"journal"`
	From     int64  `json:"from"`     // first record that the topic must hold
	Found    int64  `json:"found"`    // records of the archive that the topic had
	Appended int64  `json:"appended"` // with those that readers skip
	Sequence int64  `json:"sequence"` // of the last valid record of the archive; -1 if it is empty
	Hash     string `json:"hash"`
}

// restoreRequest holds the arguments of a restore.
type restoreRequest struct {
	*settings.Settings
	journals journals.Table
	from     int64
	json     bool
}

// RestoreLog makes the topics of the journals, or of one, hold what the archive has. It creates missing topics, and appends to
// others only what comes after their end. The venue must not run.
func RestoreLog(ctx context.Context, args []string, std settings.IO) error {
	var r restoreRequest
	var name string
	var err error
	r.Settings, err = settings.Parse("log restore", args, std, func(fs *flag.FlagSet) {
		fs.StringVar(&name, "journal", "", "journal (default: all)")
		fs.Int64Var(&r.from, "from", 0, "first record of an empty topic, rounded down to the beginning of a range; earlier records stay in the archive only")
		settings.JSONFlag(fs, &r.json)
	})
	if err != nil {
		return err
	}
	if r.journals, err = journals.All().Only(name); err != nil {
		return err
	}
	if r.from > 0 && name == "" {
		return settings.Usagef("--from needs --journal")
	}
	archives := newArchives(r.Settings)
	defer archives.close()
	// Before the folder is touched: a missing archive must not leave an empty log there.
	if err := r.hasArchive(ctx, archives); err != nil {
		return err
	}
	client, _, stop, err := openTrimmable(ctx, r.Settings, false)
	if errors.Is(err, errRuns) {
		err = fmt.Errorf("%w: stop it to restore its log", err)
	}
	if err != nil {
		return err
	}
	defer stop()
	if len(r.Brokers()) > 0 { // otherwise this command has locked the folder
		if err := checkStopped(ctx, client, journals.All(), "brokers"); err != nil {
			return err
		}
	}
	known := openAtHand(ctx, r.Settings)
	defer known.close()
	if known.failed != nil {
		return known.failed
	}
	known.tellMissing(std.Err)
	known.addBases(client)
	all := []restored{}
	for _, j := range r.journals {
		one, err := r.restore(ctx, client, archives, known, j, std)
		if err != nil {
			return err
		}
		if all = append(all, one); !r.json {
			one.print(std.Out)
		}
	}
	if r.json {
		return std.PrintJSON(all)
	}
	return nil
}

// hasArchive returns an error unless the bucket has an archive of each of the journals. A run that leaves one out must not look like a
// restore: the next start would begin a new log of it.
func (r *restoreRequest) hasArchive(ctx context.Context, archives *archives) error {
	var missing journals.Table
	for _, j := range r.journals {
		cfg, err := archives.config(ctx, j.Name(), 0)
		if err != nil {
			return err
		}
		a, err := archive.Open(ctx, cfg)
		if err != nil {
			return err
		}
		if wholelog.End(a) == nil {
			missing = append(missing, j)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	at, err := r.ArchiveBucketURL()
	if err != nil {
		return err
	}
	hint := "--archive-url names its bucket"
	if len(missing) < len(r.journals) {
		hint = "--journal restores one journal"
	}
	return fmt.Errorf("%w; %s", noArchive(missing, at), hint)
}

func (r *restoreRequest) restore(ctx context.Context, client *journal.Client, archives *archives, known *atHand, j journals.Journal, std settings.IO) (restored, error) {
	cfg, err := archives.config(ctx, j.Name(), 0)
	if err != nil {
		return restored{}, err
	}
	a, err := archive.Open(ctx, cfg)
	if err != nil {
		return restored{}, err
	}
	one := restored{Journal: j.Name(), Sequence: -1}
	if wholelog.End(a) == nil {
		return one, nil
	}
	if err := client.EnsureTopics(ctx, j.Name()); err != nil {
		return one, err
	}
	var positions []record.Position
	for _, k := range known.known(client) {
		some, err := k.Positions(ctx, j.Name(), 0)
		if err != nil {
			return one, err
		}
		positions = append(positions, some...)
	}
	keepers, err := r.keepers(known)
	if err != nil {
		return one, err
	}
	work := wholelog.Restore{Client: client, Rules: j.Rules, Archive: a, From: r.from, Keepers: keepers, Known: positions, Progress: tellWork(j.Name(), std.Progress())}
	done, err := work.Run(ctx)
	if err != nil {
		return one, err
	}
	one.From, one.Found, one.Appended, one.Sequence, one.Hash = done.From, done.Found, done.Appended, done.End.Sequence, done.End.Hash.String()
	return one, nil
}

// keepers returns the stores for the base of a topic that does not begin with the genesis.
func (r *restoreRequest) keepers(known *atHand) (all []base.Keeper, err error) {
	if known.rows != nil {
		all = append(all, projections.Bases{Pool: known.rows})
	}
	ours, _, err := folderOfLog(r.Settings)
	if err == nil && ours {
		all = append(all, r.Bases())
	}
	if err == nil && len(all) == 0 && r.from > 0 {
		err = settings.Usagef("--from needs a place for the copy of the base: --database-url names it")
	}
	return all, err
}

func (r restored) print(out io.Writer) {
	if r.Sequence < 0 {
		fmt.Fprintf(out, "%s: the archive is empty\n", r.Journal)
		return
	}
	fmt.Fprintf(out, "%s: %d records were there and %d were appended, from record %d on; the archive ends with sequence %d, hash %s\n",
		r.Journal, r.Found, r.Appended, r.From, r.Sequence, r.Hash)
}
