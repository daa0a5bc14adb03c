package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

// recordSource passes the valid records of a journal after a position to add, up to the current end of the log. If known is false, only
// the sequence of the position is known. Otherwise the error is a *record.DivergedError if the log does not hold the position. It is a
// *record.TrimmedError if the log begins later.
type recordSource func(ctx context.Context, rules decide.Rules, after record.Position, known bool, add func(*record.Entry) error) error

// topicSource reads topics, and takes records before the base of a trimmed topic from the archive. It first compares each log with all
// known positions, and prints on out which stores could not be asked for them.
func topicSource(s *settings.Settings, client *journal.Client, out io.Writer) recordSource {
	return func(ctx context.Context, rules decide.Rules, after record.Position, known bool, add func(*record.Entry) error) error {
		seek := after.Sequence + 1
		if known {
			seek = 0
		}
		start, err := prepareLog(ctx, s, client, journals.Journal{Rules: rules}, seek, out)
		if err != nil {
			return err
		}
		if start.Sequence > after.Sequence {
			err := beforeBase(ctx, client, rules.Journal(), after.Sequence+1)
			return cmp.Or(err, fmt.Errorf("the log of %s begins after record %d", rules.Journal(), after.Sequence+1))
		}
		if known {
			start = after
		}
		r := journal.NewReader(client, rules, 0, start)
		r.Audit()
		defer r.Close()
		return r.ToTip(ctx, func(entries []record.Entry) error {
			for i := range entries {
				if entries[i].Position.Sequence <= after.Sequence {
					continue
				}
				if err := add(&entries[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// fileSource reads a file that log copy wrote.
func fileSource(path string) recordSource {
	all := journals.All().Names()
	return func(ctx context.Context, rules decide.Rules, after record.Position, known bool, add func(*record.Entry) error) error {
		return readLog(ctx, transfer.Source(path, rules.Journal(), all...), rules, after, known, add)
	}
}

// archiveSource reads archives, from the last full range on that ends before the records.
func archiveSource(config func(journal string) archive.Config) recordSource {
	return func(ctx context.Context, rules decide.Rules, after record.Position, known bool, add func(*record.Entry) error) error {
		a, err := archive.Open(ctx, config(rules.Journal()))
		if err != nil {
			return err
		}
		from := int64(0)
		for _, s := range a.Sealed() {
			if s.Base.Sequence <= after.Sequence+1 {
				from = s.Base.Sequence
			}
		}
		return readLog(ctx, wholelog.Archived(a, rules.Journal(), from), rules, after, known, add)
	}
}

// readLog is a recordSource of one log. A log that was edited, or lacks a record, is a *record.DivergedError once it was read to its end.
func readLog(ctx context.Context, log transfer.Log, rules decide.Rules, after record.Position, known bool, add func(*record.Entry) error) error {
	chain := record.NewChain(rules, 0, record.Before)
	b, err := log.Base(ctx)
	if err != nil {
		return err
	}
	if b != nil {
		if b.Sequence > after.Sequence+1 {
			return &record.TrimmedError{Base: *b, Have: record.Position{Sequence: after.Sequence + 1}}
		}
		chain.StartAt(*b)
	}
	chain.DecodeFrom(after.Sequence + 1)
	tear := record.NewTear(chain)
	records, err := log.Records(ctx)
	if err != nil {
		return err
	}
	defer records.Close()
	for {
		if at := chain.Position(); known && at.Sequence == after.Sequence && at.Hash != after.Hash {
			return &record.DivergedError{Journal: rules.Journal(), Have: after, Found: at, Reason: "the files were written from another log"}
		}
		r, err := records.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		e, ok, err := chain.Admit(r.Offset, r.Value)
		if err != nil {
			return err
		}
		if !ok {
			journal.Skip(tear, rules.Journal(), r)
			continue
		}
		tear.Admit(e.Position)
		if e.Position.Sequence <= after.Sequence {
			continue
		}
		if err := add(&e); err != nil {
			return err
		}
	}
	if err := tear.Torn(); err != nil {
		return err
	}
	if at := chain.Position(); known && at.Sequence < after.Sequence {
		return &record.DivergedError{Journal: rules.Journal(), Have: after, Found: at, Reason: "the log ends before it"}
	}
	return nil
}
