package node

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// witnesses returns the policy of the witnesses of a log, or nil if it has none. A policy without logs applies to those that need
// no token: the size of another log reveals how busy the brokers are.
func (l *transparencyLog) witnesses(o transparency.Origin) *transparency.Policy {
	p := l.policy
	switch {
	case p == nil:
		return nil
	case len(p.Logs) == 0:
		if !l.open {
			return nil
		}
	case !slices.ContainsFunc(p.Logs, func(k transparency.LogKey) bool { return k.Name() == o.String() }):
		return nil
	}
	return p
}

// cosigner returns the cosigner of a log, or nil if the log has no witnesses. If the policy has other keys of the log, it only logs
// that: the log is signed all the same.
func (l *transparencyLog) cosigner(o transparency.Origin, store *transparency.Store) *transparency.Cosigner {
	policy := l.witnesses(o)
	if policy == nil {
		return nil
	}
	pool := l.stores.pool
	return transparency.NewCosigner(transparency.CosignerConfig{Origin: o, Policy: policy, Store: store,
		Heads: projections.SignedTrees{Pool: pool}, Cosigned: projections.CosignedTrees{Pool: pool}, Logger: l.logger})
}

// runAll extends the tree, asks the witnesses, proves rotations, and deletes old tiles, until the context ends or the log is invalid.
func (l *transparencyLog) runAll(ctx context.Context, f *transparency.Follower, c *transparency.Cosigner) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return f.Run(ctx) })
	g.Go(func() error { return l.proveRotations(ctx) })
	g.Go(func() error { return l.thin(ctx, f) })
	if c != nil {
		l.sends.Store(c)
		g.Go(func() error { return c.Run(ctx) })
	}
	return g.Wait()
}
