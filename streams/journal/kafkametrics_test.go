package journal

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// TestShortLivedKafkaClients makes and closes many clients for writing: they share their series, and none adds one.
// The series of other purposes are not compared: the admin client dials when it likes.
func TestShortLivedKafkaClients(t *testing.T) {
	measured := NewMetrics()
	registry := prometheus.NewRegistry()
	if err := registry.Register(measured); err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(Config{Brokers: []string{"127.0.0.1:1"}, Metrics: measured})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	count := func() (series int, refused float64) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == string(ForWriting) }) {
					continue
				}
				series++
				if f.GetName() == "perpetua_kafka_connect_errors_total" {
					refused += m.GetCounter().GetValue()
				}
			}
		}
		return series, refused
	}
	use := func() {
		kc, err := client.KafkaFor(ForWriting)
		if err != nil {
			t.Fatal(err)
		}
		defer kc.Close()
		if kc.Ping(t.Context()) == nil {
			t.Fatal("somebody listens at port 1")
		}
	}
	use()
	series, before := count()
	for range 5 {
		use()
	}
	again, after := count()
	if again != series {
		t.Errorf("%d series have become %d", series, again)
	}
	if before == 0 || after < 6*before {
		t.Errorf("%v refused connections have become %v after six clients", before, after)
	}
}

func TestContact(t *testing.T) {
	now := time.Now()
	var c Contact
	if _, lost := c.Lost(now); lost {
		t.Error("lost before anybody has read")
	}
	c.opened()
	c.answered()
	if _, lost := c.Lost(now.Add(silence / 2)); lost {
		t.Error("lost before the brokers have to answer")
	}
	if at := *c.answeredAt.Load(); at == at.Round(0) {
		t.Errorf("%v has no reading of the monotonic clock: a wall clock that is set back would hide that the brokers are away", at)
	}
	answered := time.Now()
	if since, lost := c.Lost(answered.Add(2 * silence)); !lost || since.Before(now.Add(-time.Millisecond)) || since.After(answered) {
		t.Errorf("silent since %v, %v", since, lost)
	}
	c.failed()
	since, lost := c.Lost(answered)
	if !lost || since.After(answered) {
		t.Errorf("failed since %v, %v", since, lost)
	}
	c.failed()
	if again, _ := c.Lost(answered); again != since {
		t.Errorf("lost since %v, and with the next failure since %v", since, again)
	}
	c.answered()
	if _, lost := c.Lost(answered); lost {
		t.Error("lost after an answer")
	}
	c.failed()
	c.closed()
	if _, lost := c.Lost(answered.Add(2 * silence)); lost {
		t.Error("lost although nobody reads")
	}
	earlier := now.Add(-time.Hour)
	c.answeredAt.Store(&earlier)
	c.opened()
	if since, lost := c.Lost(now); lost {
		t.Errorf("lost since %v, before the reader was opened", since)
	}
	c.failed()
	if since, lost := c.Lost(now); !lost || since.Before(now.Add(-time.Millisecond)) {
		t.Errorf("lost: %v, since %v", lost, since)
	}
}
