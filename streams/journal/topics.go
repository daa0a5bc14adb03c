package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// maxMessage is the topics' max.message.bytes: more than the largest record of any journal with its envelope.
const maxMessage = 4 << 20

// clusterReplicas is the number of replicas of a journal on a cluster with at least that many brokers.
const clusterReplicas = 3

// settings returns the settings of every journal's topic. With the defaults a broker would delete records, rewrite
// their timestamps, or reject those of a clock that is an hour ahead, which would stop the journal.
func settings() map[string]string {
	longest := strconv.FormatInt(math.MaxInt64, 10)
	return map[string]string{
		"cleanup.policy":                  "delete",
		"retention.ms":                    "-1",
		"retention.bytes":                 "-1",
		"message.timestamp.type":          "CreateTime",
		"message.timestamp.before.max.ms": longest,
		"message.timestamp.after.max.ms":  longest,
		"max.message.bytes":               strconv.Itoa(maxMessage),
	}
}

// sinceKafka36 reports whether a setting exists since Kafka 3.6. An older broker does not have the check that it
// disables.
func sinceKafka36(name string) bool {
	return name == "message.timestamp.before.max.ms" || name == "message.timestamp.after.max.ms"
}

// EnsureTopics creates the topics of the journals with one partition each and the settings that a journal needs. It
// does not change existing topics.
func (c *Client) EnsureTopics(ctx context.Context, journals ...string) error {
	brokers, err := c.admin.ListBrokers(ctx)
	if err != nil {
		return fmt.Errorf("journal: listing the brokers: %w", err)
	}
	config := make(map[string]*string)
	for k, v := range settings() {
		config[k] = &v
	}
	replicas := int16(1)
	if len(brokers) >= clusterReplicas {
		replicas = clusterReplicas
		config["min.insync.replicas"] = kadm.StringPtr("2")
		config["unclean.leader.election.enable"] = kadm.StringPtr("false")
	}
	for _, journal := range journals {
		_, err := c.admin.CreateTopic(ctx, 1, replicas, config, c.Topic(journal))
		if errors.Is(err, kerr.InvalidConfig) {
			older := maps.Clone(config)
			maps.DeleteFunc(older, func(name string, _ *string) bool { return sinceKafka36(name) })
			_, err = c.admin.CreateTopic(ctx, 1, replicas, older, c.Topic(journal))
		}
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("journal: creating topic %s: %w", c.Topic(journal), err)
		}
		if err := c.awaitTopic(ctx, journal); err != nil {
			return err
		}
	}
	return nil
}

// awaitTopic waits until the brokers have a topic. Right after its creation some brokers may not have it yet.
func (c *Client) awaitTopic(ctx context.Context, journal string) error {
	for attempt := 0; ; attempt++ {
		_, _, err := c.Bounds(ctx, journal, 0)
		if err == nil {
			return nil
		}
		if err := pause(ctx, attempt); err != nil {
			return fmt.Errorf("journal: waiting for topic %s: %w", c.Topic(journal), err)
		}
	}
}

// SettingsError lists all deviations of topics from the settings that a journal needs.
type SettingsError struct {
	Deviations []string
	// Log is the error of the first log that is wrong itself, such as one that has lost its beginning. record.Final holds
	// for it. It is nil if only settings deviate.
	Log error
}

// Error lists the deviations.
func (e *SettingsError) Error() string {
	return "journal: the topics are not as they must be: " + strings.Join(e.Deviations, "; ")
}

// Unwrap returns the error of the first log that is wrong.
func (e *SettingsError) Unwrap() error { return e.Log }

// CheckTopics verifies the topics of the journals: that they exist, their settings, that they begin at offset 0 or hold the
// record of their base, and that they have the number of partitions in their genesis. A *SettingsError lists every deviation. Any other error
// means that the cluster could not be asked.
func (c *Client) CheckTopics(ctx context.Context, journals ...string) error {
	return c.checkTopics(ctx, c.firstGenesis, journals...)
}

// CheckSettings is CheckTopics without the content of the topics. It is for a copy, which compares the content with its source.
func (c *Client) CheckSettings(ctx context.Context, journals ...string) error {
	return c.checkTopics(ctx, func(context.Context, string) (*record.Genesis, error) { return nil, nil }, journals...)
}

func (c *Client) checkTopics(ctx context.Context, first genesisFunc, journals ...string) error {
	var wrong SettingsError
	cluster, err := c.admin.BrokerMetadata(ctx) // ListBrokers asks for every topic of the cluster
	if err != nil {
		return fmt.Errorf("journal: listing the brokers: %w", err)
	}
	for _, journal := range journals {
		if err := c.checkTopic(ctx, journal, len(cluster.Brokers), first, &wrong); err != nil {
			return err
		}
	}
	if len(wrong.Deviations) > 0 {
		return &wrong
	}
	return nil
}

// genesisFunc returns the genesis of a journal, or nil if it has none. Its errors are those of firstGenesis.
type genesisFunc func(ctx context.Context, journal string) (*record.Genesis, error)

// checkTopic adds the deviations of one topic.
func (c *Client) checkTopic(ctx context.Context, journal string, brokers int, first genesisFunc, wrong *SettingsError) error {
	topic := c.Topic(journal)
	deviate := func(format string, args ...any) {
		wrong.Deviations = append(wrong.Deviations, topic+": "+fmt.Sprintf(format, args...))
	}
	topics, err := c.admin.ListTopics(ctx, topic)
	if err != nil {
		return fmt.Errorf("journal: describing topic %s: %w", topic, err)
	}
	detail, ok := topics[topic]
	if !ok || errors.Is(detail.Err, kerr.UnknownTopicOrPartition) {
		deviate("there is no such topic")
		return nil
	}
	if detail.Err != nil {
		return fmt.Errorf("journal: describing topic %s: %w", topic, detail.Err)
	}
	want := settings()
	replicas := detail.Partitions.NumReplicas()
	if onCluster(brokers, replicas) {
		want["min.insync.replicas"], want["unclean.leader.election.enable"] = "2", "false"
		if replicas < clusterReplicas {
			deviate("%d replicas instead of %d", replicas, clusterReplicas)
		}
	}
	have, err := c.topicSettings(ctx, topic)
	if err != nil {
		return fmt.Errorf("journal: describing topic %s: %w", topic, err)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		got, known := have[name]
		switch {
		case !known && (sinceKafka36(name) || name == "unclean.leader.election.enable"):
			// The broker does not have the setting, so it does not do what the setting would prevent.
		case got != want[name]:
			deviate("%s is %q instead of %q", name, got, want[name])
		}
	}
	// Partitions that were added later hold no records of a journal. Another program may write to them.
	genesis, err := first(ctx, journal)
	partitions := int32(1)
	switch {
	case record.Final(err):
		deviate("partition 0: %v", err)
		wrong.Log = cmp.Or(wrong.Log, err)
	case err != nil:
		return err
	case genesis != nil:
		partitions = genesis.Partitions
	}
	if n := len(detail.Partitions); n != int(partitions) {
		deviate("%d partitions instead of %d; none can be removed, so delete the topic if it is empty, or copy the log to a new topic "+
			"with perpetua log copy", n, partitions)
	}
	return nil
}

// topicSettings returns the settings of a topic, with those that it has from its brokers.
func (c *Client) topicSettings(ctx context.Context, topic string) (map[string]string, error) {
	configs, err := c.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	resource, err := configs.On(topic, nil)
	if err == nil {
		err = resource.Err
	}
	if err != nil {
		return nil, err
	}
	have := make(map[string]string)
	for _, config := range resource.Configs {
		have[config.Key] = config.MaybeValue()
	}
	return have, nil
}

// firstGenesis returns the genesis of a journal's first partition, or nil if that is empty. The error is final if the partition
// holds records and no genesis.
func (c *Client) firstGenesis(ctx context.Context, journal string) (*record.Genesis, error) {
	g := &genesisSearch{client: c, journal: journal}
	genesis, err := g.settled(ctx)
	if err == nil && genesis == nil {
		err = g.none(ctx)
	}
	return genesis, err
}

// onCluster reports whether a topic needs the settings of a cluster. Brokers that are away are not listed, but their replicas are.
func onCluster(brokers, replicas int) bool { return max(brokers, replicas) >= clusterReplicas }

// none returns a *record.DivergedError if a partition without a genesis holds records: no owner appends a genesis to it. It
// belongs to another program, or its first records were deleted, for example by compaction.
func (g *genesisSearch) none(ctx context.Context) error {
	var end int64
	for attempt := range certain { // another node may be appending the genesis, and a leader may not know yet what is committed
		if err := pause(ctx, attempt); err != nil {
			return err
		}
		genesis, err := g.settled(ctx)
		if err != nil || genesis != nil {
			return err
		}
		if end, err = g.client.Tip(ctx, g.journal, g.partition); err != nil || end == 0 {
			return err
		}
	}
	return &record.DivergedError{Journal: g.journal, Partition: g.partition, Have: record.Before,
		Found: record.Position{Offset: end - 1, Sequence: -1}, Reason: "the topic is not empty and has no genesis"}
}

// settled is find for a caller that does not wait for a source of bases that is silent.
func (g *genesisSearch) settled(ctx context.Context) (found *record.Genesis, err error) {
	for attempt := range certain {
		if found, err = g.find(ctx); err == nil || record.Final(err) {
			return found, err
		}
		if paused := pause(ctx, attempt); paused != nil {
			return nil, errors.Join(paused, err)
		}
	}
	return nil, err
}

// Bounds returns the first offset of a partition and the one after its last committed record.
func (c *Client) Bounds(ctx context.Context, journal string, partition int32) (start, end int64, err error) {
	topic := c.Topic(journal)
	start, err = ask(ctx, c.offsets.ListStartOffsets, topic, partition)
	if err != nil {
		return 0, 0, fmt.Errorf("journal: asking where %s/%d begins: %w", topic, partition, err)
	}
	end, err = c.Tip(ctx, journal, partition)
	return start, end, err
}

// Tip returns the end offset of a partition: the offset after its last committed record. While the partition has no
// leader, Tip waits for one, at most for electing.
func (c *Client) Tip(ctx context.Context, journal string, partition int32) (int64, error) {
	topic := c.Topic(journal)
	end, err := ask(ctx, c.offsets.ListEndOffsets, topic, partition)
	if err != nil {
		return 0, fmt.Errorf("journal: asking where %s/%d ends: %w", topic, partition, err)
	}
	return end, nil
}

// electing is how long a partition may have no leader before that is an error.
const electing = 15 * time.Second

// ask requests an offset until the partition has a leader that answers.
func ask(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error), topic string, partition int32) (offset int64, err error) {
	since := time.Now()
	for attempt := 0; ; attempt++ {
		offsets, err := list(ctx, topic)
		if err == nil {
			offset, err = listed(offsets, topic, partition)
		}
		leaderless := errors.Is(err, kerr.LeaderNotAvailable) || errors.Is(err, kerr.NotLeaderForPartition)
		if !leaderless || time.Since(since) > electing || pause(ctx, attempt) != nil {
			return offset, err
		}
	}
}

func listed(offsets kadm.ListedOffsets, topic string, partition int32) (int64, error) {
	o, ok := offsets.Lookup(topic, partition)
	switch {
	case !ok:
		return 0, kerr.UnknownTopicOrPartition
	case o.Err != nil:
		return 0, o.Err
	}
	return o.Offset, nil
}

// pause waits before another attempt.
func pause(ctx context.Context, attempt int) error { return wait(ctx, pauseBefore(attempt)) }

// pauseBefore returns how long to wait before another attempt: longer each time, up to two seconds.
func pauseBefore(attempt int) time.Duration {
	return min(20*time.Millisecond<<min(attempt, 10), 2*time.Second)
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
