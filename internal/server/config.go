package server

import (
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

	// Limits is no setting: each role has its own.
	Limits Limits `config:"-"`

	DrainDelay   time.Duration `config:"drain-delay" doc:"at shutdown, time between reporting not ready and refusing new calls"`
	DrainTimeout time.Duration `config:"drain-timeout" doc:"at shutdown, time that running calls have to end"`
}

// Limits bound what callers may send and hold open. They keep one caller from taking the
// memory of a role; within them an operator has nothing to choose.
type Limits struct {
	// RequestBytes is the largest request message, inflated.
	RequestBytes int
	// BodyBytes is the largest body of an HTTP request.
	BodyBytes int64
	// ResponseBytes is the largest response message: searchapi.LeastResponse or more in roles
	// that answer queries.
	ResponseBytes int
	// Streams is the number of calls at once on one connection.
	Streams uint32
	// Connections is the number of connections to the gRPC server at once, and as many to
	// the HTTP server, divided among addresses: one IPv4 address or IPv6 /64 may have half
	// of them, two a third each, and so on. A proxy before the role is one address. More are
	// closed at once.
	Connections int
	// UnreadBytes bounds the answers that callers have not read, together; internal/delivery
	// divides it among them.
	UnreadBytes int64
	// Patience is how long a caller may take nothing of an answer.
	Patience time.Duration
}

// The limits of every role but for what it changes.
const (
	// maxRequestBytes holds the plan of a query with all of its shards.
	maxRequestBytes = 16 << 20
	// maxBodyBytes holds the webhooks of code hosts, which send megabytes for one push.
	maxBodyBytes = 8 << 20
	// MaxResponseBytes is the largest message of an answer, with room for an answer of
	// searchapi.MaxBytes and what surrounds it.
	MaxResponseBytes = 80 << 20
	// maxStreams is far more than the calls of a router to one searcher.
	maxStreams = 1000
	// maxConnections is far more than the clients of a role need, and bounds its memory for them.
	maxConnections = 4000
	// maxUnreadBytes holds the answers to all calls of a few routers, and twelve of the largest.
	maxUnreadBytes = 1 << 30
	// patience outlasts a short failure of a network.
	patience = 30 * time.Second
)

// SetDefaults implements config.Settings: loopback only, and a drain that fits into
// the 30 s that Kubernetes allows.
func (c *Config) SetDefaults() {
	*c = Config{
		GRPC: "127.0.0.1:7430", HTTP: "127.0.0.1:7431",
		Limits: Limits{
			RequestBytes: maxRequestBytes, BodyBytes: maxBodyBytes, ResponseBytes: MaxResponseBytes, Streams: maxStreams,
			Connections: maxConnections, UnreadBytes: maxUnreadBytes, Patience: patience,
		},
		DrainDelay: 3 * time.Second, DrainTimeout: 20 * time.Second,
	}
	c.TLS.SetDefaults()
}

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	check.Address("grpc", c.GRPC)
	check.Address("http", c.HTTP)
	check.Nested("tls", &c.TLS)
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

	// readHeaderTimeout, readTimeout and idleTimeout bound HTTP. Limits.Patience bounds writing.
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	idleTimeout       = 2 * time.Minute
)
