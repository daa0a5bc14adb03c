package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/reference"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
	"github.com/perpetua-exchange/perpetua/streams/verify"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

// verifiable holds the logs that VerifyLog reads, and the stores to compare them with.
type verifiable struct {
	log     func(journal string) transfer.Log // of topics and files
	archive func(journal string) archive.Config
	heads   archive.Heads                                     // that the archive must continue; nil for none
	saved   *saved                                            // nil if there is no bucket with snapshots
	rows    bool                                              // the rows are to be compared
	keys    func(journal scalar.ID) (*commitment.Keys, error) // epoch keys; nil if there is no key store
	close   func()
}

// open opens the logs. Topics are compared with every known position first, as in any tool that reads them.
func (r *verifyRequest) open(ctx context.Context, std settings.IO) (*verifiable, error) {
	switch {
	case r.archive != "":
		a := archiveRequest{Settings: r.Settings, at: r.archive}
		heads, err := a.heads()
		if err != nil {
			return nil, err
		}
		config, done, err := a.open(ctx, settings.Existing(r.archive))
		if err != nil {
			return nil, err
		}
		return r.withSnapshots(ctx, &verifiable{archive: config, heads: heads, close: done})
	case r.file != "":
		if _, err := transfer.Held(ctx, r.file, r.journals.Names()); err != nil {
			return nil, err
		}
		all := journals.All().Names()
		return r.withSnapshots(ctx, &verifiable{close: func() {}, log: func(journal string) transfer.Log {
			return transfer.Source(r.file, journal, all...)
		}})
	}
	client, stop, err := OpenLog(ctx, r.Settings)
	if err != nil {
		return nil, err
	}
	known := openAtHand(ctx, r.Settings)
	known.addBases(client)
	archives := newArchives(r.Settings)
	at := &verifiable{saved: known.saved, rows: known.rows != nil && r.rows != "false" && !r.chainOnly || r.rows == "true",
		log: func(journal string) transfer.Log {
			return wholelog.Log(client, archives.history(), journal, "the log", func(lacking error) {
				fmt.Fprintf(std.Err, "perpetua: %s: %v\n", journal, lacking)
			})
		},
		close: func() { archives.close(); known.close(); stop() }}
	if r.rows == "true" && known.rows == nil {
		at.close()
		return nil, errors.Join(errors.New("no database is at hand whose rows could be compared; --database-url names it"), known.failed)
	}
	if err := known.holdOrTell(ctx, client, std.Err, r.journals...); err != nil {
		at.close()
		return nil, err
	}
	return at, nil
}

// withSnapshots opens the bucket that the settings name, to compare its snapshots with the log. That of the data folder may belong
// to another log.
func (r *verifyRequest) withSnapshots(ctx context.Context, at *verifiable) (*verifiable, error) {
	if r.Stores.BlobURL == "" || r.chainOnly {
		return at, nil
	}
	saved, err := openSaved(ctx, r.Settings)
	if err != nil {
		at.close()
		return nil, err
	}
	before := at.close
	at.saved, at.close = saved, func() { saved.close(); before() }
	return at, nil
}

// source returns the log of a journal.
func (at *verifiable) source(ctx context.Context, j journals.Journal) (verify.Source, error) {
	if at.archive == nil {
		return verify.FromLog(at.log(j.Name())), nil
	}
	a, err := openArchive(ctx, at.archive(j.Name()), at.heads)
	var damage *archive.Error
	if errors.As(err, &damage) {
		return verify.Damaged(damage), nil
	}
	if err != nil {
		return nil, err
	}
	return verify.FromArchive(a), nil
}

// snapshots returns the stored snapshots of a journal that this build can read: the working ones and those of the history.
func (at *verifiable) snapshots(ctx context.Context, j journals.Journal) (out []verify.Snapshot, err error) {
	if at.saved == nil || j.Codec == nil {
		return nil, nil
	}
	for _, store := range []*snapshot.Store{at.saved.snapshots, at.saved.history} {
		all, err := store.Saved(ctx, j.Name(), 0)
		if err != nil {
			return nil, fmt.Errorf("the snapshots: %w", err)
		}
		for _, s := range all {
			if s.Codec == j.Codec.Version() {
				out = append(out, verify.Snapshot{Position: s.Position, Load: func(ctx context.Context) ([]byte, error) {
					b, err := store.State(ctx, j.Name(), 0, s)
					if blob.Missing(err) {
						err = verify.ErrGone
					}
					return b, err
				}})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b verify.Snapshot) int { return cmp.Compare(a.Position.Sequence, b.Position.Sequence) })
	return out, nil
}

// model is the independent model of the rules of trading.
type model struct{ auditor *reference.Auditor }

// NewModel returns the independent model of the rules of trading.
func NewModel() verify.Model { return model{reference.New()} }

// Check implements verify.Model.
func (m model) Check(value []byte) error {
	err := m.auditor.Check(value)
	var uncovered *reference.UncoveredError
	if errors.As(err, &uncovered) {
		return fmt.Errorf("%w: %w", verify.ErrNotCovered, err)
	}
	return err
}
