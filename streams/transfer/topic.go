package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Topic returns the log of a journal in partition 0 of the journal's topic, read and written through a client. where
// describes the brokers for humans. The topic must exist.
func Topic(client *journal.Client, name, where string) Log {
	return &topic{client, name, where}
}

// brokersPattern matches a list of broker addresses.
var brokersPattern = regexp.MustCompile(`^[^/,]+:[0-9]+(,[^/,]+:[0-9]+)*$`)

// Brokers returns the addresses in a list like host:port,host:port, or nil for the name of a file or a folder.
func Brokers(list string) []string {
	if !brokersPattern.MatchString(list) {
		return nil
	}
	return strings.Split(list, ",")
}

type topic struct {
	client *journal.Client
	name   string
	where  string
}

// String returns the description of the brokers.
func (t *topic) String() string { return t.where }

// Base returns the base of the topic, unless it begins with the genesis.
func (t *topic) Base(ctx context.Context) (*record.Base, error) {
	return t.client.TrimmedAt(ctx, t.name, 0)
}

// Records reads with a separate Kafka client, without a consumer group.
func (t *topic) Records(ctx context.Context) (Records, error) {
	start, end, err := t.client.Bounds(ctx, t.name, 0)
	if err != nil {
		return nil, err
	}
	kc, err := t.client.KafkaFor(journal.ForReading, kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{t.client.Topic(t.name): {0: kgo.NewOffset().At(start)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	if err != nil {
		return nil, err
	}
	return &topicRecords{topic: t, kafka: kc, next: start, end: end}, nil
}

type topicRecords struct {
	topic   *topic
	kafka   *kgo.Client
	fetched []*kgo.Record
	next    int64 // offset after the last record returned
	end     int64
}

// Next returns the next record below the end.
func (t *topicRecords) Next(ctx context.Context) (*kgo.Record, error) {
	for t.next < t.end {
		if len(t.fetched) == 0 {
			if err := t.fetch(ctx); err != nil {
				return nil, err
			}
			continue
		}
		r := t.fetched[0]
		t.fetched = t.fetched[1:]
		t.next = r.Offset + 1
		if r.Offset >= t.end {
			break // appended after Records was called
		}
		if !r.Attrs.IsControl() { // control records belong to transactions, which journals do not use but other producers may
			return r, nil
		}
	}
	return nil, io.EOF
}

// fetch waits for more records. It fails if the log now ends before the end that Records saw: the missing records would
// never arrive.
func (t *topicRecords) fetch(ctx context.Context) error {
	return t.topic.client.ToTip(ctx, t.topic.name, 0, func(ctx context.Context, end int64) error {
		if end <= t.next {
			return fmt.Errorf("%s: the log has lost its end while it was read: it ends at offset %d and ended at %d", t.topic, end, t.end)
		}
		fetches := t.kafka.PollRecords(ctx, 10000)
		t.fetched = fetches.Records()
		return fetches.Err()
	})
}

// Close ends the client.
func (t *topicRecords) Close() { t.kafka.Close() }

// A topic is written in pieces. Each piece is acknowledged before the next one is sent: a record that fails leaves a
// gap in its piece at worst, and the copy stops there.
const (
	pieceRecords = 4096
	pieceBytes   = 8 << 20
	maxMessage   = 4 << 20 // limit of the topics
)

// Append returns an appender. The caller must make sure that nothing else appends to the topic.
func (t *topic) Append(context.Context, *record.Base) (Appender, error) { return t.append() }

// EndError says that a topic did not end where an appender expected it: something else appends to it.
type EndError struct {
	Topic      string
	End, Found int64 // offsets: expected, and found
}

// Error names the topic and the offsets.
func (e *EndError) Error() string {
	return fmt.Sprintf("something else appends to %s: it should end at offset %d, and a later record is before offset %d", e.Topic, e.End, e.Found)
}

// TopicAppender appends to a topic for as long as nothing else does. It may buffer records until Close returns.
type TopicAppender struct{ *topicAppender }

// AppendAt returns an appender to a topic that ends at an offset. It looks before each piece of records whether the topic still ends
// where it must, and whether the piece came to lie there. Otherwise its error is an *EndError.
func AppendAt(client *journal.Client, name, where string, end int64) (TopicAppender, error) {
	a, err := (&topic{client, name, where}).append()
	if err != nil {
		return TopicAppender{}, err
	}
	a.ends = func(ctx context.Context) (int64, error) { return client.Tip(ctx, name, 0) }
	a.end = end
	return TopicAppender{a}, nil
}

// Sent returns the number of records that the brokers have acknowledged.
func (a TopicAppender) Sent() int64 { return a.sent }

func (t *topic) append() (*topicAppender, error) {
	kc, err := t.client.KafkaFor(journal.ForWriting, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.StopProducerOnDataLossDetected(), kgo.ProducerBatchMaxBytes(maxMessage), kgo.MaxBufferedRecords(2*pieceRecords))
	if err != nil {
		return nil, err
	}
	return &topicAppender{kafka: kc, topic: t.client.Topic(t.name)}, nil
}

type topicAppender struct {
	kafka *kgo.Client
	topic string
	piece []*kgo.Record
	bytes int

	ends func(context.Context) (int64, error) // asks where the topic ends; nil if the appender does not look
	end  int64                                // where it must
	sent int64                                // number of records
}

// Append buffers the record until its piece is full.
func (t *topicAppender) Append(ctx context.Context, r *kgo.Record) error {
	t.piece = append(t.piece, &kgo.Record{Topic: t.topic, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp})
	t.bytes += len(r.Value)
	if len(t.piece) < pieceRecords && t.bytes < pieceBytes {
		return nil
	}
	return t.send(ctx)
}

func (t *topicAppender) send(ctx context.Context) error {
	// Canceling the context does not end an idempotent produce in flight: its outcome is unknown until the brokers
	// answer, which may be never. So the client is closed.
	stop := context.AfterFunc(ctx, t.kafka.Close)
	defer stop()
	if t.ends != nil {
		end, err := t.ends(ctx)
		if err != nil {
			return err
		}
		if end != t.end {
			t.piece = nil
			return &EndError{t.topic, t.end, end}
		}
	}
	results := t.kafka.ProduceSync(ctx, t.piece...)
	t.piece, t.bytes = nil, 0
	for _, r := range results {
		if r.Err == nil {
			t.sent++
		}
	}
	if err := results.FirstErr(); err != nil {
		return fmt.Errorf("append to %s: %w", t.topic, err)
	}
	for _, r := range results {
		if t.ends != nil && r.Record.Offset != t.end {
			return &EndError{t.topic, t.end, r.Record.Offset}
		}
		t.end++
	}
	return nil
}

// Close sends the last piece.
func (t *topicAppender) Close(ctx context.Context) error {
	defer t.kafka.Close()
	if len(t.piece) == 0 || errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return t.send(ctx)
}
