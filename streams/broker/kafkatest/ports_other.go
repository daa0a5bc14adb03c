//go:build !linux

package kafkatest

import (
	"context"
	"net"
)

// ReservePort returns a loopback address that was free a moment ago. Only Linux lets a server listen on a port that another
// process has bound.
func ReservePort(ctx context.Context) (address string, release func(), err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	return listener.Addr().String(), func() {}, listener.Close()
}
