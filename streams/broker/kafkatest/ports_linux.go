package kafkatest

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// ReservePort reserves a loopback port for a server that is started later, and perhaps restarted, until release is called. The
// socket that holds it is bound and does not listen, so the system gives the port to no connection and to no server that asks for
// any port. A server that names it can listen if it reuses addresses, as those of Go and Java do.
func ReservePort(context.Context) (address string, release func(), err error) {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, os.NewSyscallError("socket", err)
	}
	release = func() { _ = syscall.Close(socket) }
	port, err := bindLoopback(socket)
	if err != nil {
		release()
		return "", nil, fmt.Errorf("reserve a port: %w", err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), release, nil
}

// bindLoopback binds a socket to any free port and returns the port.
func bindLoopback(socket int) (int, error) {
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	return bound.(*syscall.SockaddrInet4).Port, nil
}
