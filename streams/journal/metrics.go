package journal

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Metrics holds the metrics of owners and readers, by journal. It is a prometheus.Collector.
type Metrics struct {
	Appends      *prometheus.CounterVec   // records acknowledged
	AppendTime   *prometheus.HistogramVec // seconds from produce to acknowledgement
	Window       *prometheus.GaugeVec     // records produced and not acknowledged
	WindowBytes  *prometheus.GaugeVec     // their bytes
	Held         *prometheus.GaugeVec     // replies that wait for an acknowledgement
	Queue        *prometheus.GaugeVec     // commands that wait for their decision
	Terms        *prometheus.CounterVec   // terms opened
	TermEnds     *prometheus.CounterVec   // terms ended, by cause
	Serving      *prometheus.GaugeVec     // 1 while a term is valid
	Commands     *prometheus.CounterVec   // commands answered, by result
	Skipped      *prometheus.CounterVec   // records that readers skipped
	Behind       *prometheus.CounterVec   // times that a tail fell behind a shared reader
	Alarms       *prometheus.CounterVec   // conditions that an operator should look at, by kind
	Acknowledged *prometheus.GaugeVec     // the sequence that an owner has acknowledged
	Unseen       *prometheus.GaugeVec     // records decided that the owner's reader has not passed
	Term         *prometheus.GaugeVec     // the number of the served term, 0 for none
	Stalled      *prometheus.GaugeVec     // 1 while acknowledgements are missing and intake is stopped
	ClockOff     *prometheus.GaugeVec     // seconds by which records' time is ahead of the wall clock

	contacts *contacts     // of the readers
	kafka    *kafkaMetrics // of the Kafka clients
}

// Some kinds of alarms.
const (
	alarmDiverged = "log_diverged"
	alarmBroken   = "log_broken"
	alarmBase     = "log_base"
	alarmTrimmed  = "log_trimmed"
	alarmVerify   = "verify"
	alarmTopic    = "topic"
)

// begin creates the series of an owner before the first count: a series that starts with its first count shows no
// increase.
func (m *Metrics) begin(journal string) {
	m.beginReader(journal)
	for _, kind := range []string{"auto_deleveraging", "clock", "decide", "due", "evolve",
		"insurance_fund", "liabilities_contradicted", "price_refused", "set_aside", "settlement_left_out", alarmTopic, "unvouched"} {
		m.Alarms.WithLabelValues(journal, kind)
	}
	for _, cause := range []string{"error", "foreign", "clock", "fault"} {
		m.TermEnds.WithLabelValues(journal, cause)
	}
	for _, result := range []string{"answered", "refused", "not_accepted", "outcome_unknown", "failed"} {
		m.Commands.WithLabelValues(journal, result)
	}
	m.Skipped.WithLabelValues(journal)
}

// beginReader is begin for a reader.
func (m *Metrics) beginReader(journal string) {
	for _, kind := range []string{alarmDiverged, alarmBroken, alarmBase, alarmTrimmed} {
		m.Alarms.WithLabelValues(journal, kind)
	}
}

// countFinal counts an error for which record.Final holds as an alarm of the kind that its code names.
func (m *Metrics) countFinal(journal string, err error) {
	kind := alarmBroken
	var diverged *record.DivergedError
	var base *record.BaseError
	var trimmed *record.TrimmedError
	switch {
	case errors.As(err, &diverged):
		kind = alarmDiverged
	case errors.As(err, &base):
		kind = alarmBase
	case errors.As(err, &trimmed):
		kind = alarmTrimmed
	}
	m.Alarms.WithLabelValues(journal, kind).Inc()
}

// NewMetrics returns unregistered collectors.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "perpetua", Subsystem: "journal", Name: name, Help: help},
			append([]string{"journal"}, labels...))
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "perpetua", Subsystem: "journal", Name: name, Help: help},
			[]string{"journal"})
	}
	return &Metrics{
		Appends: counter("appends_total", "Records acknowledged."),
		AppendTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "perpetua", Subsystem: "journal",
			Name: "append_seconds", Help: "Time from producing a record to its acknowledgement.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 18)}, []string{"journal"}),
		Window:       gauge("window_records", "Records produced and not acknowledged."),
		WindowBytes:  gauge("window_bytes", "Bytes of the records produced and not acknowledged."),
		Held:         gauge("held_replies", "Replies that wait for an acknowledgement."),
		Queue:        gauge("queue_commands", "Commands that wait for their decision."),
		Terms:        counter("terms_total", "Terms opened by this process."),
		TermEnds:     counter("term_ends_total", "Terms of this process that ended, by cause.", "cause"),
		Serving:      gauge("serving", "1 while this process has a valid term."),
		Commands:     counter("commands_total", "Commands answered, by result.", "result"),
		Skipped:      counter("skipped_records_total", "Records in the topic that are not valid."),
		Behind:       counter("tails_behind_total", "Times that a follower fell behind the reader that it shares and had to read for itself."),
		Alarms:       counter("alarms_total", "Events that an operator should look at, by kind.", "kind"),
		Acknowledged: gauge("acknowledged_sequence", "The last acknowledged sequence of an owned partition."),
		Unseen:       gauge("unseen_records", "Records produced that the owner's own reader has not met in the log."),
		Term:         gauge("term", "The number of the term that this process serves; 0 while it serves none."),
		Stalled:      gauge("stalled", "1 while nothing has been acknowledged for two seconds, so that nothing is taken in."),
		ClockOff: gauge("clock_off_seconds", "By how much the time of records is ahead of this machine's clock, less than 0 if it is behind: "+
			"because the log's last time was, or because the clock has jumped and is not followed."),
		contacts: newContacts(),
		kafka:    newKafkaMetrics(),
	}
}

func (m *Metrics) all() []prometheus.Collector {
	all := []prometheus.Collector{m.Appends, m.AppendTime, m.Window, m.WindowBytes, m.Held, m.Queue, m.Terms, m.TermEnds,
		m.Serving, m.Commands, m.Skipped, m.Behind, m.Alarms, m.Acknowledged, m.Unseen,
		m.Term, m.Stalled, m.ClockOff, m.contacts}
	return append(all, m.kafka.collectors...)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(ch)
	}
}
