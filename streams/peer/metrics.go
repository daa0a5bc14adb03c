package peer

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of a Client. Commands divided by frames is the mean size of a frame.
type metrics struct {
	frames, commands, lost             prometheus.Counter
	inDoubt, waiting, credit, pingTime *prometheus.Desc
}

func newMetrics() metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"journal"}, nil)
	}
	return metrics{
		frames:   counter("perpetua_peer_frames_total", "Frames of commands that this node has sent to the owners of journals on other nodes."),
		commands: counter("perpetua_peer_commands_total", "Commands in these frames."),
		lost: counter("perpetua_peer_in_doubt_total",
			"Commands whose stream to the owner ended before their answer came. The log tells this node what became of most of them."),
		inDoubt:  gauge("perpetua_peer_in_doubt", "Commands of that kind that have no answer yet."),
		waiting:  gauge("perpetua_peer_unanswered", "Commands that this node has sent over open streams and that have no answer yet."),
		credit:   gauge("perpetua_peer_credit", "How many more commands this node may send over open streams before the next answer."),
		pingTime: gauge("perpetua_peer_ping_age_seconds", "How long ago this node heard of an owner over an open stream, which it does every 0.25 s; the longest."),
	}
}

// Collectors returns the client's metrics.
func (c *Client) Collectors() []prometheus.Collector {
	return []prometheus.Collector{c.metrics.frames, c.metrics.commands, c.metrics.lost, gauges{c}}
}

// sent counts a frame.
func (m *metrics) sent(commands int) {
	m.frames.Inc()
	m.commands.Add(float64(commands))
}

// gauges are the metrics that are computed when they are read.
type gauges struct{ client *Client }

// Describe implements prometheus.Collector.
func (g gauges) Describe(ch chan<- *prometheus.Desc) {
	m := &g.client.metrics
	for _, d := range []*prometheus.Desc{m.inDoubt, m.waiting, m.credit, m.pingTime} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(ch chan<- prometheus.Metric) {
	c, m := g.client, &g.client.metrics
	now := c.cfg.Clock()
	all := make(map[string]state)
	c.mu.Lock()
	shards := make([]*shard, 0, len(c.shards))
	for _, s := range c.shards {
		shards = append(shards, s)
	}
	c.mu.Unlock()
	for _, s := range shards {
		all[s.id.Journal] = all[s.id.Journal].plus(s.state(now))
	}
	for journal, s := range all {
		send := func(d *prometheus.Desc, value float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, journal)
		}
		send(m.inDoubt, float64(s.inDoubt))
		send(m.waiting, float64(s.unanswered))
		send(m.credit, float64(s.credit))
		send(m.pingTime, s.silent.Seconds())
	}
}

// state describes the streams of a shard.
type state struct {
	inDoubt, unanswered, credit int
	silent                      time.Duration
}

func (s state) plus(o state) state {
	return state{s.inDoubt + o.inDoubt, s.unanswered + o.unanswered, s.credit + o.credit, max(s.silent, o.silent)}
}

// state returns the state of the shard's streams.
func (s *shard) state(now time.Duration) (sum state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.sent {
		if c.stream == nil {
			sum.inDoubt++
		}
	}
	for _, st := range s.streams {
		if st.state == open {
			sum = sum.plus(state{unanswered: st.unanswered, credit: st.commands - st.unanswered, silent: now - st.clockAt})
		}
	}
	return sum
}
