package testrun

import (
	"net"
	"strconv"
	"syscall"
	"testing"
)

// Address returns an address of the loopback interface that stays free until the end of the test:
// for a server that starts later, in a process of its own, or several times. Until a server listens
// there, connections are refused.
//
// A socket is bound to it that never listens. The kernel then gives the port to nobody who asks for
// any, while a server that names it may listen, as servers in Go set SO_REUSEADDR.
func Address(tb testing.TB) string {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatalf("reserve a port: %v", err)
		}
	}
	syscall.ForkLock.RLock()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	must(err)
	tb.Cleanup(func() { must(syscall.Close(socket)) })
	must(syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	must(syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	at, err := syscall.Getsockname(socket)
	must(err)
	v4, ok := at.(*syscall.SockaddrInet4)
	if !ok {
		tb.Fatalf("reserve a port: bound to %v", at)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(v4.Port))
}
