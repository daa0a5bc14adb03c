package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// trimFile is in the folder of a partition that was trimmed. It is written and synced before the first segment is
// deleted, so a log that begins above offset 0 without it has lost its beginning. kfake ignores it, and removes it with the
// topic.
const trimFile = "trim.json"

// trimRemedy differs from that of other copies: without trim.json the broker does not start.
const trimRemedy = "put back the trim.json that a backup of the folder has"

func readTrim(dir string) (*base.Trim, error) {
	path := filepath.Join(dir, trimFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	t, err := base.ParseTrim(bytes.TrimSuffix(text, []byte("\n")))
	if err != nil {
		return nil, &DamageError{path, 0, err.Error()}
	}
	return &t, nil
}

// Bases finds the bases of the logs in a broker's folder, in the files that trims have left. It may be used while a broker
// runs on the folder.
type Bases struct {
	Dir         string // as in Config
	TopicPrefix string // of the journals' topics
}

var _ base.Source = Bases{}

// Base implements base.Source.
func (b Bases) Base(_ context.Context, journal string, partition int32) (*record.Base, error) {
	at := topicPartition{b.TopicPrefix + journal, partition}
	t, err := readTrim(filepath.Join(b.Dir, "partitions", at.folder()))
	switch {
	case err != nil:
		return nil, &base.DamagedError{Source: b.String(), Err: err, Remedy: trimRemedy}
	case t == nil:
		return nil, nil
	case t.Base.Journal != journal || t.Base.Partition != partition:
		return nil, &base.DamagedError{Source: b.String(), Err: fmt.Errorf("trim.json of %s has the %v", at.folder(), t.Base), Remedy: trimRemedy}
	}
	return &t.Base, nil
}

// String implements base.Source.
func (b Bases) String() string { return "the broker's folder " + b.Dir }

// beginsAt reports whether the log may begin with segment i, given the segments before it. A trim that was interrupted by a
// power cut has deleted any of the segments below its offset, in any order: the kept log begins after the last gap.
func (p *partition) beginsAt(i int) bool {
	if p.trim == nil {
		return false
	}
	s := p.segments[i].base
	return i == 0 || s > p.next && s <= p.trim.Offset
}

// checkTrim checks the log against trim.json and moves the segments below the trim to p.trimmed. first is the first segment
// after the last gap.
func (p *partition) checkTrim(first int) error {
	if p.trim == nil {
		return nil
	}
	path, at := filepath.Join(p.dir, trimFile), p.trim.Offset
	switch {
	case len(p.segments) == 0:
		return &DamageError{path, 0, fmt.Sprintf("the log was trimmed at offset %d, and no segment is left", at)}
	case p.segments[first].base > at:
		return &DamageError{p.segments[first].path, 0, fmt.Sprintf("the log begins at offset %d, after offset %d at which it was trimmed", p.segments[first].base, at)}
	case p.next <= at:
		return &DamageError{path, 0, fmt.Sprintf("the log was trimmed at offset %d, and it ends at offset %d", at, p.next)}
	}
	n := keptFrom(p.segments, at)
	p.trimmed, p.segments = p.segments[:n], p.segments[n:]
	return nil
}

// keptFrom returns the index of the segment that holds an offset. The segments before it may be deleted.
func keptFrom(segments []segment, offset int64) (n int) {
	for n+1 < len(segments) && segments[n+1].base <= offset {
		n++
	}
	return n
}

// finishTrim deletes the segments that an interrupted trim has left. It syncs the folder first: trim.json may have been renamed
// and not be on disk yet, and without it the log that is left would look damaged.
func (p *partition) finishTrim(sync func(*os.File) error, logger *slog.Logger) error {
	if len(p.trimmed) == 0 {
		return nil
	}
	if err := syncFolder(p.dir, sync); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	for _, s := range p.trimmed {
		logger.Info("deleting a segment that an interrupted trim has left", "file", s.path)
		if err := remove(s.path); err != nil {
			return err
		}
	}
	p.trimmed = nil
	return nil
}

var _ base.Trimmer = (*Broker)(nil)

// trimWithin bounds a trim: a broker that stops in the middle of it no longer answers.
const trimWithin = time.Minute

// Trim implements base.Trimmer. It deletes whole segments below the one that holds t.Offset, so never the last segment, and
// returns the first offset of that one. The log in memory loses what the disk loses. It deletes nothing if the record at
// t.Offset is not the first one of the base.
func (b *Broker) Trim(ctx context.Context, topic string, t base.Trim, safe int64) (start int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("broker: trim %s: %w", topic, err)
		}
	}()
	if err := t.Check(safe); err != nil {
		return 0, err
	}
	if b.halt.stopped() {
		return 0, errStopped
	}
	ctx, cancel := context.WithTimeout(ctx, trimWithin)
	defer cancel()
	plan := b.deletions.plan(topicPartition{topic, t.Base.Partition}, t)
	defer b.deletions.drop(plan)
	info := b.cluster.PartitionInfo(topic, t.Base.Partition)
	switch {
	case info == nil:
		return 0, kerr.UnknownTopicOrPartition
	case t.Offset < info.LogStartOffset:
		return info.LogStartOffset, nil // it was trimmed further before
	case t.Offset >= info.HighWatermark:
		return 0, fmt.Errorf("offset %d is not in the log, which ends at %d", t.Offset, info.HighWatermark)
	}
	p := partition{dir: filepath.Join(b.dir, "partitions", plan.at.folder())}
	if err := p.list(); err != nil {
		return 0, err
	}
	if len(p.segments) == 0 {
		return info.LogStartOffset, nil
	}
	first := p.segments[keptFrom(p.segments, t.Offset)]
	if first.base <= info.LogStartOffset {
		return info.LogStartOffset, nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.Dialer(b.Dial), kgo.DisableClientMetrics(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {t.Base.Partition: kgo.NewOffset().At(t.Offset)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxBytes(1<<20))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	// With Config.Sync the answer also waits until the log is on disk beyond t.Offset. So no flush looks for a segment that is
	// deleted.
	if err := checkFirst(ctx, client, t); err != nil {
		return 0, err
	}
	if err := b.syncKept(first); err != nil {
		return 0, err
	}
	return first.base, b.deletions.carryOut(ctx, client, plan, first.base)
}

// checkFirst fetches the first record that a trim keeps and checks it.
func checkFirst(ctx context.Context, client *kgo.Client, t base.Trim) error {
	fetches := client.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		return err
	}
	first := fetches.RecordIter()
	if first.Done() {
		return fmt.Errorf("no record was read at offset %d", t.Offset)
	}
	return t.CheckRecord(first.Next())
}

// syncKept syncs the segment that will be the first one, with its folders. Without Config.Sync it may be in the page cache
// alone: a power cut would then leave a log that ends before the offset in its trim.json.
func (b *Broker) syncKept(s segment) error {
	file, err := os.Open(s.path)
	if err != nil {
		return err
	}
	err = b.sync(file)
	for dir := filepath.Dir(s.path); err == nil; dir = filepath.Dir(dir) {
		if err = syncFolder(dir, b.sync); dir == b.dir {
			break
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.fail(err) // a second attempt would succeed with nothing on disk
	}
	return errors.Join(err, file.Close())
}
