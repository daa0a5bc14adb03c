// Package history returns whole states of a journal at any past position: the state that a decision met, or the one that
// a question about the past needs.
//
// A state is computed from the nearest snapshot at or below the position, or from a cached state, by applying the records after
// it. Package snapshot has the newest working snapshots. Maker adds further ones at fixed distances, which bound the number of
// records to apply.
//
// Nothing here runs on the goroutine of an owner or of the node's own fold. A state that was returned never changes: a
// later state is made of a copy. At most a few states are made at the same time. Requests for the same state
// share the work, and the last states are kept in memory.
//
// Start reading at States.StateAt.
package history

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// The defaults of Limits.
const (
	DefaultAtOnce = 2
	DefaultMemory = 256 << 20
	DefaultWait   = time.Second
	// DefaultPatience is below the minute in which a node's server must have answered a request.
	DefaultPatience = 45 * time.Second
)

// patienceRetry is when to ask again for a state that takes longer than the patience.
const patienceRetry = 5 * time.Second

// Limits bound what States uses. A zero field stands for its default.
type Limits struct {
	AtOnce int           // states that are made at the same time
	Memory int64         // estimated bytes of the states that are kept; the newest one is kept in any case
	Wait   time.Duration // longest wait for a turn
	// Patience is the longest wait for a state that is being made. The work then continues, for the next question.
	Patience time.Duration
}

// Config configures States.
type Config struct {
	Client *journal.Client
	Source Source // nil for the topics alone
	// Stores have the snapshots, those of folds and those of makers. The order does not matter.
	Stores []*snapshot.Store
	Limits Limits
	Logger *slog.Logger
}

// Journal is a journal that States serves.
type Journal struct {
	Rules     decide.Rules
	Codec     decide.StateCodec
	Partition int32
	Tip       record.Follower // knows the last record
}

// States returns past states. It is safe for concurrent use.
type States struct {
	cfg      Config
	journals map[submit.Shard]Journal
	turns    chan struct{}

	mu     sync.Mutex
	making map[key]*work
	cache  cache
}

// key names a state.
type key struct {
	submit.Shard
	sequence int64
	next     bool // with the record that follows
}

// New returns the states of some journals.
func New(cfg Config, journals ...Journal) *States {
	l := &cfg.Limits
	if l.AtOnce == 0 {
		l.AtOnce = DefaultAtOnce
	}
	if l.Memory == 0 {
		l.Memory = DefaultMemory
	}
	if l.Wait == 0 {
		l.Wait = DefaultWait
	}
	if l.Patience == 0 {
		l.Patience = DefaultPatience
	}
	if cfg.Source == nil {
		cfg.Source = Topic{cfg.Client}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &States{cfg: cfg, journals: make(map[submit.Shard]Journal), turns: make(chan struct{}, l.AtOnce), making: make(map[key]*work),
		cache: cache{most: l.Memory}}
	for _, j := range journals {
		s.journals[submit.Shard{Journal: j.Rules.Journal(), Partition: j.Partition}] = j
	}
	return s
}

// StateAt implements past.States.
func (s *States) StateAt(ctx context.Context, journalName string, partition int32, sequence int64) (decide.State, record.Position, error) {
	k := key{Shard: submit.Shard{Journal: journalName, Partition: partition}, sequence: sequence}
	j, tip, err := s.journal(k)
	if err != nil {
		return nil, record.Position{}, err
	}
	k.next = sequence < tip.Sequence // which proves the position
	m, err := s.at(ctx, k, j, tip)
	if err != nil {
		return nil, record.Position{}, err
	}
	return m.state, m.at, nil
}

// Deciding implements past.Decisions.
func (s *States) Deciding(ctx context.Context, journalName string, partition int32, sequence int64, look func(past.Met) error) error {
	k := key{Shard: submit.Shard{Journal: journalName, Partition: partition}, sequence: sequence - 1, next: true}
	j, tip, err := s.journal(k)
	switch {
	case err != nil:
		return err
	case sequence > tip.Sequence:
		return &past.AfterError{Tip: tip}
	}
	m, err := s.at(ctx, k, j, tip)
	if err != nil {
		return err
	}
	m.deciding.Lock()
	defer m.deciding.Unlock()
	return look(past.Met{State: m.state, Before: m.at, Time: m.time, Entry: m.next, Build: m.build})
}

var (
	_ past.Decisions = (*States)(nil)
	_ past.States    = (*States)(nil)
)

// journal returns the journal of a key, and its last record.
func (s *States) journal(k key) (j Journal, tip record.Position, err error) {
	j, ok := s.journals[k.Shard]
	if !ok {
		return j, tip, fmt.Errorf("history: this node follows no journal %s/%d", k.Journal, k.Partition)
	}
	tip = j.Tip.Position()
	switch {
	case k.sequence < 0:
		return j, tip, past.ErrBefore
	case k.sequence > tip.Sequence:
		return j, tip, &past.AfterError{Tip: tip}
	}
	return j, tip, nil
}

// work makes one state for everybody who waits for it.
type work struct {
	done    chan struct{} // closed at the end
	cancel  context.CancelFunc
	waiting int // guarded by the lock of States

	made *moment
	err  error
}

// at returns a state that is kept, or is being made, or makes it.
func (s *States) at(ctx context.Context, k key, j Journal, tip record.Position) (*moment, error) {
	m, w := s.join(ctx, k, j, tip)
	if m != nil {
		return m, nil
	}
	patience := time.NewTimer(s.cfg.Limits.Patience)
	defer patience.Stop()
	select {
	case <-w.done:
		s.leave(k, w)
		return w.made, w.err
	case <-ctx.Done():
		s.leave(k, w)
		return nil, ctx.Err()
	case <-patience.C:
		// The work is not left, so it continues to its end, and its state is kept.
		return nil, &past.BusyError{RetryAfter: patienceRetry, Underway: true}
	}
}

// join returns a cached state, or else the work that makes it, which join starts if necessary.
func (s *States) join(ctx context.Context, k key, j Journal, tip record.Position) (*moment, *work) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.cache.exactly(k); m != nil {
		return m, nil
	}
	w := s.making[k]
	if w != nil {
		w.waiting++
		return nil, w
	}
	w = &work{done: make(chan struct{}), waiting: 1}
	s.making[k] = w
	// The work may outlive the request that starts it, if others wait for it too.
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.cancel = cancel
	go func() {
		defer close(w.done)
		defer cancel()
		w.made, w.err = s.inTurn(working, k, j, tip)
		size := 0
		if w.err == nil {
			size = j.Codec.Size(w.made.state)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if w.err == nil {
			s.cache.add(k, w.made, size)
		}
		if s.making[k] == w {
			delete(s.making, k)
		}
	}()
	return nil, w
}

// leave ends waiting for some work. The last one ends the work.
func (s *States) leave(k key, w *work) {
	s.mu.Lock()
	w.waiting--
	last := w.waiting == 0
	if last && s.making[k] == w {
		delete(s.making, k) // who comes now does not join work that is being canceled
	}
	s.mu.Unlock()
	if last {
		w.cancel()
		<-w.done
	}
}

// inTurn makes a state when fewer than the limit are being made.
func (s *States) inTurn(ctx context.Context, k key, j Journal, tip record.Position) (*moment, error) {
	wait := time.NewTimer(s.cfg.Limits.Wait)
	defer wait.Stop()
	select {
	case s.turns <- struct{}{}:
	case <-wait.C:
		return nil, &past.BusyError{RetryAfter: s.cfg.Limits.Wait}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.turns }()
	start, err := s.start(ctx, k, j)
	if err != nil {
		return nil, err
	}
	return s.advance(ctx, j, start, k, tip)
}
