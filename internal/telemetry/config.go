package telemetry

import (
	"net/url"

	"github.com/trawl-search/trawl/internal/config"
)

// Config configures logs and traces.
type Config struct {
	LogLevel  string `config:"log-level" doc:"least level that is logged: debug, info, warn or error"`
	LogFormat string `config:"log-format" doc:"text or json"`

	OTLPEndpoint  string  `config:"otlp-endpoint" doc:"collector of traces, http://HOST:PORT or https://HOST:PORT (OTLP over gRPC); empty: none"`
	TraceSampling float64 `config:"trace-sampling" doc:"share of traces kept, 0 to 1; callers of routers can have fewer kept, but not more"`
}

// SetDefaults implements config.Settings.
func (c *Config) SetDefaults() {
	*c = Config{LogLevel: "info", LogFormat: "json", TraceSampling: 1}
}

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	check.OneOf("log-level", c.LogLevel, "debug", "info", "warn", "error")
	check.OneOf("log-format", c.LogFormat, "text", "json")
	config.Between(&check, "trace-sampling", c.TraceSampling, 0, 1)
	if c.OTLPEndpoint != "" {
		u, err := url.Parse(c.OTLPEndpoint)
		ok := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Port() != "" && u.User == nil && u.RawQuery == ""
		check.That(ok, "otlp-endpoint", redactURL(u, err, c.OTLPEndpoint), "http://HOST:PORT or https://HOST:PORT, without credentials")
	}
	return check.Err()
}

// redactURL is the URL in a form that may be shown: somebody may have put a password
// in it.
func redactURL(u *url.URL, err error, raw string) string {
	switch {
	case err != nil:
		return "[not a URL]"
	case u.User != nil || u.RawQuery != "":
		return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	default:
		return raw
	}
}
