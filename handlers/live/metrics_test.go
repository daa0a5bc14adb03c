package live_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

func TestMetrics(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(v.hub.Collectors()...)
	topic := "orderbook-stream:" + btc
	for range 3 {
		c := v.dial("")
		c.Subscribe(topic)
		c.Ask(livetest.Request{Op: "unsubscribe", Args: []string{topic, "market-trades:" + eth}})
		c.Subscribe(topic)
	}
	encoded := gather(t, registry)["perpetua_live_messages_encoded_total"]
	v.place(limit("A1", btc, order.Sell, "1", "1000"))
	got := gather(t, registry)
	for name, want := range map[string]float64{"perpetua_live_sessions": 3, "perpetua_live_subscriptions": 3,
		"perpetua_live_messages_encoded_total": encoded + 1, "perpetua_live_slow_consumers_total": 0,
		"perpetua_live_requests_total": 9, "perpetua_live_errors_total": 3} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

// gather returns the sums of the metrics.
func gather(t testing.TB, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			sums[f.GetName()] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return sums
}
