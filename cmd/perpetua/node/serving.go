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
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/handlers/apikeys"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/peer"
)

// serving is a node's ports and the servers on them.
type serving struct {
	listener net.Listener
	server   *http.Server
	echo     *echo.Echo
	peers    *peerPort // nil if other nodes use the port above
	hub      *live.Hub
	uses     *apikeys.Uses // uses of API keys, noted by all roles
	full     func()        // called when a connection has to wait because too many are open
}

// port is the handler of a node's port. Other nodes may speak HTTP/2 on it, for their streams, but no client. If there is a port
// for other nodes, this one does not serve them.
type port struct {
	*echo.Echo
	shared bool // with other nodes
}

// ServeHTTP implements http.Handler.
func (p port) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 && r.URL.Path != peer.Path {
		http.Error(w, "use HTTP/1.1", http.StatusHTTPVersionNotSupported)
		return
	}
	if !p.shared && strings.HasPrefix(r.URL.Path, internal) {
		http.NotFound(w, r)
		return
	}
	p.Echo.ServeHTTP(w, r)
}

// handle creates the server of the port. streams says that it serves streams of commands.
func (s *serving) handle(e *echo.Echo, streams bool, log *slog.Logger) {
	// These limits free a goroutine that a slow client holds. Sockets remove the deadlines when they are upgraded.
	shared := s.peers == nil
	s.echo = e
	s.server = &http.Server{Handler: port{e, shared}, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, ErrorLog: errorLog(log)}
	s.server.Protocols, s.server.HTTP2 = nodeProtocols(streams && shared), nodeHTTP2()
	rest.Watch(s.server)
}

// serve serves until the server is shut down.
func (s *serving) serve() error {
	if err := s.server.Serve(rest.Listen(s.listener, mostConnections(), s.full)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// fullEvery is the shortest time between two warnings about connections that wait.
const fullEvery = time.Minute

// tellFull returns a function that warns that connections wait.
func tellFull(log *slog.Logger) func() {
	var last time.Time // used only by the goroutine that accepts
	return func() {
		if now := time.Now(); now.Sub(last) > fullEvery {
			last = now
			log.Warn("clients wait for a connection, because the limit of open files of this process allows no more", "connections", mostConnections())
		}
	}
}

// servePeers does the same for the port for other nodes.
func (s *serving) servePeers() error { return s.peers.serve(s.echo) }

// shutdown closes the sockets and the streams of other nodes, which would not end otherwise, and then the port, once all
// requests are answered. streams may be nil.
func (s *serving) shutdown(ctx context.Context, streams *peer.Server, log *slog.Logger) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	s.hub.Close(ending)
	if streams != nil {
		streams.Close()
	}
	if err := s.shutdownPorts(ending); err != nil {
		log.Warn("some requests were cut off", "error", err)
		s.server.Close()
	}
}

// shutdownPorts closes the ports, both at the same time, once all requests are answered.
func (s *serving) shutdownPorts(ctx context.Context) error {
	var ports errgroup.Group
	ports.Go(func() error { return s.peers.shutdown(ctx) })
	return errors.Join(s.server.Shutdown(ctx), ports.Wait())
}

func (s *serving) close() {
	if s.server != nil {
		s.server.Close()
	}
	if s.listener != nil {
		s.listener.Close()
	}
	s.peers.close()
}

// URL returns the URL at which other nodes reach this one.
func (n *Node) URL() string {
	if n.Settings.HTTP.Advertise != "" {
		return strings.TrimSuffix(n.Settings.HTTP.Advertise, "/")
	}
	if n.serving.peers != nil {
		return n.serving.peers.url()
	}
	return "http://" + n.serving.listener.Addr().String()
}

// ClientURL returns the URL of this node for clients. Other nodes use the same URL unless they have a separate port.
func (n *Node) ClientURL() string {
	if n.serving.peers != nil {
		return "http://" + n.serving.listener.Addr().String()
	}
	return n.URL()
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
