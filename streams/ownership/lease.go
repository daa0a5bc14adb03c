package ownership

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// lease knows until when nobody else can have been assigned what this member owns: the group forgets a member no
// sooner than a session after its last heartbeat.
//
// What leaves a record does not need it, since the log decides about that. A refusal leaves none. The owner has the brokers
// confirm it, which also holds where the watch has ended a membership before its time; but a broker that has lost the
// partition and does not know it yet confirms too much. By then the membership lapses, and with it the lease.
type lease struct {
	mu        sync.Mutex
	last      time.Time // the latest heartbeat was sent
	confirmed time.Time // the latest one was sent that is known to have been good
}

var _ kgo.HookBrokerE2E = (*lease)(nil)

// OnBrokerE2E notes when a heartbeat that was answered had been sent. Whether the answer was good is known here only
// when the next one follows, for a bad one ends the heartbeats. A sync is followed by the assignment only if it was.
func (l *lease) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e kgo.BrokerE2E) {
	if e.WriteErr != nil || e.ReadErr != nil {
		return
	}
	sent := time.Now().Add(-e.DurationE2E())
	l.mu.Lock()
	defer l.mu.Unlock()
	switch key {
	case kmsg.Heartbeat.Int16():
		l.confirmed, l.last = l.last, sent
	case kmsg.SyncGroup.Int16():
		l.confirmed, l.last = sent, sent
	}
}

// holds reports whether the membership can't have lapsed yet.
func (l *lease) holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.confirmed) < session
}
