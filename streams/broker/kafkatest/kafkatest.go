// Package kafkatest provides tests with a real, empty Apache Kafka 4 of one broker on loopback, and removes it
// afterwards. Cluster has three nodes that tests can kill and pause.
//
// Start uses the first of these that works: the brokers in KAFKA_BROKERS; a container, if Docker answers; the published
// Maven artifacts, fetched once into the user's cache folder and run with the local Java. If none works, the error says
// what is missing.
package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Variable is the environment variable that names running brokers.
const Variable = "KAFKA_BROKERS"

// startLimit bounds a start, including downloads.
const startLimit = 5 * time.Minute

// Kafka is a running Kafka.
type Kafka struct {
	// Origin describes the Kafka that runs, for humans.
	Origin  string
	brokers []string
	stop    func() error
}

// Brokers returns the bootstrap addresses, host:port.
func (k *Kafka) Brokers() []string { return k.brokers }

// Close stops the Kafka that Start started and removes its files. Brokers named in the environment keep running.
func (k *Kafka) Close() error { return k.stop() }

// Brokers returns the addresses of a Kafka that runs as long as the test.
func Brokers(t testing.TB) []string {
	t.Helper()
	k, err := Start(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k.Brokers()
}

// Start returns a Kafka that answers. It writes progress to log.
func Start(ctx context.Context, log io.Writer) (*Kafka, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if named := os.Getenv(Variable); named != "" {
		k := &Kafka{Origin: Variable, brokers: strings.Split(named, ","), stop: func() error { return nil }}
		if err := k.await(ctx, nil); err != nil {
			return nil, fmt.Errorf("the brokers in %s: %w", Variable, err)
		}
		return k, nil
	}
	var missing error
	for _, start := range []func(context.Context, io.Writer) (*Kafka, error){startContainer, startJava} {
		k, err := start(ctx, log)
		if err == nil {
			return k, nil
		}
		missing = errors.Join(missing, err)
		fmt.Fprintf(log, "kafkatest: %v\n", err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("no Kafka to test with: set %s, or start Docker, or install Java 17 and Maven:\n%w", Variable, missing)
}

// await waits until the brokers answer. It fails when ended is closed.
func (k *Kafka) await(ctx context.Context, ended <-chan struct{}) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(k.brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := client.Ping(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("no answer from %s: %w", strings.Join(k.brokers, ","), err)
		case <-pause.C:
		}
	}
}

var errEnded = errors.New("Kafka ended while starting")

// properties returns the configuration of a single node that is broker and controller. The listener binds to bind and
// advertises advertised.
func properties(bind, advertised, controller, dir string) string {
	return nodeProperties(nodeSettings{id: 1, bind: bind, advertised: advertised, controller: controller,
		voters: "1@" + controller, replicas: 1, minISR: 1, dir: dir, more: []string{
			// The cluster has one broker, which must not be fenced when a busy machine delays its heartbeats.
			"broker.session.timeout.ms=120000",
			"broker.heartbeat.interval.ms=5000",
		}})
}

// nodeSettings holds the settings in which nodes differ.
type nodeSettings struct {
	id                           int
	bind, advertised, controller string // addresses, host:port
	voters                       string // controllers of the cluster, in the form of controller.quorum.voters
	replicas, minISR             int
	dir                          string
	more                         []string // properties, name=value
}

// nodeProperties returns the configuration of a node that is broker and controller. Its last line is log.dirs.
func nodeProperties(s nodeSettings) string {
	replicas, minISR := strconv.Itoa(s.replicas), strconv.Itoa(s.minISR)
	lines := []string{
		"process.roles=broker,controller",
		"node.id=" + strconv.Itoa(s.id),
		"controller.quorum.voters=" + s.voters,
		"listeners=PLAINTEXT://" + s.bind + ",CONTROLLER://" + s.controller,
		"advertised.listeners=PLAINTEXT://" + s.advertised,
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"controller.listener.names=CONTROLLER",
		"inter.broker.listener.name=PLAINTEXT",
		"default.replication.factor=" + replicas,
		"min.insync.replicas=" + minISR,
		"offsets.topic.replication.factor=" + replicas,
		"transaction.state.log.replication.factor=" + replicas,
		"transaction.state.log.min.isr=" + minISR,
		"share.coordinator.state.topic.replication.factor=" + replicas,
		"share.coordinator.state.topic.min.isr=" + minISR,
		"offsets.topic.num.partitions=1",
		"transaction.state.log.num.partitions=1",
		"group.initial.rebalance.delay.ms=0",
		"auto.create.topics.enable=false",
		// The default needs a heap above 160 MB.
		"log.cleaner.dedupe.buffer.size=8388608",
	}
	return strings.Join(slices.Concat(lines, s.more, []string{"log.dirs=" + s.dir, ""}), "\n")
}

// clusterID is an arbitrary id; the format command requires one.
const clusterID = "cGVycGV0dWEtdGVzdC0wMQ"

// The classes that Kafka's own scripts run.
const (
	formatClass = "kafka.tools.StorageTool"
	serverClass = "kafka.Kafka"
)

// serverOptions returns options with which Java uses little memory and starts quickly.
func serverOptions() []string {
	return []string{"-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
}
