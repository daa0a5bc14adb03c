package node

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// TestThePeerPortHasAURL: other nodes can reach the port for them at the URL that the node names.
func TestThePeerPortHasAURL(t *testing.T) {
	for _, c := range []struct {
		listen, cert, advertise string
		ok                      bool
	}{
		{"", "", "", true},
		{"127.0.0.1:8443", "", "", true},
		{"engine.test:8443", "", "", true},
		{":8443", "", "", false},
		{"0.0.0.0:8443", "", "", false},
		{"[::]:8443", "", "", false},
		{":8443", "", "http://engine.test:8443", true},
		{":8443", "", "https://proxy.test", true},
		{":8443", "cert.pem", "https://engine.test:8443", true},
		{":8443", "cert.pem", "http://engine.test:8443", false},
	} {
		var s settings.Settings
		s.HTTP.Advertise = c.advertise
		s.Peer.Listen, s.Peer.Cert = c.listen, c.cert
		if err := s.CheckAdvertise(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestAPeerPortInUse: a node does not start if another process has its port for other nodes.
func TestAPeerPortInUse(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	s := new(settings.Settings)
	s.HTTP.Listen = "127.0.0.1:0"
	s.Peer.Listen = other.Addr().String()
	if err := CheckPorts(t.Context(), s); err == nil || !strings.Contains(err.Error(), "--peer-listen") {
		t.Errorf("%v", err)
	}
}

// TestPortsCloseTogether: a request on one port does not delay the end of the other.
func TestPortsCloseTogether(t *testing.T) {
	peers := &http.Server{}
	ended, begun := make(chan struct{}), make(chan struct{})
	peers.RegisterOnShutdown(func() { close(ended) })
	clients := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-ended
	}))
	defer clients.Close()
	answered := make(chan error, 1)
	go func() {
		r, err := http.Get(clients.URL)
		if err == nil {
			r.Body.Close()
		}
		answered <- err
	}()
	<-begun
	s := &serving{server: clients.Config, peers: &peerPort{server: peers}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.shutdownPorts(ctx); err != nil {
		t.Error(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
