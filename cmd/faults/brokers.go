package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/broker/kafkatest"
)

// The topic of the trading journal, and the group that assigns its partition to an engine.
const (
	topic      = "trading"
	group      = "perpetua-engine"
	groupTopic = "__consumer_offsets" // of one partition here
)

// brokers is the Kafka under test.
type brokers struct {
	*kafkatest.Cluster
	net network // nil on loopback
}

// startBrokers starts three brokers with the recommended settings.
func startBrokers(ctx context.Context, net network, log lineWriter) (*brokers, error) {
	config := kafkatest.ClusterConfig{Settings: kafkatest.RecommendedTimings(), Log: log}
	if net != nil {
		config.Hosts, config.Wrap = []string{net.host(1), net.host(2), net.host(3)}, net.wrap
	}
	c, err := kafkatest.StartCluster(ctx, config)
	if err != nil {
		return nil, err
	}
	return &brokers{c, net}, nil
}

// roles names the broker in each role, by its node id (1 to 3), and the engine that owns the trading journal.
type roles struct {
	leader, coordinator, controller int
	ownerURL                        string
}

// ask calls question with a new client. A client that has met a dead broker may still remember it.
func (b *brokers) ask(ctx context.Context, question func(context.Context, *kgo.Client, *kadm.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Brokers()...), kgo.DialTimeout(time.Second), kgo.RequestTimeoutOverhead(2*time.Second), kgo.RetryTimeout(5*time.Second))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return question(ctx, client, kadm.NewClient(client))
}

// roles asks the cluster for the current roles.
func (b *brokers) roles(ctx context.Context) (r roles, err error) {
	err = b.ask(ctx, func(ctx context.Context, client *kgo.Client, admin *kadm.Client) error {
		topics, err := admin.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		if r.leader = int(topics[topic].Partitions[0].Leader); r.leader < 1 {
			return fmt.Errorf("the topic %s has no leader", topic)
		}
		if r.controller, err = activeController(ctx, client); err != nil {
			return err
		}
		found := admin.FindGroupCoordinators(ctx, group)[group]
		if found.Err != nil {
			return fmt.Errorf("the coordinator: %w", found.Err)
		}
		r.coordinator = int(found.NodeID)
		r.ownerURL, err = assignedOwner(ctx, admin)
		return err
	})
	return r, err
}

// deal makes brokers the preferred leaders of the trading partition and of the engines' group, and elects them.
func (b *brokers) deal(ctx context.Context, leader, coordinator int) error {
	return b.ask(ctx, func(ctx context.Context, _ *kgo.Client, admin *kadm.Client) error {
		var assign kadm.AlterPartitionAssignmentsReq
		var elect kadm.TopicsSet
		for _, p := range []struct {
			topic string
			first int
		}{{topic, leader}, {groupTopic, coordinator}} {
			replicas := make([]int32, len(b.Brokers()))
			for i := range replicas {
				replicas[i] = int32((p.first+i)%len(replicas) + 1)
			}
			assign.Assign(p.topic, 0, replicas)
			elect.Add(p.topic, 0)
		}
		if _, err := admin.AlterPartitionAssignments(ctx, assign); err != nil {
			return err
		}
		_, err := admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, elect)
		return err
	})
}

// activeController asks for the leader of the controllers' quorum.
func activeController(ctx context.Context, client *kgo.Client) (int, error) {
	request := kmsg.NewPtrDescribeQuorumRequest()
	t := kmsg.NewDescribeQuorumRequestTopic()
	t.Topic = "__cluster_metadata"
	t.Partitions = append(t.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	request.Topics = append(request.Topics, t)
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return 0, fmt.Errorf("the quorum: %w", err)
	}
	if len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 || response.Topics[0].Partitions[0].LeaderID < 1 {
		return 0, errors.New("the controllers have no leader")
	}
	return int(response.Topics[0].Partitions[0].LeaderID), nil
}

// assignedOwner returns the URL of the engine that the group has assigned the trading journal to.
func assignedOwner(ctx context.Context, admin *kadm.Client) (string, error) {
	groups, err := admin.DescribeGroups(ctx, group)
	if err == nil {
		err = groups[group].Err
	}
	if err != nil {
		return "", fmt.Errorf("the group of engines: %w", err)
	}
	for _, m := range groups[group].Members {
		assigned, ok := m.Assigned.AsConsumer()
		if !ok {
			continue
		}
		for _, t := range assigned.Topics {
			if t.Topic == topic && slices.Contains(t.Partitions, 0) {
				return m.ClientID, nil
			}
		}
	}
	return "", errors.New("nobody is assigned the trading journal")
}

// lagging names a partition with a replica out of sync or a broker that is missing. It returns "" if all are in sync.
func (b *brokers) lagging(ctx context.Context) string {
	missing := ""
	err := b.ask(ctx, func(ctx context.Context, _ *kgo.Client, admin *kadm.Client) error {
		all, err := admin.Metadata(ctx)
		if err != nil {
			return err
		}
		if len(all.Brokers) != len(b.Brokers()) {
			missing = fmt.Sprintf("%d of %d brokers are registered", len(all.Brokers), len(b.Brokers()))
			return nil
		}
		for _, t := range all.Topics.Sorted() {
			for _, p := range t.Partitions.Sorted() {
				if len(p.ISR) < len(p.Replicas) || p.Leader < 0 {
					missing = fmt.Sprintf("%s/%d has %d of %d replicas in sync", t.Topic, p.Partition, len(p.ISR), len(p.Replicas))
				}
			}
		}
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return missing
}

// awaitInSync waits until every replica of every partition is in sync.
func (b *brokers) awaitInSync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		missing := b.lagging(ctx)
		if missing == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the replicas are not in sync: %s", missing)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// begin begins a fault at a broker; end ends it.
func (b *brokers) begin(a action, node int) error {
	switch a {
	case kill:
		return b.Kill(node)
	case pause:
		return b.Pause(node)
	}
	return b.net.cut(node)
}

func (b *brokers) end(a action, node int) error {
	switch a {
	case kill:
		return b.Start(node)
	case pause:
		return b.Resume(node)
	}
	return b.net.join(node)
}

// keepOutput copies the brokers' output into a folder.
func (b *brokers) keepOutput(dir string) error {
	var errs []error
	for i := range b.Brokers() {
		content, err := os.ReadFile(b.Output(i + 1))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("broker-%d.log", i+1)), content, 0o644)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
