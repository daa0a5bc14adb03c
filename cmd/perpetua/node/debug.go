package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// debugServer serves Go's profiles to operators with a shell on this host. It has a separate listener, since a profile
// costs processor time and reveals the command line and the internals of the program.
type debugServer struct {
	listener net.Listener
	server   *http.Server
}

// listenDebug opens the listener. The address must be on the loopback interface: the server does not authenticate its
// clients.
func listenDebug(ctx context.Context, address string) (*debugServer, error) {
	if err := checkDebugAddress(address); err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for debugging: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	// The response has no time limit: the client chooses how many seconds a profile takes.
	return &debugServer{l, &http.Server{Handler: localOnly(mux), ReadHeaderTimeout: 10 * time.Second}}, nil
}

// isLoopback reports whether a host is the loopback interface.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// localOnly refuses requests with another Host: a page in a browser on this machine could otherwise reach the listener
// by a name that resolves to 127.0.0.1.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !isLoopback(host) {
			http.Error(w, "only by the name of the loopback interface", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// url returns the server's URL, or "" if it is off.
func (d *debugServer) url() string {
	if d == nil {
		return ""
	}
	return "http://" + d.listener.Addr().String() + "/debug/pprof/"
}

// serve serves until the context ends.
func (d *debugServer) serve(ctx context.Context) error {
	if d == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { d.close() })
	defer stop()
	if err := d.server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		return fmt.Errorf("serve for debugging: %w", err)
	}
	return nil
}

// close closes the server and ends running profiles.
func (d *debugServer) close() {
	if d != nil {
		d.server.Close()
		d.listener.Close()
	}
}
