package process

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// The journals, by name.
const (
	onboardingJournal = "onboarding"
	tradingJournal    = "trading"
)

// actor is on whose behalf the managers give commands.
var actor = decide.Actor{System: "process"}

const (
	// answerWithin is how long a command may take to be answered.
	answerWithin = 15 * time.Second
	// The pause before what failed is tried again: it doubles from the first to the last.
	firstPause = time.Second
	lastPause  = time.Minute
)

// Follower is a fold of a journal; *follow.Fold is one.
type Follower interface {
	View(look func(s decide.State, at record.Position))
	ListenFrom(start func(s decide.State, at record.Position), call func(e record.Entry, s decide.State)) (stop func())
	Wait(ctx context.Context, sequence int64) error
	WaitTip(ctx context.Context) error
}

// Keys destroys, holds and names the keys of owners; *seal.Owners does.
type Keys interface {
	Destroy(ctx context.Context, owner string) error
	// Hold prevents every user of the key store from destroying a key, until Release.
	Hold(ctx context.Context, owner string) (fresh bool, err error)
	Release(ctx context.Context, owner string) (held bool, err error)
	KeyID(ctx context.Context, owner string) (string, error)
}

// Files removes what lies in the bucket; *blob.Store does.
type Files interface {
	Delete(ctx context.Context, keys ...string) error
}

// Config is what the managers work with.
type Config struct {
	Onboarding, Trading Follower
	Journals            submit.Submitter
	Keys                Keys
	Files               Files
	Logger              *slog.Logger
}

// Managers are the process managers of a node.
type Managers struct {
	folds    []Follower
	erasure  *erasure
	bridge   *bridge
	open     *prometheus.GaugeVec
	failures *prometheus.CounterVec
}

// New makes the managers before the folds move, so that they miss nothing.
func New(c Config) *Managers {
	m := &Managers{folds: []Follower{c.Onboarding, c.Trading},
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "perpetua_process_open",
			Help: "What a process manager of this node still has to do, as it knows."}, []string{"process"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "perpetua_process_failures_total",
			Help: "Attempts of a process manager of this node that failed; each is repeated, but for an account whose code somebody else has."}, []string{"process"}),
	}
	m.erasure = newErasure(c, m.open.WithLabelValues("erasure"), m.failures.WithLabelValues("erasure"))
	m.bridge = newBridge(c, m.open.WithLabelValues("bridge"), m.failures.WithLabelValues("bridge"))
	return m
}

// Run works until the context ends, and returns nil.
func (m *Managers) Run(ctx context.Context) error {
	// A fold that is far behind does not know yet what was done long ago. To do it again would be harmless, and a lot.
	for _, f := range m.folds {
		for f.WaitTip(ctx) != nil {
			if !pause(ctx, firstPause) {
				return nil
			}
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { m.erasure.run(ctx); return nil })
	g.Go(func() error { m.bridge.run(ctx); return nil })
	return g.Wait()
}

// Collectors are what the managers measure.
func (m *Managers) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.open, m.failures}
}

// pause waits, and reports whether the context goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// about is what a log line names an owner by.
func about(ref owner.Ref) slog.Attr { return slog.String("owner", ref.String()) }
