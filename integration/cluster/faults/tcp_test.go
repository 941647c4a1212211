package faults

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a server that sends back what it gets, behind a proxy.
func echo(t *testing.T) *TCP {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	p, err := NewTCP("127.0.0.1:0", func(context.Context) (string, error) { return ln.Addr().String(), nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), ln.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

func dial(t *testing.T, p *TCP) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// say sends a text and returns its echo, waiting at most the given time.
func say(conn net.Conn, text string, wait time.Duration) (string, error) {
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	_ = conn.SetReadDeadline(time.Now().Add(wait))
	back := make([]byte, len(text))
	n, err := io.ReadFull(conn, back)
	return string(back[:n]), err
}

func TestPassesOn(t *testing.T) {
	conn := dial(t, echo(t))
	long := strings.Repeat("all of it ", 20_000)
	for _, text := range []string{"a", long} {
		if got, err := say(conn, text, time.Minute); err != nil || got != text {
			t.Errorf("%d bytes came back of %d: %v", len(got), len(text), err)
		}
	}
}

func TestDelayIsWaited(t *testing.T) {
	p := echo(t)
	conn := dial(t, p)
	p.Set(TCPFault{Delay: 50 * time.Millisecond})
	start := time.Now()
	if _, err := say(conn, "a", time.Minute); err != nil || time.Since(start) < 100*time.Millisecond {
		t.Errorf("there and back took %v: %v", time.Since(start), err)
	}
}

func TestDripIsSlow(t *testing.T) {
	p := echo(t)
	conn := dial(t, p)
	p.Set(TCPFault{BytesPerSecond: 1000})
	start := time.Now()
	text := strings.Repeat("x", 300)
	got, err := say(conn, text, time.Minute)
	if err != nil || got != text || time.Since(start) < 300*time.Millisecond {
		t.Errorf("%d bytes took %v: %v", len(got), time.Since(start), err)
	}
}

func TestCutKeepsBackUntilItHeals(t *testing.T) {
	p := echo(t)
	conn := dial(t, p)
	p.Set(TCPFault{Cut: true})
	if got, err := say(conn, "a", 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%q came through: %v", got, err)
	}
	late := dial(t, p)
	if got, err := say(late, "b", 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%q came through a new connection: %v", got, err)
	}
	p.Set(TCPFault{})
	for _, c := range []net.Conn{conn, late} {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Errorf("what was kept back never came: %v", err)
		}
	}
}

func TestResetEndsIdleAndNewConnections(t *testing.T) {
	p := echo(t)
	conn := dial(t, p)
	if _, err := say(conn, "a", time.Minute); err != nil {
		t.Fatal(err)
	}
	p.Set(TCPFault{Reset: true})
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an idle connection ended with %v", err)
	}
	if _, err := say(dial(t, p), "b", time.Minute); err == nil {
		t.Error("a new connection works")
	}
	p.Set(TCPFault{})
	if got, err := say(dial(t, p), "c", time.Minute); err != nil || got != "c" {
		t.Errorf("afterwards: %q, %v", got, err)
	}
}
