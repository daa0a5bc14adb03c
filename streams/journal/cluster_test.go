package journal

import "testing"

// TestALostBrokerHidesNoDeviation: the settings of a cluster are checked too while only two of three brokers are listed.
func TestALostBrokerHidesNoDeviation(t *testing.T) {
	for _, c := range []struct {
		brokers, replicas int
		want              bool
	}{{1, 1, false}, {2, 1, false}, {2, 3, true}, {3, 1, true}, {3, 3, true}} {
		if got := onCluster(c.brokers, c.replicas); got != c.want {
			t.Errorf("%d brokers, %d replicas: %v", c.brokers, c.replicas, got)
		}
	}
}
