package ownership

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// monotonic returns Go's monotonic clock. It begins far from zero.
func monotonic() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Hour + time.Since(start) }
}

// answered is a request that was answered just now and had been sent a while ago.
func answered(ago time.Duration) kgo.BrokerE2E { return kgo.BrokerE2E{TimeToRead: ago} }

func TestLease(t *testing.T) {
	heartbeat, sync := kmsg.Heartbeat.Int16(), kmsg.SyncGroup.Int16()
	type beat struct {
		key  int16
		sent time.Duration // ago
		err  error
	}
	for name, c := range map[string]struct {
		beats []beat
		holds bool
	}{
		"nothing heard yet":                    {nil, false},
		"just assigned":                        {[]beat{{sync, 0, nil}}, true},
		"assigned long ago":                    {[]beat{{sync, session, nil}}, false},
		"heartbeats go on":                     {[]beat{{sync, 9 * time.Second, nil}, {heartbeat, time.Second, nil}, {heartbeat, 0, nil}}, true},
		"the last one may have been refused":   {[]beat{{sync, 9 * time.Second, nil}, {heartbeat, 0, nil}}, false},
		"stopped while one was under way":      {[]beat{{heartbeat, 8 * time.Second, nil}, {heartbeat, 7 * time.Second, nil}}, false},
		"a lost answer confirms nothing":       {[]beat{{heartbeat, 7 * time.Second, nil}, {heartbeat, 0, kgo.ErrClientClosed}}, false},
		"another request is no sign of life":   {[]beat{{sync, session, nil}, {kmsg.Metadata.Int16(), 0, nil}, {kmsg.Metadata.Int16(), 0, nil}}, false},
		"one heartbeat after a old assignment": {[]beat{{sync, 4 * time.Second, nil}, {heartbeat, 0, nil}}, true},
	} {
		l := newLease(monotonic())
		for _, b := range c.beats {
			e := answered(b.sent)
			e.ReadErr = b.err
			l.OnBrokerE2E(kgo.BrokerMetadata{}, b.key, e)
		}
		if l.holds() != c.holds {
			t.Errorf("%s: holds is %v", name, !c.holds)
		}
	}
}

// TestASuspensionEndsTheLease: the group counts the session of a member whose machine is suspended, also between a heartbeat and
// its answer.
func TestASuspensionEndsTheLease(t *testing.T) {
	heartbeat := kmsg.Heartbeat.Int16()
	var suspended time.Duration
	clock := monotonic()
	l := newLease(func() time.Duration { return clock() + suspended })
	beat := func() { l.OnBrokerE2E(kgo.BrokerMetadata{}, heartbeat, answered(time.Millisecond)) }
	beat()
	beat()
	if !l.holds() {
		t.Fatal("a member has no lease")
	}
	suspended += session
	if l.holds() {
		t.Error("the lease outlives a suspension")
	}
	l.OnBrokerE2E(kgo.BrokerMetadata{}, kmsg.Metadata.Int16(), answered(time.Millisecond))
	beat() // sent before the suspension
	beat()
	if l.holds() {
		t.Error("a heartbeat from before the suspension renews the lease")
	}
	beat()
	if !l.holds() {
		t.Error("later heartbeats do not renew the lease")
	}
}
