package journal

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// silence is the time without an answer after which the readers of a journal have lost contact with the brokers. The
// brokers answer a fetch within half a second, even an empty one.
const silence = 8 * time.Second

// Contact is the state of a journal's brokers as the readers in this process see it: the end of the log, and whether
// the brokers answer. It is safe for concurrent use.
type Contact struct {
	end     atomic.Int64 // as last reported by the brokers
	readers atomic.Int64 // the open readers

	// The times keep the monotonic clock's reading: the wall clock may be set.
	answeredAt atomic.Pointer[time.Time] // when the brokers last answered; nil for never
	lost       atomic.Pointer[time.Time] // since when they have not answered; nil while they do
}

// End returns the offset after the last record of the log, as last reported by the brokers.
func (c *Contact) End() int64 { return c.end.Load() }

// Lost returns the time since which the brokers have not answered the readers of this process. lost is false while they
// answer, and while no reader of the journal is open.
func (c *Contact) Lost(now time.Time) (since time.Time, lost bool) {
	if c.readers.Load() == 0 {
		return time.Time{}, false
	}
	if at := c.lost.Load(); at != nil {
		return *at, true
	}
	if at := c.answeredAt.Load(); at != nil && now.Sub(*at) > silence {
		return *at, true
	}
	return time.Time{}, false
}

// opened counts a reader that opens. The first one asks the brokers after a pause, so the time without an answer begins now.
func (c *Contact) opened() {
	if c.readers.Add(1) == 1 && c.answeredAt.Load() != nil {
		c.answered()
	}
}

// closed counts a reader that closes.
func (c *Contact) closed() { c.readers.Add(-1) }

// answered records an answer of the brokers.
func (c *Contact) answered() {
	now := time.Now()
	c.answeredAt.Store(&now)
	c.lost.Store(nil)
}

// failed records a failed request. Contact counts as lost since the last answer.
func (c *Contact) failed() {
	since := c.answeredAt.Load()
	if since == nil {
		now := time.Now()
		since = &now
	}
	c.lost.CompareAndSwap(nil, since)
}

// contacts holds the contacts of a process by journal.
type contacts struct {
	mu        sync.Mutex
	all       map[string]*Contact
	end, away *prometheus.Desc
}

func newContacts() *contacts {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("perpetua_journal_"+name, help, []string{"journal"}, nil)
	}
	return &contacts{all: make(map[string]*Contact),
		end:  desc("end_offset", "The offset after the last record of the log, as the brokers last told a reader of this process."),
		away: desc("away_seconds", "For how long the brokers have given the readers of this process nothing to read; 0 while they do, and while no reader is open."),
	}
}

// of returns the contact of a journal. It always returns the same one for the same journal.
func (cs *contacts) of(journal string) *Contact {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.all[journal]
	if c == nil {
		c = new(Contact)
		cs.all[journal] = c
	}
	return c
}

// Describe implements prometheus.Collector.
func (cs *contacts) Describe(ch chan<- *prometheus.Desc) { ch <- cs.end; ch <- cs.away }

// Collect implements prometheus.Collector.
func (cs *contacts) Collect(ch chan<- prometheus.Metric) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	now := time.Now()
	for journal, c := range cs.all {
		away := 0.0
		if since, lost := c.Lost(now); lost {
			away = now.Sub(since).Seconds()
		}
		ch <- prometheus.MustNewConstMetric(cs.end, prometheus.GaugeValue, float64(c.End()), journal)
		ch <- prometheus.MustNewConstMetric(cs.away, prometheus.GaugeValue, away, journal)
	}
}
