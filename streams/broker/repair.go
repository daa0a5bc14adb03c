package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// repair brings a scanned folder into the state that kfake would have left at the end of this log: it drops incomplete
// last batches, mends the indexes, and replaces all other derived files. If the process is killed in the middle, the
// next scan and repair give the same result.
func (r *Report) repair(sync func(*os.File) error, logger *slog.Logger) error {
	for i := range r.partitions {
		p := &r.partitions[i]
		if err := p.finishTrim(sync, logger); err != nil {
			return err
		}
		for _, s := range p.segments {
			if s.tail.size > 0 {
				logger.Warn("dropping the incomplete last batch that a crash left; it was never acknowledged",
					"file", s.path, "byte", s.tail.at, "bytes", s.tail.size)
				if err := cut(s.path, s.tail.at); err != nil {
					return err
				}
			}
			if err := s.index.repair(logger); err != nil {
				return err
			}
		}
		if err := p.dropEmpty(); err != nil {
			return err
		}
		if err := p.writeSnapshot(); err != nil {
			return err
		}
	}
	// The state of producers and group members. kfake writes it only on a clean stop, so it would be stale after a
	// later crash.
	for _, name := range []string{"pids.log", "seq_windows.json", "session_state.json"} {
		if err := remove(filepath.Join(r.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// dropEmpty removes an empty last segment, which kfake does not open again, and indexes without a segment. The scan has
// verified that they hold no data.
func (p *partition) dropEmpty() error {
	for _, base := range p.indexes {
		s, ok := p.find(base)
		if ok && s.tail.at > 0 {
			continue
		}
		if err := remove(filepath.Join(p.dir, strconv.FormatInt(base, 10)+indexExtension)); err != nil {
			return err
		}
	}
	if n := len(p.segments); n > 0 && p.segments[n-1].tail.at == 0 {
		if err := remove(p.segments[n-1].path); err != nil {
			return err
		}
		p.segments = p.segments[:n-1]
	}
	return nil
}

func (p *partition) find(base int64) (segment, bool) {
	for _, s := range p.segments {
		if s.base == base {
			return s, true
		}
	}
	return segment{}, false
}

// snapshot is kfake's summary of a partition (its persistPartSnapshot).
type snapshot struct {
	Version          int               `json:"version"`
	HighWatermark    int64             `json:"high_watermark"`
	LastStableOffset int64             `json:"last_stable_offset"`
	LogStartOffset   int64             `json:"log_start_offset"`
	Epoch            int32             `json:"epoch"`
	MaxTimestamp     int64             `json:"max_timestamp"`
	CreatedAt        time.Time         `json:"created_at"`
	Segments         []snapshotSegment `json:"segments"`
}

type snapshotSegment struct {
	BaseOffset int64 `json:"base_offset"`
	Size       int64 `json:"size"`
}

// writeSnapshot replaces kfake's summary with one made from the scan. kfake trusts a summary if its segment sizes are
// right, even for the log's start and end, and the one it wrote may be damaged. Without any summary, kfake holds the
// whole partition in memory while it loads.
func (p *partition) writeSnapshot() error {
	path := filepath.Join(p.dir, "snapshot.json")
	if len(p.segments) == 0 {
		return remove(path)
	}
	s := snapshot{
		Version: 1, HighWatermark: p.next, LastStableOffset: p.next, LogStartOffset: p.segments[0].base,
		MaxTimestamp: p.maxTimestamp, CreatedAt: time.Unix(0, 0).UTC(),
	}
	for _, part := range p.segments {
		s.Segments = append(s.Segments, snapshotSegment{part.base, part.tail.at})
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	temporary := path + ".tmp" // kfake removes a leftover
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("broker: write %s: %w", temporary, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	return nil
}

func cut(path string, size int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	if err := errors.Join(file.Truncate(size), file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("broker: cut %s to %d bytes: %w", path, size, err)
	}
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("broker: %w", err)
	}
	return nil
}
