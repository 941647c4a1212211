package testrun

import (
	"net"
	"testing"
)

// TestAddressStaysFree: a server may come, go and come again while others ask for any port.
func TestAddressStaysFree(t *testing.T) {
	at := Address(t)
	for range 3 {
		if conn, err := net.Dial("tcp", at); err == nil {
			conn.Close()
			t.Fatal("somebody listens")
		}
		for range 500 {
			other, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			if other.Addr().String() == at {
				t.Fatal("it was given to somebody else")
			}
		}
		server, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		server.Close()
	}
}
