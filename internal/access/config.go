package access

import (
	"net"
	"net/netip"
	"time"

	"github.com/trawl-search/trawl/internal/config"
)

// The modes of access control.
const (
	// Off admits every caller, on addresses that only this machine reaches.
	Off = "off"
	// Tokens requires a token from every caller of a router, and a seal from every
	// router.
	Tokens = "tokens"
	// Insecure admits every caller from anywhere.
	Insecure = "insecure"
)

// Config configures who may call a role.
type Config struct {
	Mode      string        `config:"mode" doc:"who may call: off (anybody on this machine, on loopback addresses only), tokens (callers with a token of trawl tokens create), insecure (anybody who reaches the address)"`
	Staleness time.Duration `config:"staleness" doc:"how long tokens are accepted while etcd does not answer, and so the longest that a revoked one works unless outage-grace is set"`
	Grace     time.Duration `config:"outage-grace" doc:"how much longer tokens are accepted for searches while etcd does not answer, and a router without etcd is ready; a token that is revoked meanwhile works as long"`
	Hosts     []string      `config:"hosts" doc:"names by which callers over HTTP may address this role in the modes off and insecure, in addition to localhost and IP addresses: other names could be those of web pages"`
}

// SetDefaults implements config.Settings.
func (c *Config) SetDefaults() { *c = Config{Mode: Off, Staleness: 10 * time.Second} }

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	check.OneOf("mode", c.Mode, Off, Tokens, Insecure)
	config.Between(&check, "staleness", c.Staleness, time.Second, 10*time.Minute)
	config.Between(&check, "outage-grace", c.Grace, 0, 24*time.Hour)
	return check.Err()
}

// Asked reports whether callers must identify themselves.
func (c *Config) Asked() bool { return c.Mode == Tokens }

// CheckReach fails for a role that other machines can reach although its callers need not
// identify themselves, unless the mode is Insecure.
func (c *Config) CheckReach(check *config.Check, addresses ...string) {
	for _, address := range addresses {
		check.That(c.Mode != Off || Loopback(address), "access.mode", c.Mode,
			"tokens, since other machines reach "+address+
				" (make the first token by `trawl tokens create`); or insecure, to admit every caller; or loopback addresses")
	}
}

// Loopback reports whether only this machine reaches the address, HOST:PORT. A name
// other than localhost may resolve to any address.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
