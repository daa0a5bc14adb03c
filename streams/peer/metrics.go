package peer

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of a Client. Commands divided by frames is the mean size of a frame.
type metrics struct {
	frames, commands, inDoubt prometheus.Counter
}

func newMetrics() metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return metrics{
		frames:   counter("perpetua_peer_frames_total", "Frames of commands that this node has sent to the owners of journals on other nodes."),
		commands: counter("perpetua_peer_commands_total", "Commands in these frames."),
		inDoubt: counter("perpetua_peer_in_doubt_total",
			"Commands whose stream to the owner ended before their answer came. The log tells this node what became of most of them."),
	}
}

// Collectors returns the client's metrics.
func (c *Client) Collectors() []prometheus.Collector {
	return []prometheus.Collector{c.metrics.frames, c.metrics.commands, c.metrics.inDoubt}
}

// sent counts a frame.
func (m *metrics) sent(commands int) {
	m.frames.Inc()
	m.commands.Add(float64(commands))
}
