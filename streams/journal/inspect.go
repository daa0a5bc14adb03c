package journal

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// BrokerSettings is the configuration of one broker.
type BrokerSettings struct {
	ID       int32
	Address  string            // host:port
	Settings map[string]string // by name; a setting that the broker does not have is absent
	Err      error             // why this broker could not be asked; nil if it was
}

// BrokerSettings returns the settings of every broker, by id. A broker that does not answer has Err set. The error means
// that the brokers could not be listed.
func (c *Client) BrokerSettings(ctx context.Context) ([]BrokerSettings, error) {
	brokers, err := c.admin.ListBrokers(ctx)
	if err != nil {
		return nil, fmt.Errorf("journal: listing the brokers: %w", err)
	}
	slices.SortFunc(brokers, func(a, b kadm.BrokerDetail) int { return int(a.NodeID) - int(b.NodeID) })
	out := make([]BrokerSettings, len(brokers))
	for i, b := range brokers {
		out[i] = BrokerSettings{ID: b.NodeID, Address: fmt.Sprintf("%s:%d", b.Host, b.Port), Settings: make(map[string]string)}
		configs, err := c.admin.DescribeBrokerConfigs(ctx, b.NodeID)
		if err == nil {
			for _, one := range configs {
				if err = one.Err; err != nil {
					break
				}
				for _, setting := range one.Configs {
					out[i].Settings[setting.Key] = setting.MaybeValue()
				}
			}
		}
		out[i].Err = err
	}
	return out, nil
}

// Controllers returns the node ids of the controllers' quorum. Dedicated controllers are not among the brokers. The
// embedded broker has no quorum, so the result is an error.
func (c *Client) Controllers(ctx context.Context) ([]int32, error) {
	request := kmsg.NewPtrDescribeQuorumRequest()
	topic := kmsg.NewDescribeQuorumRequestTopic()
	topic.Topic = "__cluster_metadata"
	topic.Partitions = append(topic.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	request.Topics = append(request.Topics, topic)
	response, err := request.RequestWith(ctx, c.kafka)
	if err != nil {
		return nil, fmt.Errorf("journal: describing the controllers: %w", err)
	}
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return nil, fmt.Errorf("journal: describing the controllers: %w", err)
	}
	var ids []int32
	for _, t := range response.Topics {
		for _, p := range t.Partitions {
			for _, voter := range p.CurrentVoters {
				ids = append(ids, voter.ReplicaID)
			}
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Replication says how many replicas a partition has, and how many of them are in sync.
type Replication struct {
	Topic     string
	Partition int32
	Leader    int32   // −1 for none
	Replicas  []int32 // the ids of the brokers that have one, dead or alive
	InSync    int
}

// coordinatorTopic is where Kafka stores consumer groups. While a partition of it has no leader, no engine can be assigned
// a journal.
const coordinatorTopic = "__consumer_offsets"

// Replication returns the replication of the journals' partitions and of those of the group topic. Topics that do not exist
// are left out: CheckTopics reports a journal without a topic.
func (c *Client) Replication(ctx context.Context, journals ...string) ([]Replication, error) {
	topics := []string{coordinatorTopic}
	for _, j := range journals {
		topics = append(topics, c.Topic(j))
	}
	found, err := c.admin.ListTopicsWithInternal(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("journal: describing the topics: %w", err)
	}
	var out []Replication
	for _, t := range found.Sorted() {
		if t.Err != nil {
			continue
		}
		for _, p := range t.Partitions.Sorted() {
			out = append(out, Replication{Topic: t.Topic, Partition: p.Partition, Leader: p.Leader, Replicas: p.Replicas, InSync: len(p.ISR)})
		}
	}
	return out, nil
}
