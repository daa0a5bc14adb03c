package settings

import (
	"crypto/tls"
	"fmt"
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

// PeerClientTLS returns the TLS configuration of connections to other nodes.
func (s *Settings) PeerClientTLS() (*tls.Config, error) { return trusting("peer", s.Peer.CA) }
