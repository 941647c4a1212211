package canary

import (
	"errors"
	"time"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/tlsfiles"
)

// Config holds the settings of a canary.
type Config struct {
	server.Config

	Advertise string        `config:"advertise" doc:"HOST:PORT at which indexers reach this canary's HTTP server; another one for each canary; empty: where it listens"`
	Every     time.Duration `config:"every" doc:"time between two pushes"`
	Router    Router        `config:"router"`
}

// Router is where the canary asks, and as whom.
type Router struct {
	GRPC      string `config:"grpc" doc:"HOST:PORT of a router's gRPC server"`
	HTTP      string `config:"http" doc:"HOST:PORT of its HTTP server"`
	TLS       bool   `config:"tls" doc:"speak TLS with the router; implied by ca-file and cert-file"`
	TokenFile string `config:"token-file" doc:"file with a token that has the scopes search and ingest, and allows the canary's repo, HOST:PORT/trawl/canary; read again for each call; empty: none"`
	Exposed   bool   `config:"plaintext-token" doc:"send the token in plain text, where the router is not on this machine and speaks no TLS"`

	tlsfiles.ClientConfig
}

// SetDefaults implements config.Settings.
func (c *Config) SetDefaults() {
	c.Config.SetDefaults()
	c.GRPC, c.HTTP = "127.0.0.1:7460", "127.0.0.1:7461"
	c.DrainDelay, c.DrainTimeout = 0, 500*time.Millisecond
	c.Every = 30 * time.Second
	c.Router = Router{GRPC: "127.0.0.1:7430", HTTP: "127.0.0.1:7431"}
}

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	if c.Advertise != "" {
		check.Address("advertise", c.Advertise)
	}
	config.Between(&check, "every", c.Every, time.Second, time.Hour)
	for key, address := range map[string]string{"router.grpc": c.Router.GRPC, "router.http": c.Router.HTTP} {
		check.Address(key, address)
		check.That(c.Router.TokenFile == "" || c.Router.encrypted() || c.Router.Exposed || access.Loopback(address), key, address,
			"an address on this machine, since the token would be sent in plain text; or tls; or plaintext-token, if the network is encrypted")
	}
	check.Nested("router", &c.Router.ClientConfig)
	return errors.Join(c.Config.Validate(), check.Err())
}

func (r *Router) encrypted() bool { return r.TLS || r.Set() }
