package node

import (
	"context"
	"slices"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// witnesses returns the policy of the witnesses of a log, or nil if it has none. A policy without logs is for the public ones: the
// size of another log reveals how busy the brokers are.
func (l *transparencyLog) witnesses(o transparency.Origin) *transparency.Policy {
	p := l.policy
	switch {
	case p == nil:
		return nil
	case len(p.Logs) == 0:
		if !slices.Contains(publicLogs(), l.Name()) {
			return nil
		}
	case !slices.ContainsFunc(p.Logs, func(v note.Verifier) bool { return v.Name() == o.String() }):
		return nil
	}
	return p
}

// cosigner returns the cosigner of a log, or nil if the log has no witnesses. If the policy has another key of the log, it only logs
// that: the log is signed all the same.
func (l *transparencyLog) cosigner(o transparency.Origin, store *transparency.Store, key string) *transparency.Cosigner {
	policy := l.witnesses(o)
	if policy == nil {
		return nil
	}
	pool := l.stores.pool
	c, err := transparency.NewCosigner(transparency.CosignerConfig{Origin: o, Policy: policy, Verifier: key, Store: store,
		Heads: projections.SignedTrees{Pool: pool}, Cosigned: projections.CosignedTrees{Pool: pool}, Logger: l.logger})
	if err != nil {
		l.logger.Error("no witness is asked", "error", err)
		return nil
	}
	return c
}

// runBoth extends the tree, and has witnesses cosign it, until the context ends or the log is invalid.
func (l *transparencyLog) runBoth(ctx context.Context, f *transparency.Follower, c *transparency.Cosigner) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.Run(ctx) })
	if c != nil {
		l.sends.Store(c)
		g.Go(func() error { return c.Run(ctx) })
	}
	return g.Wait()
}
