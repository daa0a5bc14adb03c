package ownership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Finder finds the owners of partitions. It uses the names in the log, which this node passes to Read, and asks the
// group of engines only if a name does not count (see named). A node that owns no partitions uses the Finder as its
// Submitter: it sends every command to another node.
type Finder struct {
	client    *journal.Client
	neighbors Neighbors         // nil: names in the log cannot be confirmed
	self      string            // URL of this node; "" if other nodes do not reach it
	names     map[string]string // journals by topic
	group     *group

	ask     singleflight.Group
	mu      sync.Mutex
	named   map[submit.Shard]*named
	changed chan struct{}           // closed at the next change of named
	urls    map[submit.Shard]string // owners according to the group's assignment
	urlsAt  time.Time               // time at which urls was read; zero to read it again
	away    bool                    // the last search for an owner failed
}

// The finder's times.
const (
	assignmentAge   = 250 * time.Millisecond // maximum age of an answer of the group
	retryPause      = 50 * time.Millisecond  // before another question to a node that could not help, or to the group
	longestPause    = time.Second            // the same, for a node that has not helped for long
	pauseShare      = 8                      // a pause is this part of the time for which a node has not helped
	queryTimeout    = time.Second            // for a question to a node or to the group
	confirmationAge = time.Second            // maximum age of a confirmation that Owner accepts
	searchTimeout   = 2 * time.Second        // for finding another owner, after a command was sent to a wrong one
)

// NewFinder returns a finder of the owners of the named journals. It asks nodes through neighbors; if that is nil, it
// asks only the group. self is the URL of this node, which it never asks: an earlier process at the same address may be
// the owner that the log names. It is "" for a process that is not a node. The caller must close the finder.
func NewFinder(client *journal.Client, neighbors Neighbors, self string, journals ...string) (*Finder, error) {
	kc, err := client.KafkaFor(journal.ForAdmin)
	if err != nil {
		return nil, err
	}
	f := &Finder{client: client, neighbors: neighbors, self: self, names: make(map[string]string), group: newGroup(kc, client.Prefix()+Group),
		named: make(map[submit.Shard]*named), changed: make(chan struct{})}
	for _, name := range journals {
		f.names[client.Topic(name)] = name
	}
	return f, nil
}

// Close ends the finder's connections.
func (f *Finder) Close() { f.group.kafka.Close() }

// Owner returns the URL of the current owner of a partition, or "" if there is none. Either the node has confirmed it
// within the last second, or the group has assigned the partition to the node, which may then be dead or without a
// term.
func (f *Finder) Owner(ctx context.Context, name string, partition int32) (url string, err error) {
	return f.owner(ctx, submit.Shard{Journal: name, Partition: partition}, confirmationAge)
}

// owner is Owner with a maximum age of the confirmation; zero accepts any age.
func (f *Finder) owner(ctx context.Context, p submit.Shard, age time.Duration) (url string, err error) {
	n, known := f.lastNamed(p)
	if known && n.good(age) {
		return n.url, nil
	}
	if known && n.worthAsking(time.Now()) && n.url != f.self {
		key := fmt.Sprintf("%s/%d at %s", p.Journal, p.Partition, n.url)
		err := f.shared(ctx, key, func(ctx context.Context) error { return f.confirm(ctx, p, n) })
		if err == nil {
			return n.url, nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		f.client.Logger().Debug("the owner that the log names does not confirm it", "journal", p.Journal, "url", n.url, "error", err)
	}
	return f.assignee(ctx, p)
}

// lastNamed returns the owner that the log names, if the finder has read any.
func (f *Finder) lastNamed(p submit.Shard) (named, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.named[p]
	if n == nil {
		return named{}, false
	}
	return *n, true
}

// good reports whether the name counts, given the maximum age of its confirmation; zero accepts any age.
func (n *named) good(age time.Duration) bool {
	return !n.confirmed.IsZero() && (age == 0 || time.Since(n.confirmed) < age)
}

// worthAsking reports whether the node may be asked now.
func (n *named) worthAsking(now time.Time) bool { return !n.foreign && now.Sub(n.doubted) > n.pause() }

// shared runs a function once for all concurrent callers with the same key. It waits no longer than queryTimeout,
// because a client that dials a hanging broker ignores its context.
func (f *Finder) shared(ctx context.Context, key string, run func(context.Context) error) error {
	answer := f.ask.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), leaving)
		defer cancel()
		return nil, run(ctx)
	})
	late := time.NewTimer(queryTimeout)
	defer late.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return errors.New("ownership: there is no answer in time")
	case a := <-answer:
		return a.Err
	}
}

// assignee returns the URL of the node that the group has assigned a partition to, or "".
func (f *Finder) assignee(ctx context.Context, p submit.Shard) (url string, err error) {
	f.mu.Lock()
	url, recent := f.urls[p], time.Since(f.urlsAt) < assignmentAge
	f.mu.Unlock()
	if recent {
		return url, nil
	}
	err = f.shared(ctx, "group", func(ctx context.Context) error {
		_, err := f.members(ctx)
		return err
	})
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.urls[p], nil
}

// Engine is a member of the group: a node that owns partitions or may be assigned some.
type Engine struct {
	ID  string // id of the node
	URL string // URL at which other nodes reach it
}

// Engines asks the group for its members.
func (f *Finder) Engines(ctx context.Context) ([]Engine, error) {
	ctx, cancel := context.WithTimeout(ctx, leaving)
	defer cancel()
	members, err := f.members(ctx)
	if err != nil {
		return nil, err
	}
	var out []Engine
	for _, m := range members {
		e := Engine{URL: m.url}
		if m.instance != nil {
			e.ID = *m.instance
		}
		out = append(out, e)
	}
	return out, nil
}

// members asks the group for its members and stores their assignments.
func (f *Finder) members(ctx context.Context) ([]member, error) {
	members, err := f.group.members(ctx)
	if err != nil {
		return nil, err
	}
	urls := make(map[submit.Shard]string)
	for _, m := range members {
		for _, p := range f.owned(m) {
			urls[p] = m.url
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.urls, f.urlsAt = urls, time.Now()
	return members, nil
}

// owned returns the partitions assigned to a member.
func (f *Finder) owned(m member) (shards []submit.Shard) {
	for topic, partitions := range m.topics {
		name, ok := f.names[topic]
		if !ok {
			continue
		}
		for _, p := range partitions {
			shards = append(shards, submit.Shard{Journal: name, Partition: p})
		}
	}
	return shards
}

// Submit returns the error that names the journal's owner. It implements journal.Submitter for a node that owns no
// partitions.
func (f *Finder) Submit(ctx context.Context, name string, _ decide.Command) (submit.Result, error) {
	return submit.Result{}, f.ownerError(ctx, name)
}

// SubmitAll returns the error that names the journal's owner for each command. It implements journal.BatchSubmitter.
func (f *Finder) SubmitAll(ctx context.Context, name string, cs []decide.Command) []submit.Outcome {
	return allFail(cs, f.ownerError(ctx, name))
}

// allFail returns the same error as the outcome of every command.
func allFail(cs []decide.Command, err error) []submit.Outcome {
	out := make([]submit.Outcome, len(cs))
	for i := range out {
		out[i].Err = err
	}
	return out
}

// ownerError returns the error that redirects a command to the owner of a journal. If no other node is known to own it,
// the error is a *journal.NotAcceptedError.
func (f *Finder) ownerError(ctx context.Context, name string) error {
	if _, ok := f.names[f.client.Topic(name)]; !ok {
		return fmt.Errorf("ownership: no journal %q", name)
	}
	p := submit.Shard{Journal: name}
	url, err := f.owner(ctx, p, 0)
	if ctx.Err() == nil { // otherwise the error says nothing about the brokers
		f.tell(err)
	}
	if err == nil && url != "" && url != f.self {
		return f.at(p, url)
	}
	return &submit.NotAcceptedError{RetryAfter: time.Second, Reason: "the journal has no owner at the moment", Unowned: true}
}

// at returns the error that sends a command to the node at a URL.
func (f *Finder) at(p submit.Shard, url string) *submit.ElsewhereError {
	return &submit.ElsewhereError{URL: url, Next: func(ctx context.Context) *submit.ElsewhereError { return f.next(ctx, p, url) }}
}

// next looks for another owner after the node at a URL could not help. It returns nil if none is found within
// searchTimeout.
func (f *Finder) next(ctx context.Context, p submit.Shard, wrong string) *submit.ElsewhereError {
	f.doubt(p, wrong)
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	for {
		f.mu.Lock()
		changed := f.changed // read before the question, so that no change is missed
		f.mu.Unlock()
		url, err := f.owner(ctx, p, 0)
		n, known := f.lastNamed(p)
		// The group may still name the node that could not help. That node is tried again only if it confirms its term.
		if err == nil && url != "" && url != f.self && (url != wrong || known && n.url == url && n.good(0)) {
			return f.at(p, url)
		}
		pause := time.NewTimer(retryPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-changed:
			pause.Stop()
		case <-pause.C:
		}
	}
}

// tell logs when the owners can no longer be found and when they can be found again, once for each change: while they
// cannot, every request searches for them.
func (f *Finder) tell(err error) {
	f.mu.Lock()
	changed := f.away != (err != nil)
	f.away = err != nil
	f.mu.Unlock()
	switch {
	case changed && err != nil:
		f.client.Logger().Warn("the owners of the journals can't be found", "error", err)
	case changed:
		f.client.Logger().Info("the owners of the journals can be found again")
	}
}
