package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// internal is the prefix of the paths that only other nodes use.
const internal = "/internal/"

// peerPort is a port for other nodes alone. A nil *peerPort is none: other nodes then use the port of the clients.
type peerPort struct {
	listener net.Listener
	server   *http.Server
	secure   bool
}

// openPeerPort opens the port that the settings name, or returns nil.
func openPeerPort(ctx context.Context, s *settings.Settings, network Network, log *slog.Logger) (*peerPort, error) {
	encryption, err := s.PeerServerTLS()
	if err != nil || s.Peer.Listen == "" {
		return nil, err
	}
	l, err := network.listen(ctx, s.Peer.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for other nodes: %w", err)
	}
	p := &peerPort{listener: l, secure: encryption != nil}
	p.server = &http.Server{TLSConfig: encryption, Protocols: nodeProtocols(true), HTTP2: nodeHTTP2(),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, ErrorLog: errorLog(log)}
	return p, nil
}

// nodeProtocols returns the protocols of a port. streams says that nodes open streams of commands over HTTP/2, with TLS or without.
func nodeProtocols(streams bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(streams)
	p.SetUnencryptedHTTP2(streams)
	return p
}

// nodeHTTP2 limits the streams of an HTTP/2 connection: a node opens one on each.
func nodeHTTP2() *http.HTTP2Config { return &http.HTTP2Config{MaxConcurrentStreams: 4} }

// url returns the URL of the port.
func (p *peerPort) url() string {
	if p.secure {
		return "https://" + p.listener.Addr().String()
	}
	return "http://" + p.listener.Addr().String()
}

// serve serves the routes for other nodes until the port is shut down.
func (p *peerPort) serve(e http.Handler) error {
	if p == nil {
		return nil
	}
	p.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, internal) {
			http.NotFound(w, r)
			return
		}
		e.ServeHTTP(w, r)
	})
	err := error(nil)
	if p.secure {
		err = p.server.ServeTLS(p.listener, "", "")
	} else {
		err = p.server.Serve(p.listener)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve other nodes: %w", err)
	}
	return nil
}

// shutdown closes the port once all requests are answered.
func (p *peerPort) shutdown(ctx context.Context) error {
	if p == nil {
		return nil
	}
	err := p.server.Shutdown(ctx)
	if err != nil {
		p.server.Close()
	}
	return err
}

func (p *peerPort) close() {
	if p != nil {
		p.server.Close()
		p.listener.Close()
	}
}

// trust has a client of other nodes use a TLS configuration.
func trust(c *http.Client, encryption *tls.Config) {
	c.Transport.(*http.Transport).TLSClientConfig = encryption.Clone()
}
