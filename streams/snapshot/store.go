// Package snapshot keeps saved states of journals in the blob store, so that who starts to fold need not begin at
// genesis. It is a cache: every snapshot may be deleted at any time and what it spares is folded instead.
//
// A snapshot is made by a follower (Maker), never by an owner on its way, by as many nodes as like to: each is named by
// the position that it stands at, so two nodes that make the same one write the same name. What is in a snapshot is
// trusted as far as an HMAC under the venue's master key goes: one that was cut off or tampered with, or whose state was
// written by a codec of another version, is ignored, with a warning. That the log still holds its position is for those
// to check who fold on from it, and for owners, who check every position they know: a snapshot whose record is not in the
// log means that the log was lost, and is LOG_DIVERGED.
package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

const (
	folder = "snapshots/" // in the bucket, which holds other things too
	keep   = 3            // snapshots of a partition and codec version; older ones are deleted
	// abandoned is how long ago somebody last wrote to a temporary file before it is deleted: he was killed, or what he
	// writes will fail, which costs a snapshot.
	abandoned = time.Hour
)

// Config says where snapshots are.
type Config struct {
	Bucket      *gocloud.Bucket
	Key         []byte // of the HMAC over each snapshot
	TopicPrefix string // of the journals, so that the venues of one Kafka may share a bucket
	Logger      *slog.Logger
}

// Store keeps the snapshots of a venue. It is safe for concurrent use, and implements journal.Known.
type Store struct {
	cfg     Config
	metrics *metrics
	line    *line
}

// NewStore returns a store in a bucket, which stays its user's to close.
func NewStore(cfg Config) *Store {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Store{cfg, newMetrics(), newLine()}
}

var _ journal.Known = (*Store)(nil)

func (s *Store) folder(name string, partition int32) string {
	return fmt.Sprintf("%s%s%s/%d/", folder, s.cfg.TopicPrefix, name, partition)
}

// list returns the snapshots of a partition by falling sequence.
func (s *Store) list(ctx context.Context, journalName string, partition int32) ([]name, error) {
	l, err := s.look(ctx, journalName, partition)
	return l.names, err
}

// listing is what lies in the folder of a partition.
type listing struct {
	names     []name   // of the snapshots, by falling sequence
	abandoned []string // keys of temporary files that nobody writes any more
}

// look lists the folder of a partition.
func (s *Store) look(ctx context.Context, journalName string, partition int32) (listing, error) {
	at := s.folder(journalName, partition)
	l, err := ask(ctx, s.line, s.line.patience, func(ctx context.Context, heard func()) (l listing, err error) {
		for it := s.cfg.Bucket.List(&gocloud.ListOptions{Prefix: at}); ; heard() {
			o, err := it.Next(ctx)
			if errors.Is(err, io.EOF) {
				return l, nil
			}
			if err != nil {
				return l, err
			}
			n, ok := parseName(o.Key[len(at):])
			switch {
			case ok:
				l.names = append(l.names, n)
			case !blob.Temporary(o.Key):
				s.cfg.Logger.Warn("what is no snapshot lies among the snapshots", "blob", o.Key)
			case time.Since(o.ModTime) > abandoned:
				l.abandoned = append(l.abandoned, o.Key)
			}
		}
	})
	if err != nil {
		return l, fmt.Errorf("snapshots of %s/%d: %w", journalName, partition, err)
	}
	slices.SortFunc(l.names, func(a, b name) int { return -compare(a, b) })
	return l, nil
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

// Positions returns the positions of all snapshots of a partition, whatever their codec. It implements journal.Known.
func (s *Store) Positions(ctx context.Context, journalName string, partition int32) ([]journal.Position, error) {
	names, err := s.list(ctx, journalName, partition)
	if err != nil {
		return nil, err
	}
	positions := make([]journal.Position, len(names))
	for i, n := range names {
		positions[i] = n.Position
	}
	return positions, nil
}

// Load returns the newest snapshot of a partition that can be read, or nil if there is none, or the blob store doesn't
// answer: then the log is folded. Its only error is the context's. Each call makes a state of its own.
func (s *Store) Load(ctx context.Context, journalName string, partition int32, codec decide.Codec) (*journal.Seed, error) {
	start := time.Now()
	err := s.line.resting()
	var seed *journal.Seed
	if err == nil {
		seed, err = s.load(ctx, journalName, partition, codec)
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

// ignored tells of a snapshot, or of all, that is not used.
func (s *Store) ignored(journalName string, partition int32, reason, message string, args ...any) {
	s.metrics.ignored.WithLabelValues(journalName, reason).Inc()
	s.cfg.Logger.Warn(message, append([]any{"journal", journalName, "partition", partition}, args...)...)
}

// load returns the newest snapshot that can be read, nil if there is none, and an error if the store does not answer.
func (s *Store) load(ctx context.Context, journalName string, partition int32, codec decide.Codec) (*journal.Seed, error) {
	ctx, cancel := context.WithTimeout(ctx, loadWithin)
	defer cancel()
	names, err := s.list(ctx, journalName, partition)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if n.Codec != codec.Version() {
			s.ignored(journalName, partition, "version", "a snapshot is ignored: its codec has another version", "snapshot", n, "ours", codec.Version())
			continue
		}
		seed, err := s.read(ctx, journalName, partition, n, codec)
		switch {
		case err == nil:
			return seed, nil
		case errors.Is(err, errSilent) || ctx.Err() != nil:
			return nil, err
		case gcerrors.Code(err) == gcerrors.NotFound: // it was the oldest, and another node has made a newer one
		default:
			s.ignored(journalName, partition, "damaged", "a snapshot is ignored", "snapshot", n, "error", err)
		}
	}
	return nil, nil
}

// read reads one snapshot.
func (s *Store) read(ctx context.Context, journalName string, partition int32, n name, codec decide.Codec) (*journal.Seed, error) {
	content, err := s.fetch(ctx, s.folder(journalName, partition)+n.String())
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
	return &journal.Seed{State: state, Position: h.Position, Term: h.Term, URL: h.URL, Time: h.Time, Journal: h.JournalID,
		Anchors: anchors}, nil
}

// fetch returns the content of a blob. It waits for as long as pieces of it keep coming.
func (s *Store) fetch(ctx context.Context, key string) ([]byte, error) {
	return ask(ctx, s.line, s.line.patience, func(ctx context.Context, heard func()) ([]byte, error) {
		r, err := s.cfg.Bucket.NewReader(ctx, key, nil)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		heard()
		content := bytes.NewBuffer(make([]byte, 0, max(r.Size(), 0)+bytes.MinRead))
		for {
			_, err := io.CopyN(content, r, piece)
			if errors.Is(err, io.EOF) {
				return content.Bytes(), nil
			}
			if err != nil {
				return nil, err
			}
			heard()
		}
	})
}

// save writes a snapshot and deletes what is too old. It returns how many bytes it took.
func (s *Store) save(ctx context.Context, h Header, anchors []journal.Position, state []byte) (bytes int, err error) {
	content, err := appendFile(s.cfg.Key, h, thin(anchors), state)
	if err != nil {
		return 0, err
	}
	at := s.folder(h.Journal, h.Partition)
	key := at + name{h.Position, h.Codec}.String()
	_, err = ask(ctx, s.line, saveWithin, func(ctx context.Context, _ func()) (struct{}, error) {
		return struct{}{}, blob.Write(ctx, s.cfg.Bucket, key, content)
	})
	if err != nil {
		return 0, fmt.Errorf("snapshot: %w", err)
	}
	l, err := s.look(ctx, h.Journal, h.Partition)
	if err != nil {
		return 0, err
	}
	for _, key := range l.abandoned {
		s.cfg.Logger.Info("deleting what somebody left who was killed while he wrote a snapshot", "blob", key)
		if err := s.delete(ctx, key); err != nil {
			return 0, err
		}
	}
	of := make(map[int]int) // by codec
	for _, n := range l.names {
		if of[n.Codec]++; of[n.Codec] <= keep {
			continue
		}
		if err := s.delete(ctx, at+n.String()); err != nil {
			return 0, err
		}
	}
	return len(content), nil
}

// delete deletes a blob, unless another node has.
func (s *Store) delete(ctx context.Context, key string) error {
	_, err := ask(ctx, s.line, s.line.patience, func(ctx context.Context, _ func()) (struct{}, error) {
		return struct{}{}, s.cfg.Bucket.Delete(ctx, key)
	})
	if err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("snapshot: deleting an old one: %w", err)
	}
	return nil
}

// Forget deletes every snapshot of a partition and returns how many there were. It is part of forgetting a log.
func (s *Store) Forget(ctx context.Context, journalName string, partition int32) (int, error) {
	names, err := s.list(ctx, journalName, partition)
	if err != nil {
		return 0, err
	}
	for _, n := range names {
		if err := s.delete(ctx, s.folder(journalName, partition)+n.String()); err != nil {
			return 0, err
		}
	}
	return len(names), nil
}
