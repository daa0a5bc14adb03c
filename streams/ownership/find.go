package ownership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/singleflight"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// Finder finds the owners of partitions by the word of the group, without being a member of it. It is all that a
// node needs which owns nothing: as a Submitter it sends every command elsewhere.
type Finder struct {
	client *journal.Client
	names  map[string]string // of the journals, by topic
	kafka  *kgo.Client
	admin  *kadm.Client

	ask   singleflight.Group
	mu    sync.Mutex
	urls  map[place]string // the URL of each owner as the group had it …
	asked time.Time        // … at this time
	away  bool             // the brokers did not say it when it was last asked for
}

// NewFinder returns a finder of the owners of the named journals. It is closed by its user.
func NewFinder(client *journal.Client, journals ...string) (*Finder, error) {
	kc, err := client.KafkaFor(journal.ForAdmin)
	if err != nil {
		return nil, err
	}
	f := &Finder{client: client, names: make(map[string]string), kafka: kc, admin: kadm.NewClient(kc)}
	for _, name := range journals {
		f.names[client.Topic(name)] = name
	}
	return f, nil
}

// Close ends the finder's connections.
func (f *Finder) Close() { f.admin.Close() }

func (f *Finder) group() string { return f.client.Prefix() + Group }

// Owner returns the URL of the node that the group has assigned a partition to, or "". Whether that node lives, and
// has its term, is another matter.
func (f *Finder) Owner(ctx context.Context, name string, partition int32) (url string, err error) {
	p := place{name, partition}
	f.mu.Lock()
	url, fresh := f.urls[p], time.Since(f.asked) < again
	f.mu.Unlock()
	if fresh {
		return url, nil
	}
	answer := f.ask.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), leaving)
		defer cancel()
		return f.members(ctx)
	})
	late := time.NewTimer(asked) // a client that dials a broker which hangs does not look at its context
	defer late.Stop()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-late.C:
		return "", errors.New("ownership: the brokers do not say who is in the group")
	case a := <-answer:
		if a.Err != nil {
			return "", a.Err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.urls[p], nil
}

// Engine is a node of the group: one that owns partitions, or may come to.
type Engine struct {
	ID  string // the node's
	URL string // where other nodes reach it
}

// Engines asks for the nodes of the group.
func (f *Finder) Engines(ctx context.Context) ([]Engine, error) {
	ctx, cancel := context.WithTimeout(ctx, leaving)
	defer cancel()
	members, err := f.members(ctx)
	if err != nil {
		return nil, err
	}
	var out []Engine
	for _, m := range members {
		e := Engine{URL: m.ClientID}
		if m.InstanceID != nil {
			e.ID = *m.InstanceID
		}
		out = append(out, e)
	}
	return out, nil
}

// members asks for the group's members and takes note of what they own.
func (f *Finder) members(ctx context.Context) ([]kadm.DescribedGroupMember, error) {
	groups, err := f.admin.DescribeGroups(ctx, f.group())
	if err != nil {
		return nil, fmt.Errorf("ownership: describing the group: %w", err)
	}
	group := groups[f.group()]
	if group.Err != nil && !errors.Is(group.Err, kerr.GroupIDNotFound) { // no engine ever joined: no members
		return nil, fmt.Errorf("ownership: describing the group: %w", group.Err)
	}
	urls := make(map[place]string)
	for _, m := range group.Members {
		assigned, ok := m.Assigned.AsConsumer()
		if !ok {
			continue
		}
		for _, t := range assigned.Topics {
			name, ok := f.names[t.Topic]
			if !ok {
				continue
			}
			for _, p := range t.Partitions {
				urls[place{name, p}] = m.ClientID
			}
		}
	}
	f.mu.Lock()
	f.urls, f.asked = urls, time.Now()
	f.mu.Unlock()
	return group.Members, nil
}

// Submit says where the journal's owner is. It implements journal.Submitter for a node that owns nothing.
func (f *Finder) Submit(ctx context.Context, name string, _ decide.Command) (journal.Result, error) {
	return journal.Result{}, f.elsewhere(ctx, name, "")
}

// SubmitAll says of each command where the journal's owner is. It implements journal.BatchSubmitter.
func (f *Finder) SubmitAll(ctx context.Context, name string, cs []decide.Command) []journal.Outcome {
	return allFail(cs, f.elsewhere(ctx, name, ""))
}

// allFail is one outcome for all commands.
func allFail(cs []decide.Command, err error) []journal.Outcome {
	out := make([]journal.Outcome, len(cs))
	for i := range out {
		out[i].Err = err
	}
	return out
}

// elsewhere returns the error that sends a command to the owner of a journal, or says that there is none but perhaps
// the asking node itself.
func (f *Finder) elsewhere(ctx context.Context, name, self string) error {
	if _, ok := f.names[f.client.Topic(name)]; !ok {
		return fmt.Errorf("ownership: no journal %q", name)
	}
	url, err := f.Owner(ctx, name, 0)
	if ctx.Err() == nil { // else it says nothing of the brokers
		f.note(err)
	}
	if err == nil && url != "" && url != self {
		return &journal.ElsewhereError{URL: url}
	}
	return &journal.NotAcceptedError{RetryAfter: time.Second, Reason: "the journal has no owner at the moment"}
}

// note logs whether the brokers say who owns what, when that changes: while they do not, every request asks.
func (f *Finder) note(err error) {
	f.mu.Lock()
	changed := f.away != (err != nil)
	f.away = err != nil
	f.mu.Unlock()
	switch {
	case changed && err != nil:
		f.client.Logger().Warn("the brokers do not say who owns the journals", "error", err)
	case changed:
		f.client.Logger().Info("the brokers say again who owns the journals")
	}
}
