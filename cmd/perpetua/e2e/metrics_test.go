package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/version"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// scrape is what /metrics says.
type scrape map[string]*dto.MetricFamily

func (v *venue) scrape() scrape {
	v.t.Helper()
	text := v.must(200, "", http.MethodGet, "/metrics", nil).Body
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		v.t.Fatal(err)
	}
	return families
}

// value adds up the series of a metric that have these labels, given in pairs: gauges and counters, and how often
// something was observed in a histogram. It is not a number where there is no such series.
func (s scrape) value(name string, labels ...string) float64 {
	sum := math.NaN()
	for _, m := range s[name].GetMetric() {
		have := make(map[string]string)
		for _, l := range m.GetLabel() {
			have[l.GetName()] = l.GetValue()
		}
		match := true
		for i := 0; i < len(labels); i += 2 {
			match = match && have[labels[i]] == labels[i+1]
		}
		if !match {
			continue
		}
		if math.IsNaN(sum) {
			sum = 0
		}
		sum += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

// samples returns the names that a query may use, and the labels of each.
func (s scrape) samples() map[string]map[string]bool {
	out := map[string]map[string]bool{"up": {"job": true, "instance": true}} // Prometheus' own
	for name, family := range s {
		labels := map[string]bool{"job": true, "instance": true}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		switch family.GetType() {
		case dto.MetricType_HISTOGRAM:
			labels["le"] = true
			out[name+"_bucket"], out[name+"_sum"], out[name+"_count"] = labels, labels, labels
		case dto.MetricType_SUMMARY:
			labels["quantile"] = true
			out[name], out[name+"_sum"], out[name+"_count"] = labels, labels, labels
		default:
			out[name] = labels
		}
	}
	return out
}

// trades lets ANNA and BEN trade while somebody listens, and something be refused.
func (v *venue) trades() {
	v.t.Helper()
	v.fund("10000", "ANNA", "BEN")
	socket := livetest.Dial(v.t, v.WebSocket, "")
	socket.Subscribe("market-trades:" + bitcoin)
	for range 5 {
		v.must(201, "broker-a", http.MethodPost, annasOrders,
			`{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.010","limit_price":"65000.0"}`)
		v.must(201, "broker-a", http.MethodPost, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"0.010"}`)
	}
	v.must(404, "broker-a", http.MethodPost, "/v1/customers/NOBODY/orders",
		`{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"0.010"}`)
	socket.Until("the trades", func(all []livetest.Message) bool { return len(all) >= 6 }) // and the subscription's answer
}

// TestMetricsAnswerQuestions trades, and then finds each thing that an operator asks for, with a value that can be.
func TestMetricsAnswerQuestions(t *testing.T) {
	started := time.Now()
	v := startVenue(t)
	// What a busy machine has the venue refuse for the time being is sent again: by the venue itself at its start, and by v.
	busy := v.scrape().value("perpetua_journal_commands_total", "journal", "trading", "result", "not_accepted")
	v.trades()
	busy += float64(v.refusals.Load())
	type measure struct {
		name      string
		labels    string // in pairs, separated by commas
		low, high float64
	}
	measures := func() []measure {
		records, now := float64(len(v.records("trading"))), float64(time.Now().Unix()+1) // the engine may add some, at the hour
		return []measure{
			{"perpetua_journal_serving", "journal,trading", 1, 1},
			{"perpetua_journal_term", "journal,trading", 1, 1},
			{"perpetua_journal_terms_total", "journal,trading", 1, 1},
			{"perpetua_journal_term_ends_total", "journal,trading,cause,foreign", 0, 0},
			{"perpetua_journal_term_ends_total", "journal,trading,cause,error", 0, 0},
			{"perpetua_journal_term_ends_total", "journal,trading,cause,fault", 0, 0},
			{"perpetua_journal_appends_total", "journal,trading", records - 2, records - 2}, // genesis and taken come before
			{"perpetua_journal_append_seconds", "journal,trading", records - 2, records - 2},
			{"perpetua_journal_acknowledged_sequence", "journal,trading", records - 1, records - 1},
			{"perpetua_journal_window_records", "journal,trading", 0, 0},
			{"perpetua_journal_window_bytes", "journal,trading", 0, 0},
			{"perpetua_journal_unseen_records", "journal,trading", 0, records},
			{"perpetua_journal_held_replies", "journal,trading", 0, 0},
			{"perpetua_journal_queue_commands", "journal,trading", 0, 0},
			{"perpetua_journal_stalled", "journal,trading", 0, 0},
			{"perpetua_journal_commands_total", "journal,trading,result,answered", 14, records},
			{"perpetua_journal_commands_total", "journal,trading,result,refused", 1, 1},
			{"perpetua_journal_commands_total", "journal,trading,result,not_accepted", 0, busy},
			{"perpetua_journal_commands_total", "journal,trading,result,outcome_unknown", 0, 0},
			{"perpetua_journal_skipped_records_total", "journal,trading", 0, 0},
			{"perpetua_journal_alarms_total", "journal,trading,kind,log_diverged", 0, 0},
			{"perpetua_journal_alarms_total", "journal,trading", 0, 0},
			{"perpetua_journal_end_offset", "journal,trading", records, records},
			{"perpetua_journal_away_seconds", "journal,trading", 0, 0},
			{"perpetua_reader_lag_records", "journal,trading,reader,fold", 0, 0},
			{"perpetua_reader_lag_records", "journal,trading,reader,projections", 0, 0},
			{"perpetua_reader_sequence", "journal,trading,reader,fold", records - 1, records - 1},
			{"perpetua_reader_record_timestamp_seconds", "journal,trading,reader,fold", float64(started.Unix()), now},
			{"perpetua_reader_record_timestamp_seconds", "journal,trading,reader,projections", float64(started.Unix()), now},
			{"perpetua_projections_records_total", "journal,trading", records, records},
			{"perpetua_projections_transaction_seconds", "journal,trading", 1, records},
			{"perpetua_projections_transaction_records", "journal,trading", 1, records},
			{"perpetua_projections_failures_total", "journal,trading", 0, 0},
			{"perpetua_projections_active", "journal,trading", 1, 1},
			{"perpetua_postgres_connections", "state,idle", 0, 100},
			{"perpetua_postgres_connections_limit", "", 1, 1000},
			{"perpetua_postgres_acquires_total", "", 1, math.MaxInt64},
			{"perpetua_live_sessions", "", 1, 1},
			{"perpetua_live_subscriptions", "channel,market-trades", 1, 1},
			{"perpetua_live_messages_encoded_total", "", 5, 5},
			{"perpetua_live_messages_sent_total", "", 6, 8},
			{"perpetua_live_slow_consumers_total", "", 0, 0},
			{"perpetua_live_fullest_queue_ratio", "", 0, 0},
			{"perpetua_http_request_duration_seconds", "method,POST,route," + "/v1/customers/:customer_code/orders,status,201", 10, 10},
			{"perpetua_http_request_duration_seconds", "method,POST,route," + "/v1/customers/:customer_code/orders,status,404", 1, 1},
			{"perpetua_http_requests_active", "", 1, 2},                                                               // this one
			{"perpetua_kafka_produce_records_total", "client,writer,topic," + v.prefix + "trading", records, records}, // genesis and taken, too
			{"perpetua_kafka_fetch_records_total", "client,reader,topic," + v.prefix + "trading", records, 10 * records},
			{"perpetua_kafka_request_duration_e2e_seconds", "client,writer", 1, math.MaxInt64}, // a writer also lists the brokers every second
			{"perpetua_kafka_connects_total", "client,admin", 1, 100},
			{"perpetua_ready", "", 1, 1},
			{"perpetua_fence_status", "status,own", 1, 1},
			{"perpetua_fence_status", "status,fenced", 0, 0},
			{"perpetua_engine_removals_total", "reason,silent", 0, 0},
			{"perpetua_build_info", "version," + version.Current().Version + ",log_format,1", 1, 1},
			{"perpetua_node_info", "roles,engine,api,projector,live,process,sender,tlog,archive,history,liabilities", 1, 1},
		}
	}
	var s scrape
	waitForWord(t, "what is measured", func() string {
		want := measures()
		s = v.scrape()
		var wrong []string
		for _, c := range want {
			pairs := strings.Split(c.labels, ",")
			switch {
			case c.labels == "":
				pairs = nil
			case pairs[0] == "roles":
				pairs = []string{"roles", strings.TrimPrefix(c.labels, "roles,")}
			}
			if got := s.value(c.name, pairs...); !(got >= c.low && got <= c.high) {
				wrong = append(wrong, fmt.Sprintf("%s %s is %v, want %v to %v", c.name, c.labels, got, c.low, c.high))
			}
		}
		return strings.Join(wrong, "\n")
	})
	s.wellNamed(t)
}

// wellNamed holds the names and texts of our metrics against Prometheus' conventions.
func (s scrape) wellNamed(t *testing.T) {
	t.Helper()
	series := 0
	for name, family := range s {
		series += len(family.GetMetric())
		if !strings.HasPrefix(name, "perpetua_") {
			continue
		}
		if family.GetHelp() == "" {
			t.Errorf("%s has no help", name)
		}
		if counts := family.GetType() == dto.MetricType_COUNTER; counts != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %v", name, family.GetType())
		}
		for _, unit := range []string{"_ms", "_millis", "_microseconds", "_kb", "_mb", "_minutes", "_percent"} {
			if strings.Contains(name+"_", unit+"_") {
				t.Errorf("%s has no base unit", name)
			}
		}
	}
	if series > 1500 {
		t.Errorf("%d series of a node that did next to nothing", series)
	}
}

var (
	metricName = regexp.MustCompile(`\b(?:perpetua|go|process)_[a-z0-9_]+|\bup\b`)
	matchers   = regexp.MustCompile(`\b((?:perpetua|go|process)_[a-z0-9_]+|up)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
	inCode     = regexp.MustCompile("`(perpetua_[a-z0-9_]+)")
)

// TestDashboardAndAlertsNameWhatThereIs finds every metric and label that the dashboard, the alerts, and docker/README.md name
// in the metrics of a venue and of its follower.
func TestDashboardAndAlertsNameWhatThereIs(t *testing.T) {
	t.Parallel()
	queries := dashboardQueries(t)
	if len(queries) < 50 {
		t.Errorf("only %d queries in the dashboard", len(queries))
	}
	alerts := alertQueries(t)
	if len(alerts) < 8 {
		t.Errorf("only %d alerts", len(alerts))
	}
	for _, q := range slices.Concat(queries, alerts) {
		if open, closed := strings.Count(q, "("), strings.Count(q, ")"); open != closed {
			t.Errorf("%d brackets open and %d close in %s", open, closed, q)
		}
		if len(metricName.FindAllString(quoted.ReplaceAllString(q, `""`), -1)) == 0 {
			t.Errorf("no metric in %s", q)
		}
	}
	_, policy := startWitness(t)
	v := newVenue(t, "--lake", "--trace-endpoint", startCollector(t).URL, "--witness-policy", policy)
	v.env = []string{"OTEL_BSP_SCHEDULE_DELAY=100"}
	v.start()
	t.Cleanup(v.stop)
	v.trades()
	f := startFollower(v)
	waitForWord(t, "everything that is named", func() string { // some of it is there once it was measured
		there := f.scrape().samples()
		maps.Copy(there, v.scrape().samples())
		return strings.Join(append(missingFrom(there, slices.Concat(queries, alerts)), missingOf(there, readDocument(t, "docker/README.md"))...), "\n")
	})
}

// missingFrom says which metrics and labels that queries name are not there.
func missingFrom(there map[string]map[string]bool, queries []string) (missing []string) {
	for _, q := range queries {
		for _, name := range metricName.FindAllString(quoted.ReplaceAllString(q, `""`), -1) {
			if there[name] == nil {
				missing = append(missing, fmt.Sprintf("there is no %s, named in %s", name, q))
			}
		}
		for _, m := range matchers.FindAllStringSubmatch(q, -1) {
			for _, label := range matcher.FindAllStringSubmatch(quoted.ReplaceAllString(m[2], `""`), -1) {
				if !there[m[1]][label[1]] {
					missing = append(missing, fmt.Sprintf("%s has no label %s, named in %s", m[1], label[1], q))
				}
			}
		}
	}
	return missing
}

// missingOf says which metrics, and beginnings of metrics' names, that a text names as code are not there.
func missingOf(there map[string]map[string]bool, text string) (missing []string) {
	for _, m := range inCode.FindAllStringSubmatch(text, -1) {
		family := func(name string) bool { return strings.HasSuffix(m[1], "_") && strings.HasPrefix(name, m[1]) }
		if there[m[1]] == nil && there[m[1]+"_count"] == nil && !slices.ContainsFunc(slices.Collect(maps.Keys(there)), family) {
			missing = append(missing, fmt.Sprintf("there is no %s, named in docker/README.md", m[1]))
		}
	}
	return missing
}

// dashboardQueries returns every PromQL expression of the dashboard.
func dashboardQueries(t *testing.T) (out []string) {
	t.Helper()
	raw, err := os.ReadFile("../../../docker/grafana/dashboards/perpetua.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard any
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if q, ok := v["expr"].(string); ok {
				out = append(out, q)
			}
			for _, member := range v {
				walk(member)
			}
		case []any:
			for _, element := range v {
				walk(element)
			}
		}
	}
	walk(dashboard)
	return out
}

// alertQueries returns the expression of every alert, and holds each against what an alert must have.
func alertQueries(t *testing.T) (out []string) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	readYAML(t, "../../../docker/prometheus/alerts.yaml", &file)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("the alert %q lacks a severity or an annotation", r.Alert)
			}
			out = append(out, r.Expr)
		}
	}
	return out
}

// TestEachAlarmHasOneAlert holds the selectors of kinds in the alerts against kinds of alarms.
func TestEachAlarmHasOneAlert(t *testing.T) {
	selector := regexp.MustCompile(`perpetua_journal_alarms_total\{kind(=~?|!~)"([^"]*)"\}`)
	queries := alertQueries(t)
	for kind, critical := range map[string]bool{"log_diverged": true, "log_broken": true, "log_base": true, "topic": true,
		"log_trimmed": false, "set_aside": false} {
		var selecting []string
		for _, query := range queries {
			if m := selector.FindStringSubmatch(query); m != nil && slices.Contains(strings.Split(m[2], "|"), kind) != (m[1] == "!~") {
				selecting = append(selecting, m[1])
			}
		}
		if len(selecting) != 1 || critical == (selecting[0] == "!~") {
			t.Errorf("the alarm %s is selected by %q", kind, selecting)
		}
	}
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalWithOptions(raw, into, yaml.AllowDuplicateMapKey()); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// TestComposeHasWhatItMounts holds the compose file and what it mounts against each other: every node is scraped, and
// every file that a container is given is there.
func TestComposeHasWhatItMounts(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Image    string
			EnvFile  []string `yaml:"env_file"`
			Profiles []string
			Command  any
			Volumes  []string
		}
		Volumes map[string]any
	}
	readYAML(t, "../../../docker/compose.yaml", &compose)
	var prometheus struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	readYAML(t, "../../../docker/prometheus/prometheus.yaml", &prometheus)
	var scraped, nodes []string
	for _, c := range prometheus.ScrapeConfigs {
		for _, s := range c.StaticConfigs {
			scraped = append(scraped, s.Targets...)
		}
	}
	for name, s := range compose.Services {
		if len(s.EnvFile) == 2 && s.Command == nil { // a node's own and its role's; bootstrap has a command
			nodes = append(nodes, name+":8080")
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, err := os.Stat(filepath.Join("../../../docker", from)); strings.HasPrefix(from, ".") && err != nil {
				t.Errorf("%s mounts what is not there: %v", name, err)
			} else if _, there := compose.Volumes[from]; !strings.HasPrefix(from, ".") && !there {
				t.Errorf("%s mounts the volume %s, which is not declared", name, from)
			}
		}
	}
	slices.Sort(scraped)
	slices.Sort(nodes)
	if !slices.Equal(scraped, nodes) {
		t.Errorf("%v are scraped, the nodes are %v", scraped, nodes)
	}
	for _, name := range []string{"prometheus", "grafana"} {
		if !slices.Equal(compose.Services[name].Profiles, []string{"observability"}) {
			t.Errorf("%s starts without being asked for", name)
		}
	}
	for _, f := range prometheus.RuleFiles {
		if _, err := os.Stat("../../../docker/prometheus/" + f); err != nil {
			t.Error(err)
		}
	}
	for _, f := range []string{"datasources/prometheus.yaml", "dashboards/perpetua.yaml"} {
		readYAML(t, "../../../docker/grafana/provisioning/"+f, &struct{}{})
	}
}
