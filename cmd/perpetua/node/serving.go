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

	"github.com/perpetua-exchange/perpetua/handlers/apikeys"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// serving is a node's port and what is served there.
type serving struct {
	listener net.Listener
	server   *http.Server
	hub      *live.Hub
	uses     *apikeys.Uses // whichever role met the key
}

// handle makes the server of a handler.
func (s *serving) handle(h http.Handler) {
	// A slow body or reader holds a goroutine for no longer than this. Sockets lift the deadlines when they are upgraded.
	s.server = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	web.Watch(s.server)
}

// serve answers until the server is shut down.
func (s *serving) serve() error {
	if err := s.server.Serve(web.Listen(s.listener)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// shutdown closes the sockets, which would not end by themselves, and then the port, once what was asked is answered.
func (s *serving) shutdown(ctx context.Context, log *slog.Logger) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	s.hub.Close(ending)
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

// URL returns the address under which other nodes reach this one.
func (n *Node) URL() string {
	if n.Settings.Advertise != "" {
		return strings.TrimSuffix(n.Settings.Advertise, "/")
	}
	return "http://" + n.serving.listener.Addr().String()
}

// LocalURL returns an address of this node for clients in the same process, whatever others are told.
func (n *Node) LocalURL() string {
	addr := n.serving.listener.Addr().(*net.TCPAddr)
	if addr.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d", addr.Port)
	}
	return "http://" + addr.String()
}

// DebugURL returns where the profiles are, or "" where they are off.
func (n *Node) DebugURL() string { return n.telemetry.debug.url() }
