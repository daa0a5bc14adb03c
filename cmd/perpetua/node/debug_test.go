package node

import "testing"

// TestDebugListenerStaysLocal refuses addresses that others could reach.
func TestDebugListenerStaysLocal(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":6060", "192.0.2.1:6060", "[::]:0", "example.com:6060", "6060"} {
		if d, err := listenDebug(t.Context(), address); err == nil {
			d.close()
			t.Errorf("%s was accepted", address)
		}
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0"} {
		d, err := listenDebug(t.Context(), address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
		}
		d.close()
	}
}
