package settings

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
)

// PeerServerTLS returns the TLS configuration of the port for other nodes, or nil if its connections are not encrypted.
func (s *Settings) PeerServerTLS() (*tls.Config, error) {
	p := &s.Peer
	switch {
	case p.Cert == "" && p.Key == "":
		return nil, nil
	case p.Cert == "" || p.Key == "":
		return nil, Usagef("--peer-cert-file and --peer-key-file go together")
	case p.Listen == "":
		return nil, Usagef("--peer-cert-file needs --peer-listen")
	}
	load := func() (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(p.Cert, p.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate for other nodes: %w", err)
		}
		return &c, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return load() }}, nil
}

// CheckAdvertise returns an error if other nodes could not reach this one at its URL.
func (s *Settings) CheckAdvertise() error {
	p := &s.Peer
	host, _, err := net.SplitHostPort(p.Listen)
	if err != nil { // there is no such port, or its address is reported elsewhere
		return nil
	}
	if ip := net.ParseIP(host); s.HTTP.Advertise == "" && (host == "" || ip != nil && ip.IsUnspecified()) {
		return Usagef("--peer-listen %s has no host that other nodes could connect to: name this node's URL with --advertise", p.Listen)
	}
	if p.Cert != "" && s.HTTP.Advertise != "" && !strings.HasPrefix(s.HTTP.Advertise, "https://") {
		return Usagef("--advertise takes an https URL if --peer-listen speaks TLS, not %q", s.HTTP.Advertise)
	}
	return nil
}

// PeerClientTLS returns the TLS configuration of connections to other nodes.
func (s *Settings) PeerClientTLS() (*tls.Config, error) { return trusting("--peer-ca-file", s.Peer.CA) }
