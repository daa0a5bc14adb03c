package web

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// dyingOwner is an owner that dies in the middle of a request: it answers its first request and keeps the connection,
// takes the second, decides it, and closes the connection in place of an answer. After that it refuses connections,
// or answers whatever comes with NOT_ACCEPTED, as an owner does that has just started again.
type dyingOwner struct {
	listener net.Listener
	restarts bool
	decided  chan string // the command of each request that arrives after the first
}

func newDyingOwner(t *testing.T, restarts bool) *dyingOwner {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &dyingOwner{l, restarts, make(chan string, 8)}
	done := make(chan struct{})
	go func() { defer close(done); o.serve() }()
	t.Cleanup(func() { l.Close(); <-done })
	return o
}

func (o *dyingOwner) serve() {
	conn, err := o.listener.Accept()
	if err != nil {
		return
	}
	in := bufio.NewReader(conn)
	for i := range 2 {
		if !o.take(in, i > 0) {
			return
		}
		if i == 0 {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	}
	if !o.restarts {
		o.listener.Close() // first, so that a resend finds nobody
	}
	conn.Close()
	const busy = `{"code":"NOT_ACCEPTED"}`
	for {
		conn, err := o.listener.Accept()
		if err != nil {
			return
		}
		if o.take(bufio.NewReader(conn), true) {
			io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: "+strconv.Itoa(len(busy))+"\r\n\r\n"+busy)
		}
		conn.Close()
	}
}

func (o *dyingOwner) take(in *bufio.Reader, decides bool) bool {
	r, err := http.ReadRequest(in)
	if err != nil {
		return false
	}
	io.Copy(io.Discard, r.Body)
	if decides {
		o.decided <- r.Header.Get(HeaderIdempotencyKey) + strings.SplitN(r.Header.Get(headerForwarded), ".", 2)[0]
	}
	return true
}

// A request that an owner may have taken is never sent again behind the client's back, and never called NOT_ACCEPTED.
// net/http sends one again by itself where it has no body and an Idempotency-Key, and its connection served others.
func TestPassOnSendsOnce(t *testing.T) {
	for name, restarts := range map[string]bool{"the owner is gone": false, "the owner is back": true} {
		t.Run(name, func(t *testing.T) {
			owner := newDyingOwner(t, restarts)
			e := serve(t, Options{ForwardKey: []byte("shared")}, func(c echo.Context) error {
				cmd, err := RequestOf(c).NewCommand(named("thing.cancel"))
				if err != nil {
					return err
				}
				_, err = Submit(RequestOf(c), submitFunc(func(decide.Command) (submit.Result, error) {
					return submit.Result{}, &submit.ElsewhereError{URL: "http://" + owner.listener.Addr().String()}
				}), "trading", cmd)
				return err
			})
			first := httptest.NewServer(e)
			defer first.Close()
			post := func(key string) *http.Response {
				r, err := http.NewRequest("POST", first.URL+"/v1/things", nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set(HeaderIdempotencyKey, key)
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				return resp
			}
			resp := post("k1")
			io.Copy(io.Discard, resp.Body) // to the end, so that the connection to the owner is kept
			resp.Body.Close()
			resp = post("k2")
			defer resp.Body.Close()
			answer, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			sent := <-owner.decided
			if !strings.Contains(string(answer), "OUTCOME_UNKNOWN") || !strings.Contains(string(answer), strings.TrimPrefix(sent, "k2")) ||
				!strings.HasPrefix(sent, "k2") {
				t.Errorf("%d %s, the owner decided %s", resp.StatusCode, answer, sent)
			}
			if n := len(owner.decided); n > 0 {
				t.Errorf("the request was sent %d times more", n)
			}
		})
	}
}
