package webhooks

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

// tunnelEnd is the sender's end of a connection to a proxy. It has the request end at a moment, and lets everybody who waits for
// that go first.
type tunnelEnd struct {
	net.Conn
	end      context.CancelFunc
	limiting bool   // the moment is when a limit in the future is set; otherwise when the proxy has answered
	answer   []byte // as far as it is read
}

// SetDeadline implements net.Conn.
func (c *tunnelEnd) SetDeadline(t time.Time) error {
	if c.limiting && t.After(time.Now()) {
		c.end()
		synctest.Wait()
	}
	return c.Conn.SetDeadline(t)
}

// Read implements net.Conn.
func (c *tunnelEnd) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.answer = append(c.answer, p[:n]...); !c.limiting && bytes.HasSuffix(c.answer, []byte("\r\n\r\n")) {
		c.end()
		synctest.Wait()
	}
	return n, err
}

// TestRequestsThatEndAmidAHandshake: a request that ends when the limit of the handshake with the proxy is set does not wait for
// that limit, and one that ends when the proxy has answered has no connection, whose deadline would be set in the past any moment.
func TestRequestsThatEndAmidAHandshake(t *testing.T) {
	for name, c := range map[string]struct {
		limiting bool
		answer   string
	}{
		"when the limit is set":       {limiting: true},
		"when the proxy has answered": {answer: "HTTP/1.1 200 OK\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				near, far := net.Pipe()
				defer near.Close()
				defer far.Close()
				go func() {
					if _, err := http.ReadRequest(bufio.NewReader(far)); err == nil && c.answer != "" {
						_, _ = far.Write([]byte(c.answer))
					}
				}()
				d, began := Dialing{Proxy: &url.URL{Scheme: "http", Host: "proxy"}}, time.Now()
				conn := &tunnelEnd{Conn: near, end: end, limiting: c.limiting}
				if err := d.shake(ctx, conn, "10.0.0.1:443"); err == nil {
					t.Error("there is a connection for a request that is over")
				}
				if waited := time.Since(began); waited > 0 { // by the clock of the bubble, which goes on only while all wait
					t.Errorf("it ended %v after the request", waited)
				}
			})
		})
	}
}
