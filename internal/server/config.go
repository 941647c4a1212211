package server

import (
	"math"
	"time"

	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/tlsfiles"
)

// Config configures where a role listens, and the limits of its callers. Roles embed
// it, so that its keys are theirs.
type Config struct {
	GRPC string `config:"grpc" doc:"address of the gRPC server, HOST:PORT; port 0 takes a free one"`
	HTTP string `config:"http" doc:"address of the HTTP server (health, readiness, metrics), HOST:PORT"`

	TLS tlsfiles.ServerConfig `config:"tls"`

	MaxRequestBytes  config.Bytes `config:"max-request-bytes" doc:"largest request message, inflated"`
	MaxBodyBytes     config.Bytes `config:"max-body-bytes" doc:"largest body of an HTTP request"`
	MaxResponseBytes config.Bytes `config:"max-response-bytes" doc:"largest response message"`
	MaxStreams       uint32       `config:"max-streams" doc:"calls at once on one connection"`

	MaxConnections           int `config:"max-connections" doc:"most connections to the gRPC server at once, and as many to the HTTP server; more are closed at once"`
	MaxConnectionsPerAddress int `config:"max-connections-per-address" doc:"most of these connections from one IPv4 address or IPv6 /64; a proxy before this role is one address"`

	DrainDelay   time.Duration `config:"drain-delay" doc:"at shutdown, time between reporting not ready and refusing new calls"`
	DrainTimeout time.Duration `config:"drain-timeout" doc:"at shutdown, time that running calls have to end"`
}

// SetDefaults implements config.Settings: loopback only, and a drain that fits into
// the 30 s that Kubernetes allows.
func (c *Config) SetDefaults() {
	*c = Config{
		GRPC: "127.0.0.1:7430", HTTP: "127.0.0.1:7431",
		MaxRequestBytes: 16 * config.MiB, MaxBodyBytes: 8 * config.MiB, MaxResponseBytes: 80 * config.MiB, MaxStreams: 1000,
		MaxConnections: 4000, MaxConnectionsPerAddress: 1000,
		DrainDelay: 3 * time.Second, DrainTimeout: 20 * time.Second,
	}
	c.TLS.SetDefaults()
}

// maxMessage is the largest message that gRPC can frame and whose size fits an int on
// every platform.
const maxMessage config.Bytes = math.MaxInt32

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	check.Address("grpc", c.GRPC)
	check.Address("http", c.HTTP)
	check.Nested("tls", &c.TLS)
	config.Between(&check, "max-request-bytes", c.MaxRequestBytes, config.KiB, maxMessage)
	config.Between(&check, "max-body-bytes", c.MaxBodyBytes, config.KiB, maxMessage)
	config.Between(&check, "max-response-bytes", c.MaxResponseBytes, config.KiB, maxMessage)
	config.Between(&check, "max-streams", c.MaxStreams, 1, 1<<20)
	config.Between(&check, "max-connections", c.MaxConnections, 1, 1<<20)
	config.Between(&check, "max-connections-per-address", c.MaxConnectionsPerAddress, 1, 1<<20)
	config.Between(&check, "drain-delay", c.DrainDelay, 0, 10*time.Minute)
	config.Between(&check, "drain-timeout", c.DrainTimeout, 0, time.Hour)
	return check.Err()
}

// Limits that no operator has had a reason to change.
const (
	// maxHeaderBytes bounds the headers of one gRPC call or HTTP request.
	maxHeaderBytes = 64 << 10
	// handshakeTimeout bounds the start of a gRPC connection.
	handshakeTimeout = 10 * time.Second

	// keepaliveTime is the silence after which either end of a gRPC connection pings the
	// other, keepaliveTimeout how long it waits for the answer. A client may ping no more
	// often than once in keepaliveLeast.
	keepaliveTime    = 20 * time.Second
	keepaliveTimeout = 10 * time.Second
	keepaliveLeast   = 10 * time.Second
	// maxIdle is how long a gRPC connection without a call is kept. A client connects
	// again by itself.
	maxIdle = 10 * time.Minute

	// readHeaderTimeout, readTimeout, writeTimeout and idleTimeout bound HTTP.
	// A handler that streams extends its own by http.ResponseController.
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = time.Minute
	idleTimeout       = 2 * time.Minute
)
