package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Trim deletes the log before a base and returns the lowest offset that is left. It deletes nothing unless b is the newest
// base that the client's sources keep, the log holds the record of b, and that record's offset is not above safe. The
// caller MUST have made sure that the archive holds the records before b and that no reader needs them.
func (c *Client) Trim(ctx context.Context, t base.Trimmer, b record.Base, safe int64) (start int64, err error) {
	if err := b.Validate(); err != nil {
		return 0, err
	}
	stored, silent, err := c.Base(ctx, b.Journal, b.Partition)
	switch {
	case err != nil:
		return 0, err
	case silent != nil:
		return 0, fmt.Errorf("journal: %w", silent)
	case stored == nil || *stored != b:
		return 0, fmt.Errorf("journal: the %v is not the newest that is kept", b)
	}
	s, err := c.span(ctx, b.Journal, b.Partition)
	if err != nil {
		return 0, err
	}
	return t.Trim(ctx, c.Topic(b.Journal), base.Trim{Base: b, Offset: s.first}, safe)
}

// Trimmer returns a trimmer of the topics on the client's brokers. On an embedded broker it deletes nothing: *broker.Broker
// is the trimmer of that.
func (c *Client) Trimmer() base.Trimmer { return kafkaTrimmer{c} }

type kafkaTrimmer struct{ client *Client }

// Trim implements base.Trimmer. Kafka hides the records below t.Offset immediately, and deletes whole segments later.
func (k kafkaTrimmer) Trim(ctx context.Context, topic string, t base.Trim, safe int64) (start int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("journal: trim %s: %w", topic, err)
		}
	}()
	if err := t.Check(safe); err != nil {
		return 0, err
	}
	if own := k.client.Topic(t.Base.Journal); topic != own {
		return 0, fmt.Errorf("the topic of the %v is %s", t.Base, own)
	}
	m, err := k.client.admin.Metadata(ctx, topic)
	if err != nil {
		return 0, err
	}
	if broker.Embedded(m.Cluster) {
		return 0, errors.New("the embedded broker deletes records only by itself")
	}
	start, end, err := k.client.Bounds(ctx, t.Base.Journal, t.Base.Partition)
	switch {
	case err != nil:
		return 0, err
	case t.Offset >= end:
		return 0, fmt.Errorf("offset %d is not in the log, which ends at %d", t.Offset, end)
	case t.Offset <= start:
		return start, nil
	}
	if err := k.checkFirst(ctx, t); err != nil {
		return 0, err
	}
	offsets := make(kadm.Offsets)
	offsets.AddOffset(topic, t.Base.Partition, t.Offset, -1)
	deleted, err := k.client.admin.DeleteRecords(ctx, offsets)
	if err != nil {
		return 0, err
	}
	d, ok := deleted.Lookup(topic, t.Base.Partition)
	if !ok {
		return 0, kerr.UnknownTopicOrPartition
	}
	return d.LowWatermark, d.Err
}

// checkFirst fetches the first record that a trim keeps and checks it.
func (k kafkaTrimmer) checkFirst(ctx context.Context, t base.Trim) error {
	l, err := k.client.locator(ctx, t.Base.Journal, t.Base.Partition)
	if err != nil {
		return err
	}
	s, err := l.at(ctx, t.Offset)
	if err != nil {
		return err
	}
	if len(s.records) == 0 {
		return fmt.Errorf("no record was read at offset %d", t.Offset)
	}
	return t.CheckRecord(s.records[0])
}
