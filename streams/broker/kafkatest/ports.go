package kafkatest

import (
	"net"
	"testing"
)

// Port returns a loopback port for a server that is started later. It is reserved with ReservePort until the test ends.
func Port(t testing.TB) string {
	t.Helper()
	address, release, err := ReservePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}
