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

// debugServer is the operator's own listener: Go's profiles, for whoever has a shell on this host. It is apart from the
// public one, since a profile costs processor time and shows the command line and the inside of the program.
type debugServer struct {
	listener net.Listener
	server   *http.Server
}

// listenDebug opens the listener. The address has to be on the loopback interface: nothing here asks who is there.
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
	// No limit on the answer: a profile takes as many seconds as it is asked for.
	return &debugServer{l, &http.Server{Handler: localOnly(mux), ReadHeaderTimeout: 10 * time.Second}}, nil
}

// isLoopback reports whether a host is this one's loopback interface.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// localOnly refuses requests that name another host: a page in a browser on this machine could reach the listener by a
// name of its own that resolves to 127.0.0.1.
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

// url returns where it is, or "" where it is off.
func (d *debugServer) url() string {
	if d == nil {
		return ""
	}
	return "http://" + d.listener.Addr().String() + "/debug/pprof/"
}

// serve answers until the context ends.
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

// close ends it, profiles under way included.
func (d *debugServer) close() {
	if d != nil {
		d.server.Close()
		d.listener.Close()
	}
}
