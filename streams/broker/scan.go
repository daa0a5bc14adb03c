package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/perpetua-exchange/perpetua/streams/base"
)

// DamageError reports that a folder has contents that no crash can explain. Nothing was changed.
type DamageError struct {
	File   string
	Offset int64 // position of the byte in File
	Reason string
}

// Error implements error.
func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d: %s; refusing to start, nothing was changed", e.File, e.Offset, e.Reason)
}

// Report is the result of a scan that found no damage.
type Report struct {
	dir        string
	partitions []partition
}

// Bytes returns the size of all complete batches.
func (r *Report) Bytes() int64 {
	n := int64(0)
	for _, p := range r.partitions {
		for _, s := range p.segments {
			n += s.tail.at
		}
	}
	return n
}

type partition struct {
	dir      string
	trim     *base.Trim // nil if the log was never trimmed
	trimmed  []segment  // what an interrupted trim has left: wholly below trim.Offset, perhaps with gaps between them
	segments []segment
	next     int64 // offset after the last record
	indexes  []int64
	// maxTimestamp is the highest timestamp of all batches, as recorded in index entries.
	maxTimestamp int64
}

type segment struct {
	path  string
	base  int64
	tail  tail
	index index
}

// scan reads the whole folder without changing anything. An intact log may end in one incomplete batch per partition,
// as a crash leaves it, and its indexes may be in any state that the segments can repair. A log that was trimmed begins at
// or below the offset in trim.json; segments below that may be missing. scan returns a *DamageError for anything else. A
// folder that is empty or does not exist is an intact, empty log. scan calls progress with the size of each segment that it
// has read.
func scan(ctx context.Context, dir string, progress func(bytes int64)) (*Report, error) {
	report := &Report{dir: dir}
	known, source, err := topics(dir)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(dir, "partitions")
	entries, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return report, nil
	}
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	for _, entry := range entries {
		p := partition{dir: filepath.Join(root, entry.Name())}
		if err := p.list(); err != nil {
			return nil, err
		}
		if p.trim, err = readTrim(p.dir); err != nil {
			return nil, err
		}
		if (len(p.segments)+len(p.indexes) > 0 || p.trim != nil) && !known.have(entry.Name()) {
			// kfake would not load this partition, and would write a new log into its files once a topic of this name
			// is created.
			return nil, &DamageError{source, 0, "it is missing or does not name the partition " + entry.Name() + ", whose log is there"}
		}
		if err := p.scan(ctx, progress); err != nil {
			return nil, err
		}
		report.partitions = append(report.partitions, p)
	}
	return report, nil
}

const topicsFile = "topics.json"

// partitionCounts maps topics to their numbers of partitions.
type partitionCounts map[string]int

func (c partitionCounts) have(folder string) bool {
	at, ok := partitionOf(folder)
	return ok && int(at.partition) < c[at.topic]
}

// topicPartition identifies a partition of a topic.
type topicPartition struct {
	topic     string
	partition int32
}

// folder returns the name of the partition's folder.
func (p topicPartition) folder() string {
	return url.PathEscape(p.topic) + "-" + strconv.Itoa(int(p.partition))
}

// partitionOf returns the partition of a folder name.
func partitionOf(folder string) (topicPartition, bool) {
	dash := strings.LastIndexByte(folder, '-')
	if dash < 0 {
		return topicPartition{}, false
	}
	topic, err := url.PathUnescape(folder[:dash])
	if err != nil {
		return topicPartition{}, false
	}
	number, err := strconv.ParseInt(folder[dash+1:], 10, 32)
	return topicPartition{topic, int32(number)}, err == nil && number >= 0
}

// topics returns the topics that the broker will open, and the path of the file that lists them. kfake replaces these
// files atomically, so a crash never leaves a partial one. Without meta.json, kfake treats the folder as new.
func topics(dir string) (partitionCounts, string, error) {
	var path string
	for _, name := range []string{"meta.json", topicsFile} {
		path = filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, path, nil
		}
		if err != nil {
			return nil, path, fmt.Errorf("broker: %w", err)
		}
		var content struct {
			Topics []struct {
				Name       string
				Partitions int
			}
		}
		if err := json.Unmarshal(text, &content); err != nil {
			at := int64(0)
			if e := (*json.SyntaxError)(nil); errors.As(err, &e) {
				at = e.Offset - 1
			}
			return nil, path, &DamageError{path, max(at, 0), err.Error()}
		}
		if name == topicsFile {
			counts := partitionCounts{}
			for _, t := range content.Topics {
				counts[t.Name] = t.Partitions
			}
			return counts, path, nil
		}
	}
	return nil, path, nil
}

// list collects the partition's segments, in order of their offsets, and its indexes.
func (p *partition) list() error {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(p.dir, entry.Name())
		extension := filepath.Ext(path)
		if extension != segmentExtension && extension != indexExtension {
			continue // snapshot.json and temporary files, which kfake makes again
		}
		name := strings.TrimSuffix(entry.Name(), extension)
		base, err := strconv.ParseInt(name, 10, 64)
		if err != nil || base < 0 || strconv.FormatInt(base, 10) != name {
			return &DamageError{path, 0, "its name is not an offset"}
		}
		if extension == indexExtension {
			p.indexes = append(p.indexes, base)
		} else {
			p.segments = append(p.segments, segment{path: path, base: base})
		}
	}
	slices.SortFunc(p.segments, func(a, b segment) int { return int(min(max(a.base-b.base, -1), 1)) })
	return nil
}

func (p *partition) scan(ctx context.Context, progress func(bytes int64)) error {
	first := 0
	for i := range p.segments {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("broker: scan: %w", err)
		}
		s := &p.segments[i]
		if p.beginsAt(i) {
			first, p.next, p.maxTimestamp = i, s.base, 0
		}
		if s.base != p.next {
			return &DamageError{s.path, 0, fmt.Sprintf("the segment starts at offset %d where %d comes next", s.base, p.next)}
		}
		last := i == len(p.segments)-1
		if err := p.scanSegment(s, i == first); err != nil {
			return err
		}
		progress(s.tail.at)
		if !last && s.tail.size > 0 {
			return &DamageError{s.path, s.tail.at, "the segment ends in the middle of the batch that starts here, and it is not the last segment"}
		}
		if !last && s.tail.at == 0 {
			return &DamageError{s.path, 0, "the segment is empty, and it is not the last segment"}
		}
	}
	if err := p.checkTrim(first); err != nil {
		return err
	}
	for _, base := range p.indexes {
		if slices.ContainsFunc(p.segments, func(s segment) bool { return s.base == base }) || p.trim != nil && base < p.segments[0].base {
			continue
		}
		path := filepath.Join(p.dir, strconv.FormatInt(base, 10)+indexExtension)
		if info, err := os.Stat(path); err != nil {
			return fmt.Errorf("broker: %w", err)
		} else if info.Size() > 0 {
			return &DamageError{path, 0, "this is the index of a segment that is missing"}
		}
	}
	return nil
}

// scanSegment reads a segment. first says that it is the first one of the log.
func (p *partition) scanSegment(s *segment, first bool) error {
	file, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	reader, err := openIndex(s.path)
	if err != nil {
		return err
	}
	defer reader.close()
	s.tail, err = scanSegment(file, info.Size(), p.next, func(b batch) error {
		if first || b.maxTimestamp > p.maxTimestamp {
			p.maxTimestamp, first = b.maxTimestamp, false
		}
		p.next = b.lastOffset + 1
		return reader.check(indexEntry(b, p.maxTimestamp))
	})
	s.index = reader.index
	if f := (*damage)(nil); errors.As(err, &f) {
		return &DamageError{s.path, f.at, f.reason}
	}
	if err != nil {
		return fmt.Errorf("broker: %s: %w", s.path, err)
	}
	return nil
}

// segmentBytes returns the size of all segment files.
func segmentBytes(dir string) (int64, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "partitions", "*", "*"+segmentExtension))
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // its topic was deleted after the listing
		}
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}
