package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

// archiveSource copies the archive of a venue to the embedded broker, from which the node follows it.
type archiveSource struct {
	client   *journal.Client
	store    archive.Store
	settings *settings.Settings
	box      *seal.Box // opens the objects of the archive
	journals journals.Table
	every    time.Duration
	log      *slog.Logger

	ends  map[string]record.Position // of the journals in the topics, by name
	fault atomic.Pointer[string]     // what /readyz says; nil if all is well
}

// Fault returns one sentence on why the node gets no later records, or "". It is public.
func (a *archiveSource) Fault() string {
	if f := a.fault.Load(); f != nil {
		return *f
	}
	return ""
}

// copiesOfTrim is the number of copies from one trim to the next, which asks the rows and the snapshots how far it may go.
const copiesOfTrim = 10

// run copies what the archive gets until the context ends. begun is called after the first time that all journals were copied, and
// also if the archive contradicts the topics. run calls trim between copies, and not during one, because a copy compares the topics
// with the archive. While trim returns true, run calls it after each copy, so that new records need not wait for all of a long trim.
func (a *archiveSource) run(ctx context.Context, begun func(), trim func(context.Context) (more bool)) error {
	wait := 0 // copies before the next trim
	var since time.Time
	for {
		err := a.copy(ctx)
		var conflict *wholelog.ConflictError
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			since = time.Time{}
			a.fault.Store(nil)
			begun()
			if wait--; wait < 0 && !trim(ctx) {
				wait = copiesOfTrim - 1
			}
		case errors.As(err, &conflict):
			a.client.AlarmOfVerifier(conflict.Journal, err)
			text := fmt.Sprintf("%s: the archive contradicts what this node has read of it, at record %d", conflict.Journal, conflict.Sequence)
			a.fault.Store(&text)
			begun()
			<-ctx.Done()
			return nil
		default:
			if since.IsZero() {
				since = time.Now().UTC()
			}
			text := "the archive could not be read since " + since.Format(time.RFC3339)
			a.fault.Store(&text)
			a.log.Warn("the archive can't be read", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(a.every):
		}
	}
}

// copy brings the topics of all journals to the end of the archive.
func (a *archiveSource) copy(ctx context.Context) error {
	for _, j := range a.journals {
		opened, err := archive.Open(ctx, a.settings.ArchiveConfig(a.store, a.box, j.Name(), 0))
		if err != nil {
			return err
		}
		if wholelog.End(opened) == nil {
			return fmt.Errorf("the archive holds nothing of %s", j.Name())
		}
		r := wholelog.Restore{Client: a.client, Rules: j.Rules, Archive: opened}
		if from, known := a.ends[j.Name()]; known {
			if err := a.extend(ctx, r, from); err != nil {
				return err
			}
			continue
		}
		done, err := r.Run(ctx) // compares all that the topic holds
		if err != nil {
			return err
		}
		a.ends[j.Name()] = done.End
	}
	return nil
}

// extend appends what the archive has got after a position. If it is not known then what the topic holds, the next copy compares it.
func (a *archiveSource) extend(ctx context.Context, r wholelog.Restore, from record.Position) error {
	name := r.Rules.Journal()
	end, err := r.Extend(ctx, from)
	if end.IsBefore() {
		delete(a.ends, name)
	} else {
		a.ends[name] = end
	}
	return err
}
