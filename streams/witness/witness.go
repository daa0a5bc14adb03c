// Package witness stores, outside of the log, how far each node has read it. The rows in Postgres are a moment behind
// and a snapshot may be far behind. So without a witness, the last batches of a log could be cut off and the next start
// would not notice.
//
// A witness is a small blob for each journal partition and node, replaced as a whole. It names a position that a fold
// of that node has applied, so the record is valid and acknowledged. An owner that does not find that position in the
// log reports LOG_DIVERGED. It also does so if an older backup of the log was restored, because acknowledged records
// are then missing. To restore one on purpose, forget the log; that also removes the witnesses.
//
// A witness is authenticated by an HMAC with a key derived from the venue's master key. Any other blob is ignored with
// a warning.
package witness

import (
	"bytes"
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

const (
	folder = "witnesses/" // in the bucket, which also holds other blobs
	// retired is the age at which another node may delete a witness with a lower position than its own. The node that
	// wrote it has been removed, or will write the next one.
	retired = 7 * 24 * time.Hour
	// maxSize bounds the bytes read from a blob. A witness is smaller.
	maxSize = 4 << 10
)

// Config configures a Store.
type Config struct {
	Bucket      *gocloud.Bucket
	Key         []byte // key of the HMAC; only Forget works without it
	TopicPrefix string // prefix of the journals' topics, so that venues of one Kafka can share a bucket
	Logger      *slog.Logger
}

// Store stores the witnesses of a venue. It is safe for concurrent use, and implements journal.Known.
type Store struct {
	cfg   Config
	blobs *blob.Store
}

// NewStore returns a store in a bucket. The caller keeps the bucket and closes it.
func NewStore(cfg Config) *Store {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Store{cfg, blob.NewStore(cfg.Bucket)}
}

var _ journal.Known = (*Store)(nil)

// statement is the content of a witness.
type statement struct {
	Blob     string          `json:"blob"` // its key, so that it cannot be copied to another key
	Node     string          `json:"node"`
	Position record.Position `json:"position"`
	Written  time.Time       `json:"written"`
}

func (s *Store) folder(journalName string, partition int32) string {
	return fmt.Sprintf("%s%s%s/%d/", folder, s.cfg.TopicPrefix, journalName, partition)
}

// key returns the key of a node's blob. A node may have any name.
func (s *Store) key(journalName string, partition int32, node string) string {
	return s.folder(journalName, partition) + url.PathEscape(node) + ".witness"
}

// Positions returns the positions of all witnesses of a partition. It implements journal.Known.
func (s *Store) Positions(ctx context.Context, journalName string, partition int32) (positions []record.Position, err error) {
	all, err := s.all(ctx, journalName, partition)
	for _, w := range all {
		positions = append(positions, w.Position)
	}
	return positions, err
}

var errNoKey = errors.New("without the venue's key nobody can tell which witnesses are its own")

// all returns the valid witnesses of a partition.
func (s *Store) all(ctx context.Context, journalName string, partition int32) (all []statement, err error) {
	if len(s.cfg.Key) == 0 {
		return nil, errNoKey
	}
	keys, _, err := s.list(ctx, journalName, partition)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		content, err := s.blobs.Read(ctx, key, maxSize)
		if blob.Missing(err) { // another node has just deleted it
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("witness %s: %w", key, err)
		}
		w, err := s.parse(key, content)
		if err != nil {
			s.cfg.Logger.Warn("a witness of the log is ignored", "blob", key, "error", err)
			continue
		}
		all = append(all, w)
	}
	return all, nil
}

// list returns the keys of the blobs of a partition, and those of the temporary files that killed nodes left.
func (s *Store) list(ctx context.Context, journalName string, partition int32) (keys, abandoned []string, err error) {
	found, err := s.blobs.List(ctx, s.folder(journalName, partition))
	if err != nil {
		return nil, nil, fmt.Errorf("witnesses of %s/%d: %w", journalName, partition, err)
	}
	for _, o := range found {
		switch {
		case blob.Abandoned(o):
			abandoned = append(abandoned, o.Key)
		case !blob.Temporary(o.Key):
			keys = append(keys, o.Key)
		}
	}
	return keys, abandoned, nil
}

// write replaces the witness of a node.
func (s *Store) write(ctx context.Context, journalName string, partition int32, node string, at record.Position) error {
	w := statement{Blob: s.key(journalName, partition, node), Node: node, Position: at, Written: time.Now().UTC()}
	line, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	if err := s.blobs.Write(ctx, w.Blob, s.sign(line), blob.Patience); err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	return nil
}

// retire deletes witnesses that have not been written for a long time and record less than the given position, which
// would pile up as nodes are removed. It also deletes the temporary files of killed nodes. It never deletes a witness
// with a higher position, however old: only that node has seen those records.
func (s *Store) retire(ctx context.Context, journalName string, partition int32, at record.Position) error {
	all, err := s.all(ctx, journalName, partition)
	if err != nil {
		return err
	}
	_, old, err := s.list(ctx, journalName, partition)
	if err != nil {
		return err
	}
	for _, w := range all {
		if w.Position.Sequence < at.Sequence && time.Since(w.Written) > retired {
			old = append(old, w.Blob)
		}
	}
	return s.delete(ctx, old...)
}

func (s *Store) delete(ctx context.Context, keys ...string) error {
	if err := s.blobs.Delete(ctx, keys...); err != nil {
		return fmt.Errorf("witness: %w", err)
	}
	return nil
}

// sign returns the stored form of a witness: a line of JSON and a line with its HMAC. It is readable as text.
func (s *Store) sign(line []byte) []byte {
	return fmt.Appendf(nil, "%s\n%x\n", line, seal.MAC(s.cfg.Key, line))
}

var errForeign = errors.New("it is cut off, damaged or not made by this venue")

// parse decodes the result of sign. It verifies the HMAC before it decodes anything.
func (s *Store) parse(key string, content []byte) (w statement, err error) {
	line, _, _ := bytes.Cut(content, []byte("\n"))
	if !hmac.Equal(content, s.sign(line)) {
		return w, errForeign
	}
	if err := json.Unmarshal(line, &w, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false)); err != nil {
		return w, fmt.Errorf("it is not in the form of a witness: %w", err)
	}
	if w.Blob != key || w.Position.Sequence < 0 || w.Position.Offset < 0 {
		return w, errors.New("it is not what its name says")
	}
	return w, nil
}

// Forget deletes every witness of a partition and returns their number. It is part of forgetting a log.
func (s *Store) Forget(ctx context.Context, journalName string, partition int32) (int, error) {
	keys, abandoned, err := s.list(ctx, journalName, partition)
	if err != nil {
		return 0, err
	}
	if err := s.delete(ctx, abandoned...); err != nil {
		return 0, err
	}
	return len(keys), s.delete(ctx, keys...)
}
