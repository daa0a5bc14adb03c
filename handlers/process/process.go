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

// actor is the actor of the managers' commands.
var actor = decide.Actor{System: "process"}

const (
	// answerWithin is the timeout of a command.
	answerWithin = 15 * time.Second
	// The retry delay doubles from firstPause to lastPause.
	firstPause = time.Second
	lastPause  = time.Minute
)

// Keys destroys, holds and names the keys of owners. *seal.Owners implements it.
type Keys interface {
	Destroy(ctx context.Context, owner string) error
	// Hold prevents every user of the key store from destroying a key, until Release.
	Hold(ctx context.Context, owner string) (fresh bool, err error)
	Release(ctx context.Context, owner string) (held bool, err error)
	KeyID(ctx context.Context, owner string) (string, error)
}

// Files deletes files from the bucket. *blob.Store implements it.
type Files interface {
	Delete(ctx context.Context, keys ...string) error
}

// Config holds the dependencies of the managers.
type Config struct {
	Onboarding, Trading record.Follower
	Journals            submit.Submitter
	Keys                Keys
	Files               Files
	Logger              *slog.Logger
}

// Managers are the process managers of a node.
type Managers struct {
	folds    []record.Follower
	erasure  *erasure
	bridge   *bridge
	open     *prometheus.GaugeVec
	failures *prometheus.CounterVec
}

// New returns the managers. It must be called before the folds start, so that the managers miss no record.
func New(c Config) *Managers {
	m := &Managers{folds: []record.Follower{c.Onboarding, c.Trading},
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "perpetua_process_open",
			Help: "What a process manager of this node still has to do, as it knows."}, []string{"process"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "perpetua_process_failures_total",
			Help: "Attempts of a process manager of this node that failed; each is repeated, but for an account whose code somebody else has."}, []string{"process"}),
	}
	m.erasure = newErasure(c, m.open.WithLabelValues("erasure"), m.failures.WithLabelValues("erasure"))
	m.bridge = newBridge(c, m.open.WithLabelValues("bridge"), m.failures.WithLabelValues("bridge"))
	return m
}

// Run works until the context ends and returns nil.
func (m *Managers) Run(ctx context.Context) error {
	// A fold that lags does not contain work that was done long ago. Repeating it would be safe but expensive.
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

// Collectors returns the managers' metrics.
func (m *Managers) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.open, m.failures}
}

// pause waits for d and reports whether the context is still valid.
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

// about returns the log attribute that identifies an owner.
func about(ref owner.Ref) slog.Attr { return slog.String("owner", ref.String()) }
