package journal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	stretchBytes = 1 << 20           // most bytes of one fetch
	hintBytes    = 4 << 10           // most bytes of the fetch at the hinted offset of a position
	maxProbes    = 64                // most fetches of one search
	copiesWithin = 2 * windowRecords // most offsets between a record and a copy of it from a retried produce
)

// stretch is the result of one fetch.
type stretch struct {
	records []*kgo.Record
	next    int64 // the offset after the fetched range, even if that holds no records
}

// locator searches for records of one partition by their sequence. It asks the partition's leader with requests that
// return immediately: it never waits for new records.
type locator struct {
	client    *Client
	journal   string
	partition int32
	topic     string
	id        [16]byte // the topic's id
	leader    int32
	bytes     int32 // most bytes of a stretch; a single larger batch is returned whole
	unpack    kgo.Decompressor
}

// locator finds the partition's leader. The result is valid until another broker leads.
func (c *Client) locator(ctx context.Context, journal string, partition int32) (*locator, error) {
	l := &locator{client: c, journal: journal, partition: partition, topic: c.Topic(journal), bytes: stretchBytes, unpack: kgo.DefaultDecompressor()}
	req := kmsg.NewPtrMetadataRequest() // not the client's cached metadata: the topic may have been created again
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &l.topic
	req.Topics = append(req.Topics, topic)
	err := l.ask(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("journal: asking who leads %s/%d: %w", l.topic, partition, err)
	}
	return l, nil
}

func (l *locator) ask(ctx context.Context, req *kmsg.MetadataRequest) error {
	resp, err := req.RequestWith(ctx, l.client.kafka)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return err
		}
		for _, p := range t.Partitions {
			if p.Partition == l.partition && p.Leader >= 0 {
				l.id, l.leader = t.TopicID, p.Leader
				return nil
			}
		}
	}
	return kerr.LeaderNotAvailable
}

// at returns the records from an offset on that fit into one fetch. If the log ends at the offset, it returns none, and
// next is not larger than the offset.
func (l *locator) at(ctx context.Context, offset int64) (stretch, error) {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MinBytes, req.MaxBytes, req.SessionEpoch = -1, 1, l.bytes, -1
	topic, part := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	topic.Topic, topic.TopicID = l.topic, l.id
	part.Partition, part.FetchOffset, part.PartitionMaxBytes = l.partition, offset, l.bytes
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	answer, err := l.client.kafka.Broker(int(l.leader)).RetriableRequest(ctx, req)
	if err != nil {
		return stretch{}, l.failed(offset, err)
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return stretch{}, l.failed(offset, err)
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return stretch{}, l.failed(offset, errors.New("the answer is of other partitions"))
	}
	fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Offset: offset, Topic: l.topic, Partition: l.partition},
		&resp.Topics[0].Partitions[0], l.unpack, nil)
	if fetched.Err != nil {
		return stretch{}, l.failed(offset, fetched.Err)
	}
	return stretch{fetched.Records, next}, nil
}

func (l *locator) failed(offset int64, err error) error {
	return fmt.Errorf("journal: reading %s/%d at offset %d: %w", l.topic, l.partition, offset, err)
}

// matches reports whether a Kafka record is the record of a position.
func matches(k *kgo.Record, p record.Position) bool {
	sequence, ok := record.SequenceOf(k.Value)
	return ok && sequence == p.Sequence && sha256.Sum256(k.Value) == p.Hash
}

// search searches for the record of a position between two offsets: first at the hinted offset, then where its sequence
// suggests. The sequences of valid records rise with the offset, and never faster than the offset. Skipped records follow
// no order, so the search may miss an existing record: only a scan is conclusive. The result may be a later copy of the
// record.
func (l *locator) search(ctx context.Context, p record.Position, low, end int64) (offset int64, found bool, err error) {
	high := end
	guess := p.Offset
	if low <= guess && guess < end {
		if found, err := l.hinted(ctx, p); found || err != nil {
			return guess, found, err
		}
	}
	for probe := 0; low < high && probe < maxProbes; probe++ {
		if guess < low || guess >= high || probe%3 == 2 {
			guess = low + (high-low)/2
		}
		s, first, last, err := l.sequences(ctx, guess, high)
		if err != nil {
			return 0, false, err
		}
		for _, k := range s.records {
			if matches(k, p) {
				return k.Offset, true, nil
			}
		}
		switch {
		case first < 0: // no record with a sequence
			high = guess
		case first > p.Sequence:
			high, guess = guess, guess-(first-p.Sequence)
		case last < p.Sequence:
			low, guess = s.next, s.next-1+p.Sequence-last // each record in between occupies at least one offset
		default:
			return 0, false, nil // it should be in this stretch
		}
	}
	return 0, false, nil
}

// hinted reports whether the record of a position is at its hinted offset. It fetches little: a start checks thousands of
// positions of a long log, and the hints of almost all are right.
func (l *locator) hinted(ctx context.Context, p record.Position) (bool, error) {
	near := *l
	near.bytes = min(hintBytes, l.bytes)
	s, err := near.at(ctx, p.Offset)
	return err == nil && len(s.records) > 0 && s.records[0].Offset == p.Offset && matches(s.records[0], p), err
}

// sequences returns the first stretch between two offsets that holds a record with a sequence, and the sequences of the
// first and the last of these records; -1 if there are none.
func (l *locator) sequences(ctx context.Context, offset, end int64) (s stretch, first, last int64, err error) {
	first, last = -1, -1
	for offset < end && first < 0 {
		if s, err = l.at(ctx, offset); err != nil {
			return s, first, last, err
		}
		for _, k := range s.records {
			if sequence, ok := record.SequenceOf(k.Value); ok {
				if last = sequence; first < 0 {
					first = last
				}
			}
		}
		if s.next <= offset {
			break
		}
		offset = s.next
	}
	return s, first, last, nil
}

// firstCopy returns the offset of the first copy of a record, given the offset of a copy. A retried produce may leave
// two copies. Readers skip the later one, so a reader that continued after it would miss the records after the first.
// No copy is below the offset low.
func (l *locator) firstCopy(ctx context.Context, p record.Position, low, known int64) (int64, error) {
	first := known
	err := l.each(ctx, max(low, known-copiesWithin), known, func(k *kgo.Record) bool {
		if matches(k, p) {
			first = k.Offset
		}
		return first == known
	})
	return first, err
}

// genesis returns the valid genesis event of a partition, or nil if there is none yet. For a log with a base it returns what
// the base repeats of the genesis, which the topic may not hold any more.
func (c *Client) genesis(ctx context.Context, journal string, partition int32) (*record.Genesis, error) {
	return (&genesisSearch{client: c, journal: journal, partition: partition}).find(ctx)
}

// genesisSearch looks for a genesis. It reads no record again that it has read.
type genesisSearch struct {
	client    *Client
	journal   string
	partition int32
	next      int64 // offset after the last record read
}

// find is Client.genesis. It may be called again, also after an error.
func (g *genesisSearch) find(ctx context.Context) (*record.Genesis, error) {
	c, journal, partition := g.client, g.journal, g.partition
	s, err := c.span(ctx, journal, partition)
	if err != nil {
		return nil, err
	}
	if b := s.base; b != nil {
		return &record.Genesis{Journal: journal, JournalID: b.JournalID, Partition: partition, Partitions: b.Partitions}, nil
	}
	if s.end == 0 {
		return nil, nil
	}
	l, err := c.locator(ctx, journal, partition)
	if err != nil {
		return nil, err
	}
	var found *record.Genesis
	chain := record.NewGenesisChain(journal, partition)
	look := func(k *kgo.Record) bool {
		var entry record.Entry
		var ok bool
		if entry, ok, err = chain.Admit(k.Offset, k.Value); ok && err == nil {
			found = entry.Record.Events[0].(*record.Genesis)
		}
		g.next = k.Offset + 1
		return found == nil && err == nil
	}
	// Almost always the genesis is the first record. Each node looks for it again and again, so a large fetch would cost the brokers.
	near := *l
	near.bytes = min(hintBytes, l.bytes)
	failed := near.each(ctx, g.next, min(1, s.end), look)
	if failed == nil && found == nil && err == nil {
		failed = l.each(ctx, max(1, g.next), s.end, look)
	}
	return found, errors.Join(failed, err)
}
