package journal

import (
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kprom"
)

// Purpose is what a Kafka client is for. A process has many clients, and some live for a term or a connection only; the
// metrics of those with one purpose are counted together, so that there are never more series than purposes.
type Purpose string

// The purposes.
const (
	ForAdmin   Purpose = "admin"  // asks for offsets, topics and the group
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
		if p == ForWriting || p == ForAdmin { // the others' requests wait for something to happen
			options = append(options, kprom.Histograms(kprom.RequestDurationE2E),
				kprom.Buckets([]float64{.0005, .001, .002, .004, .008, .016, .032, .064, .128, .256, .512, 1, 2, 4, 8, 16}))
		}
		m := kprom.NewMetrics("perpetua", options...)
		m.OnNewClient(nil) // makes the collectors, once for all clients of the purpose
		k.hooks[p] = kafkaHooks{m}
	}
	return k
}

// Register implements prometheus.Registerer. Gauges that look into one client are left out: there are many, or none.
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

// Unregister implements prometheus.Registerer. What is counted once stays, as a counter should.
func (k *kafkaMetrics) Unregister(prometheus.Collector) bool { return false }

// kafkaHooks hands what happens to any client of a purpose to the metrics of that purpose. It leaves the hooks for the
// beginning and the end of a client out, with which kprom registers and unregisters the metrics of one. All of them are
// called for each request or batch, none for each record.
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
