package projectiontest

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy stands between a pool and its server, so that a test can take the server away.
type Proxy struct {
	listener net.Listener
	server   string
	muted    atomic.Bool
	opened   atomic.Int64

	mu    sync.Mutex
	away  bool
	conns map[net.Conn]bool
	done  sync.WaitGroup
}

// NewProxy returns a proxy of the server at a database URL, and the URL through it.
func NewProxy(t testing.TB, database string) (*Proxy, string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, server: u.Host, conns: make(map[net.Conn]bool)}
	p.done.Add(1)
	go p.serve()
	t.Cleanup(func() {
		_ = l.Close()
		p.Away(true)
		p.done.Wait()
	})
	u.Host = l.Addr().String()
	return p, u.String()
}

// Away cuts every connection and refuses new ones, until it is called with false.
func (p *Proxy) Away(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
	for c := range p.conns {
		if away {
			c.Close()
		}
	}
}

// Mute drops all later answers of the server, as if its machine were lost. No connection ends.
func (p *Proxy) Mute() { p.muted.Store(true) }

// Opened returns the number of connections that clients have opened so far.
func (p *Proxy) Opened() int { return int(p.opened.Load()) }

// answers writes the server's answers to a client, unless the proxy is muted.
type answers struct {
	proxy  *Proxy
	client net.Conn
}

// Write implements io.Writer.
func (a answers) Write(b []byte) (int, error) {
	if a.proxy.muted.Load() {
		return len(b), nil
	}
	return a.client.Write(b)
}

func (p *Proxy) serve() {
	defer p.done.Done()
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.opened.Add(1)
		p.done.Add(1)
		go p.forward(c)
	}
}

func (p *Proxy) forward(client net.Conn) {
	defer p.done.Done()
	defer client.Close()
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.server)
	if err != nil || !p.keep(client, server) {
		return
	}
	defer server.Close()
	p.done.Add(1)
	go func() {
		defer p.done.Done()
		_, _ = io.Copy(server, client)
		server.Close()
	}()
	_, _ = io.Copy(answers{p, client}, server)
}

// keep remembers the connections, or closes them if the server is away.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
		if p.away {
			c.Close()
		}
	}
	return !p.away
}
