package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/apikeys"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/peer"
)

// serving is a node's port and the server on it.
type serving struct {
	listener net.Listener
	server   *http.Server
	hub      *live.Hub
	uses     *apikeys.Uses // uses of API keys, noted by all roles
}

// port is the handler of a node's port. Other nodes may speak HTTP/2 on it, for their streams, but no client.
type port struct{ *echo.Echo }

// ServeHTTP implements http.Handler.
func (p port) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 && r.URL.Path != peer.Path {
		http.Error(w, "use HTTP/1.1", http.StatusHTTPVersionNotSupported)
		return
	}
	p.Echo.ServeHTTP(w, r)
}

// handle creates the server of the port. streams says that it serves streams of commands.
func (s *serving) handle(e *echo.Echo, streams bool) {
	// These limits free a goroutine that a slow client holds. Sockets remove the deadlines when they are upgraded.
	s.server = &http.Server{Handler: port{e}, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	s.server.Protocols = new(http.Protocols)
	s.server.Protocols.SetHTTP1(true)
	s.server.Protocols.SetUnencryptedHTTP2(streams)
	s.server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 4} // a node opens one on each connection
	web.Watch(s.server)
}

// serve serves until the server is shut down.
func (s *serving) serve() error {
	if err := s.server.Serve(web.Listen(s.listener)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// shutdown closes the sockets and the streams of other nodes, which would not end otherwise, and then the port, once all
// requests are answered. streams may be nil.
func (s *serving) shutdown(ctx context.Context, streams *peer.Server, log *slog.Logger) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	s.hub.Close(ending)
	if streams != nil {
		streams.Close()
	}
	if err := s.server.Shutdown(ending); err != nil {
		log.Warn("some requests were cut off", "error", err)
		s.server.Close()
	}
}

func (s *serving) close() {
	if s.server != nil {
		s.server.Close()
	}
	if s.listener != nil {
		s.listener.Close()
	}
}

// URL returns the URL at which other nodes reach this one.
func (n *Node) URL() string {
	if n.Settings.Advertise != "" {
		return strings.TrimSuffix(n.Settings.Advertise, "/")
	}
	return "http://" + n.serving.listener.Addr().String()
}

// LocalURL returns a URL of this node for clients in the same process, independent of the advertised one.
func (n *Node) LocalURL() string {
	addr := n.serving.listener.Addr().(*net.TCPAddr)
	if addr.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d", addr.Port)
	}
	return "http://" + addr.String()
}

// DebugURL returns the URL of the profiles, or "" if they are off.
func (n *Node) DebugURL() string { return n.telemetry.debug.url() }
