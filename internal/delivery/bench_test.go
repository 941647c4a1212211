package delivery_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/trawl-search/trawl/internal/delivery"
)

// BenchmarkUnary compares small calls over a TCP connection with what they cost without this package. The time of
// the processor is that of the client and the server.
func BenchmarkUnary(b *testing.B) {
	for _, held := range []bool{false, true} {
		name := map[bool]string{false: "plain", true: "delivery"}[held]
		b.Run(name, func(b *testing.B) {
			client := serve(b, held)
			before := processor(b)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := client.Check(b.Context(), &healthv1.HealthCheckRequest{}); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(processor(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// serve runs a server, whose answers are held until they are read or not, and returns a client of it.
func serve(b *testing.B, held bool) healthv1.HealthClient {
	b.Helper()
	ln, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var options []grpc.ServerOption
	if held {
		answers, err := delivery.New(1<<30, time.Minute, prometheus.NewRegistry())
		if err != nil {
			b.Fatal(err)
		}
		ln = answers.Listener(ln)
		options = append(options, grpc.UnaryInterceptor(answers.Unary), grpc.ForceServerCodecV2(delivery.Codec()))
	}
	s := grpc.NewServer(options...)
	healthv1.RegisterHealthServer(s, health.NewServer())
	go func() { _ = s.Serve(ln) }() // until it is stopped
	b.Cleanup(s.Stop)
	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return healthv1.NewHealthClient(conn)
}

// processor is the time that this process has used of processors.
func processor(b *testing.B) int64 {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
