package ownership

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
)

func TestAPeerIsDeadOnceNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + l.Addr().String()
	ctx := context.Background()
	var p, stranger peer
	for range 3 {
		if p.probe(ctx, new(net.Dialer).DialContext, at); p.dead() {
			t.Fatal("a peer that listens is dead")
		}
	}
	l.Close()
	if p.probe(ctx, new(net.Dialer).DialContext, at); p.dead() {
		t.Error("a peer is dead at the first refusal")
	}
	if p.probe(ctx, new(net.Dialer).DialContext, at); !p.dead() {
		t.Error("a peer lives on after its port was closed")
	}
	for range 3 {
		stranger.probe(ctx, new(net.Dialer).DialContext, at)
	}
	if stranger.dead() {
		t.Error("a peer that was never reached is dead, though its URL may be wrong")
	}
	var nowhere peer
	for _, url := range []string{"", "http://example", "://"} {
		if nowhere.probe(ctx, new(net.Dialer).DialContext, url); nowhere.dead() {
			t.Errorf("dead at %q", url)
		}
	}
}

// A node that has not joined yet looks at the others already, so one that dies while it gets ready, or right after, is
// missed at once. The dead one here goes on with its heartbeats: nothing but the watch ends its membership.
func TestTheWatchBeginsBeforeTheNodeJoins(t *testing.T) {
	c := journaltest.NewClient(t, "trading")
	n, err := New(Config{Client: c, NodeID: "n1", URL: "http://n1:8080", Rules: []decide.Rules{journaltest.Words{Name: "trading"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan struct{}, 1)
	go func() {
		for {
			conn, err := port.Accept()
			if err != nil {
				return
			}
			conn.Close()
			select {
			case reached <- struct{}{}:
			default:
			}
		}
	}()
	doomed, err := c.KafkaFor(journal.ForGroup, kgo.ClientID("http://"+port.Addr().String()), kgo.ConsumerGroup(n.find.group.name),
		kgo.InstanceID("n2"), kgo.ConsumeTopics(c.Topic("trading")), kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.DisableAutoCommit())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(doomed.Close)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	watching := make(chan struct{})
	go func() { defer close(watching); n.watch(ctx) }()
	defer func() { stop(); <-watching }()
	select {
	case <-reached:
	case <-ctx.Done():
		t.Fatal("the member is not looked at")
	}
	members, err := n.find.members(ctx)
	if err != nil || len(members) != 1 {
		t.Fatal(members, err)
	}
	was := members[0].id
	port.Close()
	for {
		members, err := n.find.members(ctx)
		if ctx.Err() != nil {
			t.Fatal("the member whose port is closed stays a member")
		}
		if err == nil && !slices.ContainsFunc(members, func(m member) bool { return m.id == was }) {
			break
		}
	}
	until(t, "the removal is counted", func() bool { return testutil.ToFloat64(n.removals.WithLabelValues("closed")) == 1 })
}
