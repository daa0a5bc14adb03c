package access

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

func TestNetworkOf(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32", "::ffff:c000:201": "192.0.2.1/32",
		"2001:db8::1": "2001:db8::/64", "2001:db8::ffff:0:0:1": "2001:db8::/64", "2001:db8:0:1::1": "2001:db8:0:1::/64",
		"fe80::1%eth0": "fe80::/64", "::1": "::1/128", "127.0.0.1": "127.0.0.1/32", "": "invalid Prefix", "192.0.2.1:80": "invalid Prefix", "x": "invalid Prefix",
	} {
		if got := NetworkOf(address).String(); got != want {
			t.Errorf("%q: %s, want %s", address, got, want)
		}
	}
}

func TestNetworks(t *testing.T) {
	at := &clock{time.Unix(1_800_000_000, 0)}
	n := NewNetworks(2, 3, at.now)
	code := func(address string) string {
		t.Helper()
		limit, err := n.Take(nil, address)
		if limit != (RateLimit{PerSecond: 2, Burst: 3, Network: true}) || limit.Policy() != "network" {
			t.Errorf("%s: %+v", address, limit)
		}
		if err != nil {
			return problem.Of(err).Code
		}
		return ""
	}
	for i, address := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"} {
		if got := code(address); (got == CodeRateLimited) != (i == 3) {
			t.Errorf("%s: %q", address, got)
		}
	}
	for _, address := range []string{"2001:db8:0:1::1", "192.0.2.1", "192.0.2.2", "not an address"} {
		if got := code(address); got != "" {
			t.Errorf("another network, %s: %s", address, got)
		}
	}
	at.at = at.at.Add(500 * time.Millisecond)
	if first, second := code("2001:db8::1"), code("2001:db8::1"); first != "" || second != CodeRateLimited {
		t.Errorf("half a second later: %q %q", first, second)
	}
	for _, address := range []string{"127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"} {
		for range 10 {
			if limit, err := n.Take(nil, address); err != nil || limit.Policy() != "none" {
				t.Fatalf("%s: %+v %v", address, limit, err)
			}
		}
	}
	for _, none := range []*Networks{nil, NewNetworks(0, 0, at.now), NewNetworks(5, 0, at.now), NewNetworks(0, 5, at.now)} {
		if limit, err := none.Take(nil, "192.0.2.1"); none != nil || err != nil || limit != (RateLimit{}) {
			t.Errorf("without a limit: %+v %v", limit, err)
		}
	}
}

// TestHeadersOfNetworks: only a refusal has them, because a shared cache may keep another answer.
func TestHeadersOfNetworks(t *testing.T) {
	at := &clock{time.Unix(1_800_000_000, 0)}
	n := NewNetworks(2, 1, at.now)
	h := make(http.Header)
	if _, err := n.Take(h, "192.0.2.1"); err != nil || len(h) > 0 {
		t.Errorf("%v %v", h, err)
	}
	_, err := n.Take(h, "192.0.2.1")
	if h.Get(HeaderRateLimitPolicy) != `"network";q=1;w=1` || h.Get(HeaderRateLimit) != `"network";r=0;t=1` || problem.Of(err).Wait != 1 {
		t.Errorf("%v %v", h, err)
	}
}

// TestNetworksAreBounded: whatever networks send requests, and when, there are no more buckets than the bound and the shared one. A
// network gets no more tokens than its limit allows while it has a bucket, and the shared bucket no more than one network.
func TestNetworksAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 4
		at := &clock{time.Unix(1_800_000_000, 0)}
		start := at.at
		n := NewNetworks(1, 2, at.now)
		n.limits.most = most
		granted := make(map[string]int)
		all := 0
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			at.at = at.at.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 100, 700, 5000}).Draw(t, "pause")) * time.Millisecond)
			address := fmt.Sprintf("192.0.2.%d", rapid.IntRange(1, 12).Draw(t, "address"))
			if _, err := n.Take(nil, address); err == nil {
				granted[address]++
				all++
			}
			if len(n.limits.buckets) > most+1 || len(n.limits.ring) != len(n.limits.buckets) {
				t.Fatalf("%d buckets and a ring of %d", len(n.limits.buckets), len(n.limits.ring))
			}
			for i, b := range n.limits.ring {
				if b.slot != i || n.limits.buckets[b.name] != b {
					t.Fatalf("slot %d has %+v", i, b)
				}
			}
			seconds := int(at.at.Sub(start) / time.Second)
			if got := granted[address]; got > 2*(2+seconds+1) { // of its own bucket and of the shared one
				t.Fatalf("%s was granted %d in %d seconds", address, got, seconds)
			}
			if seconds == 0 && all > (most+1)*3 {
				t.Fatalf("%d requests were granted in the first second", all)
			}
		}
	})
}

// TestNetworksAtOnce: concurrent requests of a network get no more than consecutive ones.
func TestNetworksAtOnce(t *testing.T) {
	at := &clock{time.Unix(1_800_000_000, 0)}
	n := NewNetworks(1, 50, at.now)
	var granted atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 100 {
				if _, err := n.Take(nil, fmt.Sprintf("2001:db8::%d", i)); err == nil {
					granted.Add(1)
				}
				_, _ = n.Take(nil, fmt.Sprintf("192.0.2.%d", i))
			}
		})
	}
	group.Wait()
	if got := granted.Load(); got != 50 {
		t.Errorf("%d requests were granted", got)
	}
}

// TestTheSharedBucketIsShared: with all buckets in use, the requests of further networks count together, and end when there is room.
func TestTheSharedBucketIsShared(t *testing.T) {
	at := &clock{time.Unix(1_800_000_000, 0)}
	n := NewNetworks(1, 2, at.now)
	n.limits.most = 2
	want := func(address string, ok bool) {
		t.Helper()
		if _, err := n.Take(nil, address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	want("192.0.2.1", true)
	want("192.0.2.2", true)
	want("192.0.2.3", true)
	want("192.0.2.4", true)
	want("192.0.2.5", false)
	want("192.0.2.1", true)
	want("192.0.2.1", false)
	at.at = at.at.Add(time.Minute)
	for _, address := range []string{"192.0.2.6", "192.0.2.7"} {
		want(address, true)
		want(address, true)
		want(address, false)
	}
}

// BenchmarkNetworks measures what a request costs: of networks that all have buckets, and of more networks than buckets, whose
// buckets are full by the time that they come again.
func BenchmarkNetworks(b *testing.B) {
	for _, test := range []struct {
		name     string
		networks int
		limit    int64
	}{{"one", 1, 1 << 40}, {"in use", 1 << 14, 1}, {"come and go", 1 << 18, 1_000_000_000}} {
		b.Run(test.name, func(b *testing.B) {
			n := NewNetworks(test.limit, 1<<40, time.Now)
			addresses := make([]string, test.networks)
			for i := range addresses {
				addresses[i] = fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if _, err := n.Take(nil, addresses[i%test.networks]); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
