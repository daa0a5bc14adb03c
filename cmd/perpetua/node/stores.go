package node

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// stores are a node's connections to its stores: the log, the rows, the bucket and the keys. The node has no other
// durable data.
type stores struct {
	client    *journal.Client
	pool      *pgxpool.Pool
	reads     projections.DB       // the pool, for the queries that clients wait for
	brief     projections.Executor // the pool, for the short statements of the node itself, many of which run at its start
	snapshots *Snapshots
	owners    *seal.Owners
	files     *files.Store
	archive   archive.Store
	archived  *gocloud.Bucket // of archive, if it is not that of snapshots; else nil
}

// openStores opens the bucket and the key store. The other connections are opened on first use.
func openStores(ctx context.Context, c Config, t *telemetry) (s stores, err error) {
	config, err := c.Settings.JournalConfig(c.Brokers)
	if err != nil {
		return s, err
	}
	if c.Dial != nil && !c.Settings.Kafka.TLS {
		config.Dial = c.Dial
	}
	config.Clock = c.Clock
	config.Audit = c.Follow != nil
	config.Gone = func() bool { return c.Services != nil && c.Services() != nil }
	measured := journal.NewMetrics()
	config.Logger, config.Metrics, config.Tracer = c.Logger.With("part", "journal"), measured, t.tracer
	if s.client, err = journal.NewClient(config); err != nil {
		return s, err
	}
	t.metrics.MustRegister(measured)
	if s.pool = c.Pool; s.pool == nil {
		if s.pool, err = projections.OpenMoving(ctx, c.DatabaseURL); err != nil {
			return s, err
		}
	}
	s.brief = projections.InTurn(s.pool, atOnce)
	s.reads = projections.Limited(s.pool, readers(int(s.pool.Config().MaxConns)))
	s.client.AddBases(c.Settings.BaseSources()...)
	if c.Known == nil {
		s.client.AddBases(projections.Bases{Pool: s.brief})
	}
	if s.snapshots, err = OpenSnapshots(ctx, c.Settings, c.Journals, c.Box, c.Logger.With("part", "snapshot")); err != nil {
		return s, err
	}
	t.metrics.MustRegister(s.snapshots.store)
	at, err := c.Settings.KeyStoreURL()
	if err != nil {
		return s, err
	}
	if s.owners, err = seal.OpenOwners(ctx, at, c.Box); err != nil {
		return s, err
	}
	s.owners.SetClock(s.client.Elapsed)
	s.files = files.New(s.snapshots.bucket, s.owners, c.Settings.Kafka.Prefix)
	return s, s.openHistory(ctx, c)
}

// atOnce is the number of short statements of the node itself that run at the same time.
const atOnce = 2

// readers returns the number of a pool's connections that reads of clients may use. The others serve the webhooks and the signed trees
// while such reads wait for a locked table.
func readers(connections int) int { return max(1, connections-max(1, connections/4)) }

// known returns the sources of positions outside of the log. An owner checks them against its fold before it takes a
// term.
func (s *stores) known(c Config) []journal.Known {
	if c.Known != nil {
		return c.Known
	}
	return append([]journal.Known{s.knownToRows(c), projections.SignedTrees{Pool: s.brief}, s.snapshots.store, s.snapshots.witnesses},
		archive.Known(s.client, projections.ArchiveHeads{Pool: s.brief}, c.Settings.ArchiveHeads())...)
}

// knownToRows returns the source of the positions of the rows.
func (s *stores) knownToRows(c Config) journal.Known {
	if c.Known != nil {
		return c.Known[0]
	}
	return projections.KnownTo{DB: s.brief}
}

// postgresTime returns the time of Postgres's clock.
func (s *stores) postgresTime(ctx context.Context) (time.Time, error) {
	return projections.PostgresTime(ctx, s.brief)
}

// earlierTime returns the earlier one of this machine's time and Postgres's. Data is deleted only if it is old enough by both clocks.
func (s *stores) earlierTime(ctx context.Context) (time.Time, error) {
	theirs, err := s.postgresTime(ctx)
	if now := time.Now(); now.Before(theirs) {
		return now, err
	}
	return theirs, err
}

func (s *stores) close() {
	if s.pool != nil {
		s.pool.Close()
	}
	if s.owners != nil {
		s.owners.Close()
	}
	if s.archived != nil {
		s.archived.Close()
	}
	if s.snapshots != nil {
		s.snapshots.Close()
	}
	if s.client != nil {
		s.client.Close()
	}
}
