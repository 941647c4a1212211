package cli

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/wait"
)

// awaitReady waits until every role is ready. It is false if ctx ends first.
func awaitReady(ctx context.Context, services map[string]service) bool {
	for _, s := range services {
		for !s.Ready() {
			if !wait.Sleep(ctx, 50*time.Millisecond) {
				return false
			}
		}
	}
	return ctx.Err() == nil
}

// reachable is an address as this machine reaches it: one of all interfaces is
// reached at localhost.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return net.JoinHostPort("localhost", port)
}

// readyLines list the addresses for callers, other processes and people.
func readyLines(services map[string]service, servers *embedded.Embedded, s upSettings) string {
	var parts []string
	if r, ok := services[roleRouter]; ok {
		parts = append(parts, "gRPC "+reachable(r.GRPCAddr()), "HTTP "+reachable(r.HTTPAddr()))
	}
	if s.Etcd.Listen != "" {
		parts = append(parts, "etcd "+servers.Etcd.Endpoint())
	}
	if s.NATS.Listen != "" {
		parts = append(parts, "NATS "+servers.NATS.URL())
	}
	lines := "ready: " + strings.Join(parts, ", ") + "\n"
	if r, ok := services[roleRouter]; ok {
		scheme := "http"
		if s.TLS.Enabled() {
			scheme = "https"
		}
		lines += "page: " + scheme + "://" + reachable(r.HTTPAddr()) + "/\n"
	}
	if s.Access.Asked() { // only this user may enter the folder of the socket
		lines += "tokens: trawl tokens create --etcd-endpoints " + servers.Etcd.Endpoint() + " --name me --allow '**' --scopes search,ingest\n"
	}
	return lines
}
