package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/broker"
)

// LogLocation identifies the location of a log. It differs between a log and a copy of the log, although their records are equal.
// For a Kafka topic it consists of the cluster id and the topic id that the brokers return. For an embedded broker it consists
// of the cluster id, which names the device and the inode of the broker's folder, and the name of the topic.
//
// Two LogLocations are equal if and only if they identify the same log, except that a cloned disk image has the LogLocation of the
// original.
type LogLocation struct {
	Cluster string
	Topic   string // the topic's id in standard base64; its name for an embedded broker and where the brokers give no ids
}

// String returns the location as one word; "" for the zero value.
func (p LogLocation) String() string {
	if p.Topic == "" {
		return p.Cluster
	}
	return p.Cluster + "/" + p.Topic
}

// LogLocation asks the brokers for the location of a journal's log. The topic must exist.
func (c *Client) LogLocation(ctx context.Context, journal string) (LogLocation, error) {
	topic := c.Topic(journal)
	m, err := c.admin.Metadata(ctx, topic)
	if err != nil {
		return LogLocation{}, fmt.Errorf("journal: asking Kafka where %s is kept: %w", topic, err)
	}
	if broker.Embedded(m.Cluster) {
		return LogLocation{m.Cluster, topic}, nil // a copied folder has the topic's id too
	}
	detail, ok := m.Topics[topic]
	switch {
	case !ok:
		return LogLocation{}, fmt.Errorf("journal: the brokers do not know topic %s", topic)
	case detail.Err != nil:
		return LogLocation{}, fmt.Errorf("journal: asking Kafka where %s is kept: %w", topic, detail.Err)
	case m.Cluster == "":
		return LogLocation{}, errors.New("journal: the brokers give no cluster id, so a log cannot be told from its copy")
	case detail.ID == kadm.TopicID{}:
		return LogLocation{m.Cluster, topic}, nil
	}
	return LogLocation{m.Cluster, detail.ID.String()}, nil
}

// FormerLogLocation returns the LogLocation that older builds gave to a journal's log on an embedded broker, which was the same for
// every topic there: that of the cluster. It is zero if it may be that of another topic, which has a copy of the journal, and on
// Kafka. If there are several copies, it is that of the topic without a prefix.
func (c *Client) FormerLogLocation(ctx context.Context, journal string) (LogLocation, error) {
	m, err := c.admin.Metadata(ctx)
	if err != nil {
		return LogLocation{}, fmt.Errorf("journal: asking Kafka for its topics: %w", err)
	}
	former := LogLocation{Cluster: m.Cluster}
	switch {
	case !broker.Embedded(m.Cluster):
		return LogLocation{}, nil
	case c.cfg.Prefix == "":
		return former, nil
	}
	id, _, err := c.JournalID(ctx, journal)
	if err != nil {
		return LogLocation{}, err
	}
	for topic := range m.Topics {
		prefix, ok := strings.CutSuffix(topic, journal)
		if !ok || prefix == c.cfg.Prefix {
			continue
		}
		if other, err := c.journalIDAt(ctx, prefix, journal); err != nil || other == id {
			return LogLocation{}, err
		}
	}
	return former, nil
}

// journalIDAt returns what JournalID returns for another prefix.
func (c *Client) journalIDAt(ctx context.Context, prefix, journal string) (scalar.ID, error) {
	cfg := c.cfg
	cfg.Prefix, cfg.Metrics = prefix, nil
	other, err := NewClient(cfg)
	if err != nil {
		return scalar.ID{}, err
	}
	defer other.Close()
	id, _, err := other.JournalID(ctx, journal)
	return id, err
}

// JournalID returns the id in the genesis of a journal. It is false while the journal is not founded.
func (c *Client) JournalID(ctx context.Context, journal string) (id scalar.ID, founded bool, err error) {
	g, err := c.genesis(ctx, journal, 0)
	if err != nil || g == nil {
		return scalar.ID{}, false, err
	}
	return g.JournalID, true, nil
}
