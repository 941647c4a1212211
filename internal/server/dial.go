package server

import (
	"fmt"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/telemetry"
	"github.com/trawl-search/trawl/internal/tlsfiles"
)

// ClientConfig configures connections to another role.
type ClientConfig struct {
	// MaxResponseBytes is the largest response message that is accepted; it is no setting.
	MaxResponseBytes int `config:"-"`

	TLS tlsfiles.RoleConfig `config:"tls"`
}

// SetDefaults implements config.Settings.
func (c *ClientConfig) SetDefaults() {
	*c = ClientConfig{MaxResponseBytes: MaxResponseBytes}
}

// Validate implements config.Settings.
func (c *ClientConfig) Validate() error {
	var check config.Check
	check.Nested("tls", &c.TLS)
	return check.Err()
}

const (
	// connectTimeout bounds one attempt to connect: many round trips of a slow network.
	connectTimeout = 5 * time.Second
	// connectBackoff is the longest pause between attempts, and so how long a server that
	// is back is not called.
	connectBackoff = 5 * time.Second
)

// Dial makes a client of another role at HOST:PORT. It returns at once: the
// connection is made by the first call, and made again whenever it breaks. The calls
// to a host name with several addresses go to each in turn. Dial ignores the
// environment's proxy, because that would see the traffic between roles. Calls
// propagate traces. The transport comes from Transport. The caller closes the
// connection.
func Dial(addr string, cfg ClientConfig, transport credentials.TransportCredentials, tel *telemetry.Telemetry, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("dns:///"+addr, append([]grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`),
		grpc.WithMaxHeaderListSize(maxHeaderBytes),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(cfg.MaxResponseBytes)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: connectBackoff},
			MinConnectTimeout: connectTimeout,
		}),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(
			otelgrpc.WithTracerProvider(tel.TracerProvider()), otelgrpc.WithPropagators(tel.Propagator()),
			otelgrpc.WithFilter(worthTracing))),
	}, more...)...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	return conn, nil
}
