package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/fence"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// move moves a venue to the location that its log was copied to.
type move struct {
	source, target *endpoint
	table          journals.Table
	keys           *seal.KeyStore
	id             scalar.ID // id that names the fence
	from, to       string    // old and new location of the log
}

// openMove checks that the venue can be moved, before anything is copied: that it is stopped, and holds its fence.
func openMove(ctx context.Context, c copyRequest, source, target *endpoint) (_ *move, err error) {
	m := &move{source: source, target: target, table: c.journals}
	var founded bool
	if m.id, m.from, founded, err = fence.Locate(ctx, source.client); err != nil {
		return nil, err
	}
	if !founded {
		return nil, fmt.Errorf("the %s holds no venue", source)
	}
	if err := m.stopped(ctx); err != nil {
		return nil, err
	}
	if _, err := target.target(ctx, fence.Journal); err != nil { // creates the topic, so that it has an id
		return nil, err
	}
	to, err := target.client.LogLocation(ctx, fence.Journal)
	if err != nil {
		return nil, err
	}
	m.to = to.String()
	url, err := c.KeyStoreURL()
	if err != nil {
		return nil, err
	}
	if m.keys, err = seal.OpenKeyStore(ctx, url); err != nil {
		return nil, err
	}
	err = m.holdsFence(ctx)
	if err == nil {
		err = m.endTerms(ctx)
	}
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// endTerms ends the terms of engines that may still run but have left their group, such as suspended ones. Records that
// they append after the copy's last record are invalid, and they do not acknowledge them.
func (m *move) endTerms(ctx context.Context) error {
	if m.source.kind != onBrokers {
		return nil
	}
	for _, j := range m.table {
		end, err := m.source.client.Tip(ctx, j.Name(), 0)
		if err != nil {
			return err
		}
		if end == 0 {
			continue
		}
		o, err := journal.NewOwner(journal.OwnerConfig{Client: m.source.client, Rules: j.Rules, Node: "log copy --move", Build: "log copy"})
		if err != nil {
			return err
		}
		if _, err := o.Take(ctx); err != nil {
			return fmt.Errorf("%s: ending the terms of the %s: %w", j.Name(), m.source, err)
		}
	}
	return nil
}

// holdsFence returns an error unless the source or the target holds the fence.
func (m *move) holdsFence(ctx context.Context) error {
	former, err := fence.FormerLocation(ctx, m.source.client)
	if err != nil {
		return err
	}
	if err := fence.Renew(ctx, m.keys, m.id, former, m.from); err != nil && !errors.Is(err, fence.ErrNone) {
		return err
	}
	return fence.CheckMove(ctx, m.keys, m.id, m.from, m.to)
}

func (m *move) close() { m.keys.Close() }

// stopped returns an error if engines serve the source.
func (m *move) stopped(ctx context.Context) error {
	if m.source.kind != onBrokers {
		return nil // this command has locked the folder
	}
	return checkStopped(ctx, m.source.client, m.table, m.source.String())
}

// coordinatorWait is how long a new cluster may take until it has a coordinator of groups.
const coordinatorWait = 30 * time.Second

// checkStopped returns an error if engines are at work on the brokers of a client. where describes the brokers for humans.
func checkStopped(ctx context.Context, client *journal.Client, table journals.Table, where string) error {
	finder, err := ownership.NewFinder(client, nil, "", table.Names()...)
	if err != nil {
		return err
	}
	defer finder.Close()
	engines, err := finder.Engines(ctx)
	// A new cluster makes the topic of its groups with the first question, and has no coordinator until then.
	for deadline := time.Now().Add(coordinatorWait); errors.Is(err, kerr.CoordinatorNotAvailable) && time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(coordinatorWait / 100):
		}
		engines, err = finder.Engines(ctx)
	}
	if err != nil {
		return err
	}
	if len(engines) > 0 {
		return fmt.Errorf("the %s: %d engines are at work there, %s for one: stop all nodes of the venue first", where, len(engines), engines[0].URL)
	}
	return nil
}

// finish moves the fence after the copy was verified. It fails if the source has grown since.
func (m *move) finish(ctx context.Context, std settings.IO) error {
	if err := m.stopped(ctx); err != nil {
		return err
	}
	for _, j := range m.table {
		from, err := m.source.client.Tip(ctx, j.Name(), 0)
		if err != nil {
			return err
		}
		to, err := m.target.client.Tip(ctx, j.Name(), 0)
		if err != nil {
			return err
		}
		if from > to {
			return fmt.Errorf("%s: somebody writes to the %s: stop the venue and copy again; it was not moved", j.Name(), m.source)
		}
	}
	// The file comes before the fence. If the command crashes between the two, the venue starts at neither location until the
	// command is repeated. In the other order the old location would start fenced and not say where the venue went.
	if m.source.kind == inFolder {
		if err := (&local.Folder{Dir: m.source.name}).Retire(m.target.String()); err != nil {
			return err
		}
	}
	f, err := fence.Move(ctx, m.keys, m.id, m.from, m.to)
	if err != nil {
		return err
	}
	if m.source.kind == onBrokers { // senders are not in the group of engines and may still run
		fmt.Fprintf(std.Out, "waiting %v, within which every node of the old place stops to act\n", fence.Settle)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(fence.Settle):
		}
	}
	fmt.Fprintf(std.Out, "the venue %s is moved: it goes on at the %s (epoch %d)\n", f.Venue, m.target, f.Epoch)
	return nil
}
