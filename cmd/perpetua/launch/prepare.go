package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/version"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// begin writes the first lines of a node's log: the version, and warnings about misspelled variables and doubtful settings. It
// returns a usage error that lists every invalid setting, or an error if the process may open too few files.
func begin(command string, s *settings.Settings, log *slog.Logger) error {
	version.Current().Log(log, command)
	s.WarnUnknown(log)
	for _, doubt := range s.Doubtful() {
		log.Warn("a setting is not what it seems to be", "error", doubt)
	}
	wrong := node.CheckSettings(s)
	if command != "follow" && s.Stores.ArchiveKey != "" {
		wrong = append(wrong, settings.Usagef("--archive-key-file is for readers outside the venue, which reads its archive with the master key"))
	}
	if len(wrong) > 0 {
		return settings.Usagef("%s", strings.ReplaceAll(errors.Join(wrong...).Error(), "\n", "; "))
	}
	return node.CheckOpenFiles()
}

// unlessStopped returns nil if a stop of the process has ended the start of a node. It logs the error of that start.
func unlessStopped(ctx context.Context, log *slog.Logger, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	log.Info("stopped before the start was complete", "error", err)
	return nil
}

// lookWithin limits each check of the key store, Kafka and Postgres.
const lookWithin = 10 * time.Second

// look is a check before the start.
type look struct {
	within time.Duration
	at     func(context.Context) error
}

// lookAtAll makes the checks one after the other, until one fails. Each has its own time limit: a bucket that does not answer must not
// use up the time of the key store.
func lookAtAll(ctx context.Context, looks ...look) error {
	for _, l := range looks {
		looking, cancel := context.WithTimeout(ctx, l.within)
		err := l.at(looking)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// prepare checks the ports, the bucket and the master key, and Kafka and Postgres if the settings name them. It runs before the
// embedded broker and Postgres are started. It returns a pool on the named Postgres, which the caller closes, or nil.
func prepare(ctx context.Context, s *settings.Settings, folder *local.Folder) (rows *pgxpool.Pool, err error) {
	if err := node.CheckPorts(ctx, s); err != nil {
		return nil, err
	}
	err = lookAtAll(ctx,
		look{blob.Patience, func(ctx context.Context) error { return lookAtBucket(ctx, s) }},
		look{lookWithin, func(ctx context.Context) error { return lookAtKey(ctx, s, folder) }},
		look{lookWithin, func(ctx context.Context) error { return lookAtKafka(ctx, s) }},
		look{lookWithin, func(ctx context.Context) (err error) { rows, err = lookAtPostgres(ctx, s); return err }})
	return rows, err
}

// lookAtBucket fails if the bucket does not exist. A bucket that does not answer in time is accepted, as nodes run without one.
func lookAtBucket(ctx context.Context, s *settings.Settings) error {
	bucket, err := s.OpenBucket(ctx)
	if err != nil {
		return err
	}
	defer bucket.Close()
	if there, err := bucket.IsAccessible(ctx); err == nil && !there {
		return errors.New("the bucket of --blob-url does not exist, or access is denied")
	}
	return nil
}

// lookAtKey fails if the master key cannot be read, or if another key sealed the log of the folder. A missing key is accepted if the
// folder has no log.
func lookAtKey(ctx context.Context, s *settings.Settings, folder *local.Folder) error {
	sealed, err := sealedWith(s, folder)
	if err != nil {
		return err
	}
	box, err := s.FindMaster(ctx)
	switch {
	case errors.Is(err, seal.ErrNoKey) && sealed == "":
		return nil
	case err != nil:
		return err
	case sealed != "" && sealed != box.KeyID():
		return fmt.Errorf("the log in %s was sealed with master key %s, and this is master key %s: restore the right key in the key store or in %s",
			folder.Dir, sealed, box.KeyID(), seal.Environment)
	}
	return nil
}

// lookAtKafka fails if none of the named brokers answers in time. Then they are down, or the addresses or the settings of TLS and
// SASL are wrong. A node does not wait for brokers at its start, so this refuses no cluster that a node could start on.
func lookAtKafka(ctx context.Context, s *settings.Settings) error {
	if len(s.Brokers()) == 0 {
		return nil
	}
	client, err := s.NewClient(s.Brokers(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer client.Close()
	err = client.Ping(ctx)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return fmt.Errorf("the Kafka at %s cannot be used: it does not answer within %s", s.Kafka.Brokers, lookWithin)
	}
	if err != nil {
		return fmt.Errorf("the Kafka at %s cannot be used: %w", s.Kafka.Brokers, err)
	}
	return nil
}

// lookAtPostgres opens the named Postgres. It fails if that does not answer.
func lookAtPostgres(ctx context.Context, s *settings.Settings) (*pgxpool.Pool, error) {
	if s.DatabaseURL == "" {
		return nil, nil
	}
	pool, err := projections.Open(ctx, s.DatabaseURL)
	if err != nil {
		return nil, err
	}
	if err := projections.Ping(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// openRows returns the pool that prepare has opened, or else one on the embedded Postgres. The caller closes it.
func openRows(ctx context.Context, named *pgxpool.Pool, services *local.Services) (*pgxpool.Pool, error) {
	if named != nil {
		return named, nil
	}
	return projections.OpenMoving(ctx, services.DatabaseURL)
}

// sealedWith returns the id of the master key that sealed the log of the folder, or "" if it is unknown or the log is on a cluster.
func sealedWith(s *settings.Settings, folder *local.Folder) (string, error) {
	if len(s.Brokers()) > 0 {
		return "", nil
	}
	if _, err := os.Stat(folder.Path("kafka")); err != nil {
		return "", nil // the log will be new
	}
	id, err := os.ReadFile(folder.Path(local.KeyIDFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(id)), err
}

// noteKey writes the id of the master key to the folder if the log is embedded.
func noteKey(folder *local.Folder, embedded bool, box *seal.Box) error {
	if !embedded {
		return nil
	}
	return folder.Keep(local.KeyIDFile, box.KeyID()+"\n")
}
