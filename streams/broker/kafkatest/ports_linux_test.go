package kafkatest_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/broker/kafkatest"
)

// TestAReservedPortIsNobodyElses: a server that names the port can listen on it, end, and listen again. Meanwhile no connection may
// have the port as its own.
func TestAReservedPortIsNobodyElses(t *testing.T) {
	address, release, err := kafkatest.ReservePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	own, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		server, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		server.Close()
		if c, err := (&net.Dialer{LocalAddr: own}).DialContext(t.Context(), "tcp", other.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a connection has the port: %v, %v", c, err)
		}
	}
	release()
	c, err := (&net.Dialer{LocalAddr: own}).DialContext(t.Context(), "tcp", other.Addr().String())
	if err != nil {
		t.Fatalf("after its release: %v", err)
	}
	c.Close()
}
