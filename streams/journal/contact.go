package journal

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// silence is how long the brokers may not answer the readers of a journal before that counts as no contact: they
// answer a fetch within half a second, be it with nothing.
const silence = 8 * time.Second

// Contact is what the brokers answer the readers of a journal in this process: where the log ends, and whether they answer
// at all. It is safe for concurrent use.
type Contact struct {
	end        atomic.Int64 // as the brokers last told it
	answeredAt atomic.Int64 // when they last answered, in Unix milliseconds; 0 for never
	lost       atomic.Int64 // since when they do not, in Unix milliseconds; 0 while they do
}

// End returns the offset after the last record of the log, as the brokers last told it.
func (c *Contact) End() int64 { return c.end.Load() }

// Lost returns since when the brokers give this process nothing to read, and false while they do or nobody reads.
func (c *Contact) Lost(now time.Time) (since time.Time, lost bool) {
	if at := c.lost.Load(); at != 0 {
		return time.UnixMilli(at), true
	}
	if at := c.answeredAt.Load(); at != 0 && now.Sub(time.UnixMilli(at)) > silence {
		return time.UnixMilli(at), true
	}
	return time.Time{}, false
}

// answered notes that the brokers answered.
func (c *Contact) answered() {
	c.answeredAt.Store(time.Now().UnixMilli())
	c.lost.Store(0)
}

// failed notes that they did not. What was lost was lost when they answered for the last time.
func (c *Contact) failed() {
	since := c.answeredAt.Load()
	if since == 0 {
		since = time.Now().UnixMilli()
	}
	c.lost.CompareAndSwap(0, since)
}

// contacts are those of a process, by journal.
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
		away: desc("away_seconds", "For how long the brokers have given the readers of this process nothing to read; 0 while they do."),
	}
}

// of returns the contact of a journal, the same one every time.
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
