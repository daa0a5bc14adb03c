package tools

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Log prints the valid records of a journal, byte for byte as in the log, one per line. It verifies the chain and fails
// at the first record that breaks it. It reads from genesis or, if only later records are requested, from the last known
// position before them. It takes the records before the base of a trimmed log from the archive. Without an archive it reads from
// the base, and fails with LOG_TRIMMED if earlier records are requested. If the log lacks any known position, Log prints all records that exist and then fails
// with LOG_DIVERGED. `perpetua log copy` is CopyLog, `archive` is ArchiveLog, and so on.
func Log(ctx context.Context, args []string, std settings.IO) (failed error) {
	if len(args) > 0 {
		switch args[0] {
		case "copy":
			return CopyLog(ctx, args[1:], std)
		case "archive":
			return ArchiveLog(ctx, args[1:], std)
		case "verify":
			return VerifyArchive(ctx, args[1:], std)
		case "trim":
			return TrimLog(ctx, args[1:], std)
		case "restore":
			return RestoreLog(ctx, args[1:], std)
		case "compat":
			return CompatLog(ctx, args[1:], std)
		case "parquet":
			return ParquetLog(ctx, args[1:], std)
		}
	}
	var name string
	var follow, all, asJSON bool
	filter := logFilter{}
	s, err := settings.Parse("log", args, std, func(fs *flag.FlagSet) {
		fs.StringVar(&name, "journal", journals.Trading, "journal to read")
		fs.Int64Var(&filter.from, "from", 0, "first sequence to print; the chain is checked from the last position before it that the tables or a snapshot remember, or else from the genesis on")
		fs.Int64Var(&filter.to, "to", math.MaxInt64, "last sequence to print")
		fs.BoolVar(&all, "check-all", false, "check the chain from the genesis on, also with --from")
		fs.StringVar(&filter.kind, "type", "", "only records whose command or an event has this type")
		fs.StringVar(&filter.customer, "customer", "", "only records that concern this customer")
		fs.BoolVar(&asJSON, "json", false, "print JSON, one record a line, as this command does anyway")
		fs.BoolVar(&follow, "follow", false, "wait for new records, until interrupted")
	})
	if err != nil {
		return err
	}
	j, err := journals.All().Of(name)
	if err != nil {
		return err
	}
	if err := filter.check(j); err != nil {
		return err
	}
	client, stop, err := OpenLog(ctx, s)
	if err != nil {
		return err
	}
	defer stop()
	seek := filter.from
	if all {
		seek = 0
	}
	start, held := prepareLog(ctx, s, client, j, seek, std.Err)
	var trimmed *record.TrimmedError
	var base *record.BaseError // without its base, no reader knows where the log begins
	if held != nil && (follow || errors.As(held, &trimmed) || errors.As(held, &base)) {
		return held
	}
	if filter.from <= filter.to && filter.to <= start.Sequence { // a trimmed log
		return cmp.Or(beforeBase(ctx, client, name, filter.to), held)
	}
	defer func() { failed = cmp.Or(failed, held) }() // the records are printed first: the user may be looking for just those
	out := bufio.NewWriterSize(std.Out, 1<<16)
	err = printLog(ctx, client, j.Rules, start, filter, follow, out)
	return errors.Join(err, out.Flush())
}

// beforeBase returns a *record.TrimmedError for a record before the base of a log.
func beforeBase(ctx context.Context, client *journal.Client, name string, sequence int64) error {
	b, _, err := client.Base(ctx, name, 0)
	if err == nil && b != nil {
		err = &record.TrimmedError{Base: *b, Have: record.Position{Sequence: sequence}}
	}
	return err
}

// prepareLog checks a log against the known positions, and returns the position from which the chain must be verified
// for records from a sequence on. It stops the services that it started for this, because a log may be followed for
// days.
func prepareLog(ctx context.Context, s *settings.Settings, client *journal.Client, j journals.Journal, from int64, out io.Writer) (start record.Position, err error) {
	known := openAtHand(ctx, s)
	defer known.close()
	known.addBases(client)
	start = record.Before
	begins, lacks, err := client.Beginning(ctx, j.Name(), 0)
	if err != nil {
		return begins, err
	}
	if lacks != nil {
		fmt.Fprintf(out, "perpetua: %s begins at record %d: %v\n", j.Name(), begins.Sequence+1, lacks)
	}
	switch {
	case from > 0 && from <= begins.Sequence:
		// The topic may hold records before the base, and no chain leads to them but from a position.
		start = known.startBefore(ctx, j.Name(), from, record.Before, out)
		if start.IsBefore() {
			start.Sequence = from - 1
		}
		if err := client.Holds(ctx, j.Rules, 0, start); err != nil {
			return start, err
		}
	case from > 0 || !begins.IsBefore():
		start = known.startBefore(ctx, j.Name(), from, begins, out)
	}
	return start, known.holdOrTell(ctx, client, out, j)
}

// OpenLog returns a client of the log that the settings name: that of the named brokers, or that of the node that runs
// on the data folder, or else the folder's log, served until the returned function is called.
func OpenLog(ctx context.Context, s *settings.Settings) (*journal.Client, func(), error) {
	brokers, stop := s.Brokers(), func() {}
	if len(brokers) == 0 {
		var err error
		if brokers, stop, err = folderBrokers(ctx, s.Data, s.Progress); err != nil {
			return nil, nil, err
		}
	}
	config, err := s.JournalConfig(brokers)
	if err != nil {
		stop()
		return nil, nil, err
	}
	client, err := journal.NewClient(config)
	if err != nil {
		stop()
		return nil, nil, err
	}
	if err := addFolderBases(s, client); err != nil {
		client.Close()
		stop()
		return nil, nil, err
	}
	archives := newArchives(s)
	client.SetHistory(archives.history())
	return client, func() { client.Close(); archives.close(); stop() }, nil
}

// errPrinted ends the reading after the last requested record.
var errPrinted = errors.New("everything that is wanted is printed")

// printLog writes the records after a position that pass the filter, up to the current end of the log or, with follow,
// until the context ends.
func printLog(ctx context.Context, client *journal.Client, rules decide.Rules, start record.Position, filter logFilter, follow bool, out *bufio.Writer) error {
	r := journal.NewReader(client, rules, 0, start)
	r.Audit()
	defer r.Close()
	print := func(entries []record.Entry) error {
		for _, e := range entries {
			if e.Record.Sequence > filter.to {
				return errPrinted
			}
			if !filter.passes(e) {
				continue
			}
			if _, err := fmt.Fprintf(out, "%s\n", e.Value); err != nil {
				return err
			}
		}
		return nil
	}
	err := r.ToTip(ctx, print)
	if err == nil && !follow && r.Position().IsBefore() {
		return fmt.Errorf("the journal %s is empty", rules.Journal())
	}
	for err == nil && follow {
		var entries []record.Entry
		if err = out.Flush(); err == nil {
			if entries, err = r.Poll(ctx); err == nil {
				err = print(entries)
			}
		}
	}
	if errors.Is(err, errPrinted) || follow && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
