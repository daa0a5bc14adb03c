package e2e

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// otlp is an OpenTelemetry collector that keeps what it is sent.
type otlp struct {
	*httptest.Server
	mu      sync.Mutex
	all     []*spans.Span
	service map[string]string // the resource's attributes
}

func startCollector(t *testing.T) *otlp {
	t.Helper()
	c := &otlp{service: make(map[string]string)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.take(r); err != nil {
			t.Errorf("the collector: %v", err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *otlp) take(r *http.Request) error {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return err
		}
		body = z
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var request collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(raw, &request); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, a := range resource.GetResource().GetAttributes() {
			c.service[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range resource.GetScopeSpans() {
			c.all = append(c.all, scope.GetSpans()...)
		}
	}
	return nil
}

// of returns the spans of a trace by their names.
func (c *otlp) of(trace string) map[string]*spans.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[string]*spans.Span)
	for _, s := range c.all {
		if hex.EncodeToString(s.GetTraceId()) == trace {
			out[s.GetName()] = s
		}
	}
	return out
}

// await waits until a trace has spans of these names, each below the one named after it, "" for none of the venue's.
func (c *otlp) await(t *testing.T, trace string, below map[string]string) map[string]*spans.Span {
	t.Helper()
	var got map[string]*spans.Span
	waitFor(t, "the spans of a trace", func() bool {
		got = c.of(trace)
		for name := range below {
			if got[name] == nil {
				return false
			}
		}
		return true
	})
	for name, parent := range below {
		if want := got[parent].GetSpanId(); string(got[name].GetParentSpanId()) != string(want) {
			t.Errorf("%s is below %x, want %q %x", name, got[name].GetParentSpanId(), parent, want)
		}
	}
	return got
}

// lastCommand returns the id of the last command of a type in the log, as a trace has it.
func (v *venue) lastCommand(kind string) (id string) {
	v.t.Helper()
	for _, line := range v.records("trading") {
		var r struct{ Command struct{ ID, Type string } }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			v.t.Fatal(err)
		}
		if r.Command.Type == kind {
			id = strings.ReplaceAll(r.Command.ID, "-", "")
		}
	}
	return id
}

const (
	placed  = "POST /v1/customers/:customer_code/orders"
	anOrder = `{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.010","limit_price":"65000.0"}`
)

// followed is what a command leads to, each span with the one that it is below.
func followed(top string) map[string]string {
	return map[string]string{"submit order.place": top, "wait": "submit order.place", "decide": "submit order.place",
		"record": "submit order.place", "project trading": "record", "deliver trading": "record"}
}

// TestTraces places orders and finds each of them in one trace, from the request to the rows and the sockets, though the
// log knows nothing of traces but the commands' ids.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	v := newVenue(t, "--trace-endpoint", c.URL)
	v.env = []string{"OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test"}
	v.start()
	t.Cleanup(v.stop)
	v.fund("10000", "ANNA")
	livetest.Dial(t, v.WebSocket, "").Subscribe("orderbook-stream:" + bitcoin)

	v.must(201, "broker-a", http.MethodPost, annasOrders, anOrder)
	id := v.lastCommand("order.place")
	below := followed(placed)
	below[placed] = ""
	got := c.await(t, id, below)
	if span := hex.EncodeToString(got["record"].GetSpanId()); span != id[16:] {
		t.Errorf("the record's span is %s, want the end of the command's id %s", span, id)
	}
	if c.service["service.name"] != "perpetua" || c.service["deployment.environment.name"] != "test" || c.service["service.instance.id"] == "" {
		t.Errorf("the service is %v", c.service)
	}

	// A sender with a trace of its own: the request is in that, the command in another, and the two are linked.
	const theirs, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	v.must(201, "broker-a", http.MethodPost, annasOrders, anOrder, "Traceparent", "00-"+theirs+"-"+span+"-01")
	id = v.lastCommand("order.place")
	got = c.await(t, id, followed(""))
	var request *spans.Span
	waitFor(t, "the request's span", func() bool { request = c.of(theirs)[placed]; return request != nil })
	if hex.EncodeToString(request.GetParentSpanId()) != span {
		t.Errorf("the request is below %x", request.GetParentSpanId())
	}
	if l := got["submit order.place"].GetLinks(); len(l) != 1 || string(l[0].GetSpanId()) != string(request.GetSpanId()) {
		t.Errorf("the command has the links %v", l)
	}
	if l := request.GetLinks(); len(l) != 1 || hex.EncodeToString(l[0].GetTraceId()) != id {
		t.Errorf("the request has the links %v", l)
	}
	waitFor(t, "the collector's count", func() bool { return v.scrape().value("perpetua_trace_spans_total", "result", "taken") > 10 })
	if lost := v.scrape().value("perpetua_trace_spans_total", "result", "lost"); lost != 0 {
		t.Errorf("%v spans are lost", lost)
	}
}

// TestTracesAreOff sends nothing anywhere unless it is asked to, and passes on what a sender says.
func TestTracesAreOff(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	v := newVenue(t)
	v.env = []string{"OTEL_BSP_SCHEDULE_DELAY=100"}
	v.start()
	v.fund("10000", "ANNA")
	v.must(201, "broker-a", http.MethodPost, annasOrders, anOrder, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if n := v.scrape()["perpetua_trace_spans_total"]; n != nil {
		t.Errorf("spans are counted: %v", n)
	}
	v.stop() // which would send what is left
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) != 0 {
		t.Errorf("%d spans were sent", len(c.all))
	}
}

// TestTheSenderDoesNotHaveItselfTraced sends nothing anywhere where nothing is to be traced, whatever a sender records.
func TestTheSenderDoesNotHaveItselfTraced(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	v := newVenue(t, "--trace-endpoint", c.URL, "--trace-ratio", "0")
	v.start()
	v.fund("10000", "ANNA")
	v.must(201, "broker-a", http.MethodPost, annasOrders, anOrder, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	v.stop() // which sends what is left
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) != 0 {
		t.Errorf("%d spans were sent", len(c.all))
	}
}

// TestTracesPassOn places an order at a node that owns nothing: the owner's spans are in the same trace.
func TestTracesPassOn(t *testing.T) {
	t.Setenv("KAFKA_BROKERS", "")
	c := startCollector(t)
	host := newVenue(t, "--trace-endpoint", c.URL)
	key := "PERPETUA_MASTER_KEY=" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	host.env = []string{"OTEL_BSP_SCHEDULE_DELAY=100", key}
	host.start()
	t.Cleanup(host.stop)
	host.fund("10000", "ANNA")
	front := newVenue(t, "--role", "api", "--kafka-brokers", strings.Join(host.Kafka, ","), "--database-url", host.DatabaseURL,
		"--key-url", blob.URLOf(host.dir+"/keys"))
	front.verb = "serve"
	front.env = []string{"OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, key}
	front.start()
	t.Cleanup(front.stop)
	front.Users = host.Users
	front.must(201, "broker-a", http.MethodPost, annasOrders, anOrder)
	id := host.lastCommand("order.place")
	c.await(t, id, map[string]string{placed: "", "submit order.place": placed, "record": "submit order.place", "project trading": "record"})
	c.mu.Lock()
	defer c.mu.Unlock()
	requests := 0
	for _, s := range c.all {
		if s.GetName() == placed && hex.EncodeToString(s.GetTraceId()) == id {
			requests++
		}
	}
	if requests != 1 {
		t.Errorf("%d nodes had the request", requests)
	}
}
