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

// LogPlace identifies the location of a log. It differs between a log and a copy of the log, although their records are equal.
// For a Kafka topic it consists of the cluster id and the topic id that the brokers return. For an embedded broker it is the
// cluster id, which names the device and the inode of the broker's folder.
//
// Two LogPlaces are equal if and only if they identify the same log, except that a cloned disk image has the LogPlace of the
// original.
type LogPlace struct {
	Cluster string
	Topic   string // the topic's id in standard base64; its name where the brokers give no ids; "" for an embedded broker
}

// String returns the place as one word.
func (p LogPlace) String() string {
	if p.Topic == "" {
		return p.Cluster
	}
	return p.Cluster + "/" + p.Topic
}

// ParseLogPlace reads what LogPlace.String returned.
func ParseLogPlace(text string) (LogPlace, error) {
	if text == "" {
		return LogPlace{}, errors.New("journal: the place of the log is empty")
	}
	cluster, topic, _ := strings.Cut(text, "/")
	return LogPlace{cluster, topic}, nil
}

// LogPlace asks the brokers for the location of a journal's log. The topic must exist.
func (c *Client) LogPlace(ctx context.Context, journal string) (LogPlace, error) {
	topic := c.Topic(journal)
	m, err := c.admin.Metadata(ctx, topic)
	if err != nil {
		return LogPlace{}, fmt.Errorf("journal: asking Kafka where %s is kept: %w", topic, err)
	}
	if broker.Embedded(m.Cluster) {
		return LogPlace{Cluster: m.Cluster}, nil
	}
	detail, ok := m.Topics[topic]
	switch {
	case !ok:
		return LogPlace{}, fmt.Errorf("journal: the brokers do not know topic %s", topic)
	case detail.Err != nil:
		return LogPlace{}, fmt.Errorf("journal: asking Kafka where %s is kept: %w", topic, detail.Err)
	case m.Cluster == "":
		return LogPlace{}, errors.New("journal: the brokers give no cluster id, so a log cannot be told from its copy")
	case detail.ID == kadm.TopicID{}:
		return LogPlace{m.Cluster, topic}, nil
	}
	return LogPlace{m.Cluster, detail.ID.String()}, nil
}

// JournalID returns the id in the genesis of a journal. It is false while the journal is not founded.
func (c *Client) JournalID(ctx context.Context, journal string) (id scalar.ID, founded bool, err error) {
	g, err := c.genesis(ctx, journal, 0)
	if err != nil || g == nil {
		return scalar.ID{}, false, err
	}
	return g.JournalID, true, nil
}
