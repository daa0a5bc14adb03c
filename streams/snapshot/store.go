// Package snapshot saves states of journals in the blob store, so that a fold can start there instead of at genesis. It is a
// cache: any snapshot may be deleted at any time, and the records are then folded again.
//
// Followers make snapshots (Maker), owners never do. Any number of nodes may make them: a snapshot is named after its
// position, so two nodes that make the same one write the same name. Content and name are authenticated by an HMAC with a
// key derived from the venue's master key. A snapshot that is truncated, altered, renamed, or written by another version of
// the codec is ignored with a warning. A reader that starts from a snapshot checks that the log still holds its position.
// Owners check every known position: a snapshot without its record in the log means that the log was lost (LOG_DIVERGED).
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	folder = "snapshots/" // in the bucket, which also holds other blobs
	keep   = 3            // snapshots of a partition and codec version; older ones are deleted

	// A snapshot only saves work, so a fold does not wait for one that does not answer. But a snapshot that is being
	// read may take long: a large one is slow over a network.
	loadWithin = time.Minute     // limit for loading one, including the listing
	saveWithin = 5 * time.Minute // limit for writing one
	maxSize    = 4 << 30         // bytes read from a blob
)

// Config configures a Store.
type Config struct {
	Bucket      *gocloud.Bucket
	Key         []byte // key of the HMACs over each snapshot and its name; only Forget works without it
	TopicPrefix string // prefix of the journals' topics, so that venues of one Kafka can share a bucket
	Logger      *slog.Logger
	// Folder is the folder of the bucket with a slash at its end; "" for that of the working snapshots, which folds start from.
	Folder string
}

// Store stores the snapshots of a venue. It is safe for concurrent use, and implements journal.Known.
type Store struct {
	cfg     Config
	metrics *metrics
	blobs   *blob.Store
}

// NewStore returns a store in a bucket. The caller keeps the bucket and closes it.
func NewStore(cfg Config) *Store {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Folder == "" {
		cfg.Folder = folder
	}
	return &Store{cfg, newMetrics(), blob.NewStore(cfg.Bucket)}
}

var _ journal.Known = (*Store)(nil)

func (s *Store) folder(name string, partition int32) string {
	return fmt.Sprintf("%s%s%s/%d/", s.cfg.Folder, s.cfg.TopicPrefix, name, partition)
}

// key returns the key of a snapshot's blob.
func (s *Store) key(journalName string, partition int32, n name) string {
	return sealed(s.cfg.Key, s.folder(journalName, partition)+n.String())
}

// list returns the snapshots of a partition in descending order of sequence.
func (s *Store) list(ctx context.Context, journalName string, partition int32) ([]name, error) {
	l, err := s.listFolder(ctx, journalName, partition)
	return l.names, err
}

// listing is the content of a partition's folder.
type listing struct {
	names     []name                         // snapshots, in descending order of sequence
	blobs     map[string]*gocloud.ListObject // by name
	abandoned []string                       // keys of abandoned temporary files
}

var errNoKey = errors.New("without the venue's key nobody can tell which snapshots are its own")

// listFolder lists the folder of a partition. It ignores blobs that the venue has not made, even with the name of a
// snapshot.
func (s *Store) listFolder(ctx context.Context, journalName string, partition int32) (l listing, err error) {
	if len(s.cfg.Key) == 0 {
		return l, errNoKey
	}
	at := s.folder(journalName, partition)
	l.blobs = make(map[string]*gocloud.ListObject)
	found, err := s.all(ctx, journalName, partition)
	for _, o := range found {
		plain, own := isSealed(s.cfg.Key, o.Key)
		n, ok := parseName(strings.TrimPrefix(plain, at))
		switch {
		case own && ok:
			l.names = append(l.names, n)
			l.blobs[n.String()] = o
		case blob.Abandoned(o):
			l.abandoned = append(l.abandoned, o.Key)
		case !blob.Temporary(o.Key):
			s.cfg.Logger.Warn("what is no snapshot of this venue lies among its snapshots", "blob", o.Key)
		}
	}
	slices.SortFunc(l.names, func(a, b name) int { return -compare(a, b) })
	return l, err
}

// all returns the blobs in the folder of a partition.
func (s *Store) all(ctx context.Context, journalName string, partition int32) ([]*gocloud.ListObject, error) {
	found, err := s.blobs.List(ctx, s.folder(journalName, partition))
	if err != nil {
		return nil, fmt.Errorf("snapshots of %s/%d: %w", journalName, partition, err)
	}
	return found, nil
}

func compare(a, b name) int {
	switch {
	case a.Position.Sequence < b.Position.Sequence:
		return -1
	case a.Position.Sequence > b.Position.Sequence:
		return 1
	}
	return 0
}

// Positions returns the positions of all snapshots of a partition, of every codec version. It implements journal.Known.
func (s *Store) Positions(ctx context.Context, journalName string, partition int32) ([]record.Position, error) {
	names, err := s.list(ctx, journalName, partition)
	if err != nil {
		return nil, err
	}
	positions := make([]record.Position, len(names))
	for i, n := range names {
		positions[i] = n.Position
	}
	return positions, nil
}

// Load returns the newest readable snapshot of a partition. It returns nil if there is none or the blob store does not
// answer; the log is then folded from its beginning. The only error is that of the context. Each call returns a
// separate state.
func (s *Store) Load(ctx context.Context, journalName string, partition int32, codec decide.StateCodec) (*record.Seed, error) {
	start := time.Now()
	err := s.blobs.Resting()
	var seed *record.Seed
	if err == nil {
		seed, err = s.load(ctx, journalName, partition, codec, math.MaxInt64)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		s.ignored(journalName, partition, "unreachable", "no snapshot is used, since the blob store does not answer: the log is folded from its beginning",
			"waited", time.Since(start).Round(time.Millisecond), "error", err)
	case seed != nil:
		s.metrics.loads.WithLabelValues(journalName).Observe(time.Since(start).Seconds())
		s.metrics.loaded.WithLabelValues(journalName).Set(float64(seed.Position.Sequence))
		s.cfg.Logger.Info("starting from a snapshot", "journal", journalName, "partition", partition, "sequence", seed.Position.Sequence, "took", time.Since(start))
	}
	return seed, nil
}

// ignored reports that a snapshot, or every snapshot, is not used.
func (s *Store) ignored(journalName string, partition int32, reason, message string, args ...any) {
	s.metrics.ignored.WithLabelValues(journalName, reason).Inc()
	s.cfg.Logger.Warn(message, append([]any{"journal", journalName, "partition", partition}, args...)...)
}

// load returns the newest readable snapshot at or below a sequence, nil if there is none, or an error if the store does not
// answer.
func (s *Store) load(ctx context.Context, journalName string, partition int32, codec decide.StateCodec, most int64) (*record.Seed, error) {
	ctx, cancel := context.WithTimeout(ctx, loadWithin)
	defer cancel()
	names, err := s.list(ctx, journalName, partition)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if n.Position.Sequence > most {
			continue
		}
		if n.Codec != codec.Version() {
			s.ignored(journalName, partition, "version", "a snapshot is ignored: its codec has another version", "snapshot", n, "ours", codec.Version())
			continue
		}
		seed, err := s.read(ctx, journalName, partition, n, codec)
		switch {
		case err == nil:
			return seed, nil
		case errors.Is(err, blob.ErrSilent) || ctx.Err() != nil:
			return nil, err
		case blob.Missing(err): // it was the oldest, and another node has made a newer one
		default:
			s.ignored(journalName, partition, "damaged", "a snapshot is ignored", "snapshot", n, "error", err)
		}
	}
	return nil, nil
}

// read reads one snapshot.
func (s *Store) read(ctx context.Context, journalName string, partition int32, n name, codec decide.StateCodec) (*record.Seed, error) {
	content, err := s.blobs.Read(ctx, s.key(journalName, partition, n), maxSize)
	if err != nil {
		return nil, err
	}
	h, anchors, saved, err := parseFile(s.cfg.Key, content)
	if err != nil {
		return nil, err
	}
	if h.Journal != journalName || h.Partition != partition || !h.Position.Equal(n.Position) || h.Codec != n.Codec {
		return nil, errors.New("it is not what its name says")
	}
	state, err := codec.Read(saved)
	if err != nil {
		return nil, err
	}
	return &record.Seed{State: state, Position: h.Position, Term: h.Term, URL: h.URL, Time: h.Time, Journal: h.JournalID,
		Anchors: anchors}, nil
}

// save writes a snapshot, deletes old ones, and returns the size of the new one in bytes.
func (s *Store) save(ctx context.Context, h Header, anchors []record.Position, state []byte) (bytes int, err error) {
	if bytes, err = s.Put(ctx, h, anchors, state); err != nil {
		return 0, err
	}
	l, err := s.listFolder(ctx, h.Journal, h.Partition)
	if err != nil {
		return 0, err
	}
	old := l.abandoned
	if len(old) > 0 {
		s.cfg.Logger.Info("deleting snapshots that a killed process left unfinished", "blobs", old)
	}
	of := make(map[int]int) // number of snapshots by codec version
	for _, n := range l.names {
		if of[n.Codec]++; of[n.Codec] > keep {
			old = append(old, s.key(h.Journal, h.Partition, n))
		}
	}
	if err := s.blobs.Delete(ctx, old...); err != nil {
		return 0, fmt.Errorf("snapshot: %w", err)
	}
	return bytes, nil
}

// Forget deletes every snapshot of a partition, including those that this venue did not make, and returns their number.
// It is part of forgetting a log.
func (s *Store) Forget(ctx context.Context, journalName string, partition int32) (n int, err error) {
	found, err := s.all(ctx, journalName, partition)
	if err != nil {
		return 0, err
	}
	var keys []string
	for _, o := range found {
		base := strings.TrimPrefix(o.Key, s.folder(journalName, partition))
		plain, _ := isSealed(s.cfg.Key, base)
		_, named := parseName(plain)
		if _, unsealed := parseName(base); named || unsealed {
			keys = append(keys, o.Key)
		}
	}
	if err := s.blobs.Delete(ctx, keys...); err != nil {
		return 0, fmt.Errorf("snapshot: %w", err)
	}
	return len(keys), nil
}
