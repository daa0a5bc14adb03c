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
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// trimFile is in the folder of a partition that was trimmed. It is written and synced before the first segment is
// deleted, so a log that begins above offset 0 without it has lost its beginning. kfake ignores it, and removes it with the
// topic.
const trimFile = "trim.json"

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
	at := place{b.TopicPrefix + journal, partition}
	t, err := readTrim(filepath.Join(b.Dir, "partitions", at.folder()))
	switch {
	case err != nil:
		return nil, &base.DamagedError{Source: b.String(), Err: err}
	case t == nil:
		return nil, nil
	case t.Base.Journal != journal || t.Base.Partition != partition:
		return nil, &base.DamagedError{Source: b.String(), Err: fmt.Errorf("trim.json of %s has the %v", at.folder(), t.Base)}
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

// finishTrim deletes the segments that an interrupted trim has left.
func (p *partition) finishTrim(logger *slog.Logger) error {
	for _, s := range p.trimmed {
		logger.Info("deleting a segment that an interrupted trim has left", "file", s.path)
		if err := remove(s.path); err != nil {
			return err
		}
	}
	p.trimmed = nil
	return nil
}

// trims are the trims that trim.json files allow. kfake deletes nothing beyond them.
type trims struct {
	mu sync.Mutex
	at map[place]base.Trim
}

// load takes the trims of a scanned folder.
func (t *trims) load(r *Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = make(map[place]base.Trim)
	for _, p := range r.partitions {
		if at, ok := placeOf(filepath.Base(p.dir)); ok && p.trim != nil {
			t.at[at] = *p.trim
		}
	}
}

// allow writes trim.json, unless it allows as much already.
func (t *trims) allow(dir string, at place, trim base.Trim) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.at[at]; ok {
		if why := old.Base.Contradicts(trim.Base); why != "" {
			return fmt.Errorf("the log was trimmed before at another base: %s", why)
		}
		if old.Offset >= trim.Offset {
			return nil
		}
	}
	if err := base.WriteFile(filepath.Join(dir, "partitions", at.folder(), trimFile), append(trim.JSON(), '\n')); err != nil {
		return err
	}
	t.at[at] = trim
	return nil
}

// allows reports whether records below an offset may be deleted.
func (t *trims) allows(at place, offset int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	trim, ok := t.at[at]
	return ok && offset >= 0 && offset <= trim.Offset
}

var _ base.Trimmer = (*Broker)(nil)

// Trim implements base.Trimmer. It deletes whole segments below the one that holds t.Offset, so never the last segment, and
// returns the first offset of that one. The log in memory loses what the disk loses.
func (b *Broker) Trim(ctx context.Context, topic string, t base.Trim, safe int64) (start int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("broker: trim %s: %w", topic, err)
		}
	}()
	if err := t.Check(safe); err != nil {
		return 0, err
	}
	at := place{topic, t.Base.Partition}
	if b.halt.stopped() {
		return 0, errStopped
	}
	if b.disk != nil { // a flush must not look for a segment that is gone
		if err := b.disk.flushed(logEnd{topic: topic, partition: at.partition, end: t.Offset + 1}); err != nil {
			return 0, err
		}
	}
	info := b.cluster.PartitionInfo(at.topic, at.partition)
	switch {
	case info == nil:
		return 0, kerr.UnknownTopicOrPartition
	case t.Offset < info.LogStartOffset:
		return info.LogStartOffset, nil // it was trimmed further before
	case t.Offset >= info.HighWatermark:
		return 0, fmt.Errorf("offset %d is not in the log, which ends at %d", t.Offset, info.HighWatermark)
	}
	p := partition{dir: filepath.Join(b.dir, "partitions", at.folder())}
	if err := p.list(); err != nil {
		return 0, err
	}
	if len(p.segments) == 0 {
		return info.LogStartOffset, nil
	}
	start = p.segments[keptFrom(p.segments, t.Offset)].base
	if start <= info.LogStartOffset {
		return info.LogStartOffset, nil
	}
	// The file comes first: after a crash the log then begins below the offset in it, even if the disk has deleted the
	// segments in another order.
	if err := b.trims.allow(b.dir, at, t); err != nil {
		return 0, err
	}
	return start, b.deleteRecords(ctx, at, start)
}

// deleteRecords has kfake delete the segments below an offset.
func (b *Broker) deleteRecords(ctx context.Context, at place, start int64) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.Dialer(b.Dial), kgo.DisableClientMetrics())
	if err != nil {
		return err
	}
	defer client.Close()
	offsets := make(kadm.Offsets)
	offsets.AddOffset(at.topic, at.partition, start, -1)
	deleted, err := kadm.NewClient(client).DeleteRecords(ctx, offsets)
	if err == nil {
		err = deleted.Error()
	}
	return err
}

// refuseDeletion answers requests to delete records that no trim allows. Deleting them without trim.json would leave a log
// that the next start refuses.
func refuseDeletion(cluster *kfake.Cluster, t *trims) {
	cluster.ControlKey(kmsg.DeleteRecords.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		request, ok := r.(*kmsg.DeleteRecordsRequest)
		if !ok {
			return nil, nil, false
		}
		allowed := true
		response := request.ResponseKind().(*kmsg.DeleteRecordsResponse)
		for _, topic := range request.Topics {
			refused := kmsg.NewDeleteRecordsResponseTopic()
			refused.Topic = topic.Topic
			for _, p := range topic.Partitions {
				allowed = allowed && t.allows(place{topic.Topic, p.Partition}, p.Offset)
				one := kmsg.NewDeleteRecordsResponseTopicPartition()
				one.Partition, one.ErrorCode = p.Partition, kerr.PolicyViolation.Code
				refused.Partitions = append(refused.Partitions, one)
			}
			response.Topics = append(response.Topics, refused)
		}
		if allowed {
			return nil, nil, false
		}
		return response, nil, true
	})
}
