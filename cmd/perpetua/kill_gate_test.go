package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// gate is a broker in the test's process that can be told to append nothing more to the trading journal once it holds some
// records of a kind: a venue that is killed then leaves its log in the midst of them, however busy the machine is.
type gate struct {
	t    testing.TB
	fake *kfake.Cluster

	mu     sync.Mutex
	steps  []byte        // what each of the records holds; nil while everything is appended
	most   int           // of them, after which nothing is
	closed chan struct{} // closed when the first batch was refused
	passed kmsg.Request  // the last one that was let through: it is asked of more than once
}

// newGate starts the broker.
func newGate(t testing.TB) *gate {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	g := &gate{t: t, fake: fake}
	// As a cluster does that has lost its in-sync replicas: whoever produces tries again for ever.
	fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "trading", Err: kerr.NotEnoughReplicas, Count: -1, When: g.refuses})
	return g
}

func (g *gate) brokers() string { return strings.Join(g.fake.ListenAddrs(), ",") }

// closeAfter has the gate close after so many steps of the engine's for a kind of work. It returns what is closed when it has.
func (g *gate) closeAfter(most int, work string) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.steps, g.most, g.closed = stepFor(work), most, make(chan struct{})
	return g.closed
}

// open has everything appended again.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.steps = nil
}

// refuses counts the steps in a batch, and reports whether it is refused.
func (g *gate) refuses(r kmsg.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.steps == nil || r == g.passed {
		return false
	}
	if g.most <= 0 {
		select {
		case <-g.closed:
		default:
			close(g.closed)
		}
		return true
	}
	g.passed = r
	for _, topic := range r.(*kmsg.ProduceRequest).Topics {
		for _, partition := range topic.Partitions {
			g.most -= bytes.Count(partition.Records, g.steps) // batches are not compressed
		}
	}
	return false
}
