package web

import (
	stdjson "encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// startNode serves a write that goes to another node if elsewhere is set; its answer shows what arrived.
func startNode(t *testing.T, o Options, elsewhere *string) *httptest.Server {
	var calls atomic.Int32
	e := serve(t, o, func(c echo.Context) error {
		if calls.Add(1) > 20 { // two nodes that pass a request to and fro would not end
			return echo.NewHTTPError(http.StatusTeapot)
		}
		b := Body(c)
		name := b.String("name")
		if err := b.Done(); err != nil {
			return err
		}
		cmd, err := RequestOf(c).NewCommand(named("thing.make"), b)
		if err != nil {
			return err
		}
		_, err = Submit(RequestOf(c), submitFunc(func(cmd decide.Command) (submit.Result, error) {
			if *elsewhere != "" {
				return submit.Result{}, &submit.ElsewhereError{URL: *elsewhere}
			}
			return submit.Result{Position: record.LogPosition{Journal: "trading", Sequence: 8}}, nil
		}), "trading", cmd)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusCreated, map[string]string{"name": name, "command": cmd.ID.String(), "key": cmd.Metadata.Key, "query": c.QueryString(), "address": Address(c)})
	})
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	return s
}

func send(t *testing.T, url string, headers ...string) (int, http.Header, map[string]any) {
	t.Helper()
	r, err := http.NewRequest("POST", url, strings.NewReader(`{"name":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(HeaderIdempotencyKey, "k1")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := stdjson.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return resp.StatusCode, resp.Header, answer
}

func TestPassOn(t *testing.T) {
	transport := newTransport()
	o := Options{ForwardKey: []byte("shared"), Transport: transport}
	here, there := "", ""
	owner := startNode(t, o, &there)
	first := startNode(t, o, &here)
	here = owner.URL
	status, header, answer := send(t, first.URL+"/v1/things?a=1")
	if status != 201 || answer["name"] != "x" || answer["key"] != "k1" || answer["query"] != "a=1" {
		t.Fatalf("got %d %v", status, answer)
	}
	if header.Get(HeaderLogPosition) != "trading/0@8" || len(header.Values(HeaderRequestID)) != 1 {
		t.Errorf("the headers are %v", header)
	}

	if _, _, answer := send(t, owner.URL+"/v1/things", headerForwarded, "01890a5d-ac96-774b-bcce-b302099a8057.00.01890a5d-ac96-774b-bcce-b302099a8058.7.203.0.113.5"); answer["address"] != "127.0.0.1" {
		t.Errorf("a client chose its address: %v", answer)
	}
	there = first.URL // each says the other owns it
	if status, _, answer := send(t, first.URL+"/v1/things"); status != 503 || answer["code"] != "NOT_ACCEPTED" {
		t.Errorf("two nodes that point at each other: %d %v", status, answer)
	}
	there = ""
	if _, _, answer := send(t, owner.URL+"/v1/things", headerForwarded, "01890a5d-ac96-774b-bcce-b302099a8057.00.01890a5d-ac96-774b-bcce-b302099a8058.7.203.0.113.5"); answer["command"] == "01890a5d-ac96-774b-bcce-b302099a8057" {
		t.Error("a client chose the command's id")
	}

	owner.Close()
	transport.(*http.Transport).CloseIdleConnections() // of one that is just being closed, what was sent is not known
	if status, _, answer := send(t, first.URL+"/v1/things"); status != 503 || answer["code"] != "NOT_ACCEPTED" {
		t.Errorf("a node that cannot be reached: %d %v", status, answer)
	}
}

// TestPassOnTheAddress sends a request through a proxy and a node: its owner sees the client's address.
func TestPassOnTheAddress(t *testing.T) {
	_, loopback, err := net.ParseCIDR("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	here := ""
	owner := startNode(t, Options{ForwardKey: []byte("shared")}, &here)
	first := startNode(t, Options{ForwardKey: []byte("shared"), TrustedProxies: []*net.IPNet{loopback}}, &owner.URL)
	for client, want := range map[string]string{"203.0.113.5": "203.0.113.5", "2001:db8::7": "2001:db8::7", "": "127.0.0.1"} {
		headers := []string{"X-Forwarded-For", client}
		if client == "" {
			headers = nil
		}
		if status, _, answer := send(t, first.URL+"/v1/things", headers...); status != 201 || answer["address"] != want {
			t.Errorf("%s: %d %v", client, status, answer)
		}
	}
}

// An owner that hangs is waited for no longer than a command may take.
func TestPassOnToANodeThatHangs(t *testing.T) {
	o := Options{ForwardKey: []byte("shared"), Patience: time.Second}
	arrived, release := make(chan string, 1), make(chan struct{})
	owner := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		id := provenMark(o.ForwardKey, r.Header.Get(headerForwarded), r).id
		arrived <- id.String()
		<-release
	}))
	defer owner.Close()
	defer close(release)
	first := startNode(t, o, &owner.URL)
	status, _, answer := send(t, first.URL+"/v1/things")
	if sent := <-arrived; status != 503 || answer["code"] != "OUTCOME_UNKNOWN" || answer["command_id"] != sent {
		t.Errorf("got %d %v, the owner saw command %s", status, answer, sent)
	}
}

func TestPassOnLosesTheConnection(t *testing.T) {
	o := Options{ForwardKey: []byte("shared")}
	arrived := make(chan string, 1)
	owner := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		id := provenMark(o.ForwardKey, r.Header.Get(headerForwarded), r).id
		arrived <- id.String()
		panic(http.ErrAbortHandler)
	}))
	defer owner.Close()
	first := startNode(t, o, &owner.URL)
	status, _, answer := send(t, first.URL+"/v1/things")
	sent := <-arrived
	if status != 503 || answer["code"] != "OUTCOME_UNKNOWN" || answer["command_id"] != sent || sent == (scalar.ID{}).String() {
		t.Errorf("got %d %v, the owner saw command %s", status, answer, sent)
	}
}
