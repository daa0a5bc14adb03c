package journal

import (
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kprom"
)

// Purpose is the purpose of a Kafka client. A process has many clients, and some live for one term or one connection
// only. The metrics of all clients with one purpose are summed, so the number of series is bounded by the number of
// purposes.
type Purpose string

// The purposes of Kafka clients.
const (
	ForAdmin   Purpose = "admin"  // requests offsets, topics and the group
	ForWriting Purpose = "writer" // appends records, for one term
	ForGroup   Purpose = "group"  // is a member of the group of engines
	ForReading Purpose = "reader" // reads a journal
	ForOther   Purpose = "other"
)

func purposes() []Purpose {
	return []Purpose{ForAdmin, ForWriting, ForGroup, ForReading, ForOther}
}

// kafkaMetrics are the metrics of all Kafka clients of a process, by purpose.
type kafkaMetrics struct {
	hooks      map[Purpose]kgo.Hook
	collectors []prometheus.Collector
}

func newKafkaMetrics() *kafkaMetrics {
	k := &kafkaMetrics{hooks: make(map[Purpose]kgo.Hook)}
	for _, p := range purposes() {
		options := []kprom.Opt{kprom.Registerer(k), kprom.Subsystem("kafka"), kprom.WithStaticLabel(prometheus.Labels{"client": string(p)}),
			kprom.FetchAndProduceDetail(kprom.ByTopic, kprom.Batches, kprom.Records, kprom.CompressedBytes, kprom.UncompressedBytes, kprom.ConsistentNaming),
			kprom.NativeBucketFactor(1)}
		if p == ForWriting || p == ForAdmin { // requests of the other purposes wait for events
			options = append(options, kprom.Histograms(kprom.RequestDurationE2E),
				kprom.Buckets([]float64{.0005, .001, .002, .004, .008, .016, .032, .064, .128, .256, .512, 1, 2, 4, 8, 16}))
		}
		m := kprom.NewMetrics("perpetua", options...)
		m.OnNewClient(nil) // makes the collectors, once for all clients with the purpose
		k.hooks[p] = kafkaHooks{m}
	}
	return k
}

// Register implements prometheus.Registerer. It ignores the gauges that inspect one client: a purpose has any number of
// clients.
func (k *kafkaMetrics) Register(c prometheus.Collector) error {
	if _, gauge := c.(prometheus.GaugeFunc); !gauge {
		k.collectors = append(k.collectors, c)
	}
	return nil
}

// MustRegister implements prometheus.Registerer.
func (k *kafkaMetrics) MustRegister(collectors ...prometheus.Collector) {
	for _, c := range collectors {
		_ = k.Register(c) // never fails
	}
}

// Unregister implements prometheus.Registerer. Collectors stay registered, because counters must not disappear.
func (k *kafkaMetrics) Unregister(prometheus.Collector) bool { return false }

// kafkaHooks passes the events of all clients with a purpose to the metrics of that purpose. It omits the hooks for the
// start and the end of a client, in which kprom registers and unregisters the client's metrics. The hooks are called
// for each request or batch, never for each record.
type kafkaHooks struct{ m *kprom.Metrics }

var (
	_ kgo.HookBrokerConnect       = kafkaHooks{}
	_ kgo.HookBrokerDisconnect    = kafkaHooks{}
	_ kgo.HookBrokerE2E           = kafkaHooks{}
	_ kgo.HookProduceBatchWritten = kafkaHooks{}
	_ kgo.HookFetchBatchRead      = kafkaHooks{}
)

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (h kafkaHooks) OnBrokerConnect(b kgo.BrokerMetadata, took time.Duration, c net.Conn, err error) {
	h.m.OnBrokerConnect(b, took, c, err)
}

// OnBrokerDisconnect implements kgo.HookBrokerDisconnect.
func (h kafkaHooks) OnBrokerDisconnect(b kgo.BrokerMetadata, c net.Conn) {
	h.m.OnBrokerDisconnect(b, c)
}

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (h kafkaHooks) OnBrokerE2E(b kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	h.m.OnBrokerE2E(b, key, e2e)
}

// OnProduceBatchWritten implements kgo.HookProduceBatchWritten.
func (h kafkaHooks) OnProduceBatchWritten(b kgo.BrokerMetadata, topic string, partition int32, m kgo.ProduceBatchMetrics) {
	h.m.OnProduceBatchWritten(b, topic, partition, m)
}

// OnFetchBatchRead implements kgo.HookFetchBatchRead.
func (h kafkaHooks) OnFetchBatchRead(b kgo.BrokerMetadata, topic string, partition int32, m kgo.FetchBatchMetrics) {
	h.m.OnFetchBatchRead(b, topic, partition, m)
}
