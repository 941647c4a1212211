package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/tlsfiles"
)

// etcdConfig holds the address of etcd and the credentials of this process.
type etcdConfig struct {
	Endpoints    []string              `config:"endpoints" doc:"endpoints of etcd, such as http://etcd:2379, or https://etcd:2379 for TLS"`
	Username     string                `config:"username" doc:"user of etcd, with a password; empty: none, or that of the certificate"`
	PasswordFile string                `config:"password-file" doc:"file with the password of that user, read again at each login"`
	TLS          tlsfiles.ClientConfig `config:"tls"`
	Prefix       string                `config:"prefix" doc:"prefix of all keys, the same for all roles and commands of one Trawl; Trawls that share an etcd need different prefixes, none of them a prefix of another, and different buckets"`
}

// SetDefaults implements config.Settings.
func (c *etcdConfig) SetDefaults() {
	*c = etcdConfig{Endpoints: []string{"http://127.0.0.1:2379"}, Prefix: catalog.DefaultPrefix}
}

// Validate implements config.Settings.
func (c *etcdConfig) Validate() error {
	var check config.Check
	check.That(len(c.Endpoints) > 0, "endpoints", c.Endpoints, "at least one endpoint")
	for _, endpoint := range c.Endpoints {
		checkNoUser(&check, "endpoints", endpoint, "etcd.username and etcd.password-file")
		check.That(c.encrypted() == isHTTPS(endpoint), "endpoints", redacted(endpoint), "https:// for all endpoints, or for none")
	}
	check.That(catalog.CheckPrefix(c.Prefix) == nil, "prefix", c.Prefix, "at most 128 bytes like "+catalog.DefaultPrefix)
	check.That((c.Username == "") == (c.PasswordFile == ""), "password-file", c.PasswordFile, "a user and the file with its password, or neither")
	check.That(c.encrypted() || !c.TLS.Set(), "endpoints", strings.Join(c.Endpoints, ","), "https:// with the settings of TLS")
	check.Nested("tls", &c.TLS)
	return check.Err()
}

func isHTTPS(endpoint string) bool { return strings.HasPrefix(endpoint, "https://") }

// encrypted reports whether the connections speak TLS.
func (c *etcdConfig) encrypted() bool { return len(c.Endpoints) > 0 && isHTTPS(c.Endpoints[0]) }

// connect makes the client; it does not wait for etcd.
func (c *etcdConfig) connect(log *slog.Logger) (*clientv3.Client, error) {
	opts := catalog.Options{Endpoints: c.Endpoints}
	if c.encrypted() {
		files, err := tlsfiles.NewClient(c.TLS, log)
		if err != nil {
			return nil, fmt.Errorf("connecting to etcd: %w", err)
		}
		opts.TLS = files
	}
	if c.Username != "" {
		read := func() (string, error) { return readSecret(c.PasswordFile) }
		if _, err := read(); err != nil {
			return nil, fmt.Errorf("connecting to etcd: %w", err)
		}
		opts.Login = &catalog.Login{Username: c.Username, Password: read}
	}
	return catalog.Connect(opts)
}

// etcdPatience is how long a command waits for etcd before it says that there is none.
const etcdPatience = 4 * time.Second

// await makes sure that etcd answers, for commands: roles wait for it as long as it takes.
func (c *etcdConfig) await(ctx context.Context, client *clientv3.Client) error {
	asking, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	_, err := client.Get(asking, c.Prefix)
	if code := status.Code(err); ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || code == codes.DeadlineExceeded || code == codes.Unavailable) {
		return fmt.Errorf("etcd at %s does not answer (%s): does it run, and is this its address? --etcd-endpoints names another one; "+
			"`trawl up --access-mode tokens` prints that of its own, and another `trawl up` shows its etcd with --etcd-listen", strings.Join(c.Endpoints, ","), render.Safe([]byte(err.Error())))
	}
	return nil // it has answered: what it refuses is for the command to say
}

// natsConfig holds the address of NATS and the credentials of this process.
type natsConfig struct {
	URL          string                `config:"url" doc:"URL of NATS, such as nats://nats:4222, or tls://nats:4222; several are separated by commas"`
	Username     string                `config:"username" doc:"user of NATS, with a password"`
	PasswordFile string                `config:"password-file" doc:"file with the password of that user, read again at each login"`
	CredsFile    string                `config:"creds-file" doc:"in place of a user, file with the JWT and the seed of a user of NATS (.creds), read again at each login, or with the seed of an nkey"`
	TLS          tlsfiles.ClientConfig `config:"tls"`
	Replicas     int                   `config:"replicas" doc:"replicas of the streams, in a cluster of NATS servers"`
	Prefix       string                `config:"prefix" doc:"prefix of the names of streams (in upper case) and of subjects, the same for all roles of one Trawl; Trawls that share a NATS need different prefixes"`
}

// SetDefaults implements config.Settings.
func (c *natsConfig) SetDefaults() {
	*c = natsConfig{URL: nats.DefaultURL, Replicas: 1, Prefix: queue.DefaultPrefix}
}

// Validate implements config.Settings.
func (c *natsConfig) Validate() error {
	var check config.Check
	check.NotEmpty("url", c.URL)
	for server := range strings.SplitSeq(c.URL, ",") {
		checkNoUser(&check, "url", server, "nats.username and nats.password-file, or nats.creds-file")
	}
	check.That((c.Username == "") == (c.PasswordFile == ""), "password-file", c.PasswordFile, "a user and the file with its password, or neither")
	check.That(c.Username == "" || c.CredsFile == "", "creds-file", c.CredsFile, "one way to log in: username or creds-file")
	check.Nested("tls", &c.TLS)
	config.Between(&check, "replicas", c.Replicas, 1, 5)
	check.That(queue.CheckPrefix(c.Prefix) == nil, "prefix", c.Prefix, "1 to 64 of a-z, 0-9, - and _")
	return check.Err()
}

// connect makes the connection; it does not wait for NATS.
func (c *natsConfig) connect(log *slog.Logger) (*nats.Conn, error) {
	var options []nats.Option
	switch {
	case c.PasswordFile != "":
		if _, err := readSecret(c.PasswordFile); err != nil {
			return nil, err
		}
		options = append(options, nats.UserInfoHandler(c.login(log)))
	case c.CredsFile != "":
		creds, err := credsOption(c.CredsFile)
		if err != nil {
			return nil, err
		}
		options = append(options, creds)
	}
	if c.TLS.Set() {
		files, err := tlsfiles.NewClient(c.TLS, log)
		if err != nil {
			return nil, err
		}
		options = append(options, queue.TLS(files))
	}
	return queue.Connect(c.URL, options...)
}

// credsOption logs in with a file: with its JWT and seed, or with the seed of an nkey if it
// has no JWT.
func credsOption(path string) (nats.Option, error) {
	text, err := readSecret(path)
	if err != nil {
		return nil, err
	}
	if strings.Contains(text, "BEGIN NATS USER JWT") {
		return nats.UserCredentials(path), nil
	}
	nkey, err := nats.NkeyOptionFromSeed(path)
	if err != nil {
		return nil, fmt.Errorf("nkey of %s: %w", path, err)
	}
	return nkey, nil
}

// login returns a function that logs in with the current password of the file. A file that cannot
// be read is logged; the login fails and is tried again.
func (c *natsConfig) login(log *slog.Logger) func() (user, password string) {
	return func() (string, string) {
		password, err := readSecret(c.PasswordFile)
		if err != nil {
			log.Error("the password of NATS cannot be read", "error", err)
		}
		return c.Username, password
	}
}

// checkNoUser fails for a URL with a user or a password, since logs and errors show URLs.
// Its error shows neither.
func checkNoUser(check *config.Check, key, text, instead string) {
	u, err := url.Parse(text)
	check.That(!strings.Contains(text, "@") && (err != nil || u.User == nil), key, redacted(text), "no user and no password; "+instead+" are for them")
}

// redacted returns a URL without any part that could be a password.
func redacted(text string) string {
	before, host, found := strings.Cut(text, "@")
	if !found {
		return text
	}
	scheme, _, _ := strings.Cut(before, "://")
	return scheme + "://[redacted]@" + host
}

// maxSecretFile bounds a file with a secret, in bytes.
const maxSecretFile = 64 << 10

var errEmptySecret = errors.New("it is empty")

// readSecret reads a secret from its file, less the line end.
func readSecret(path string) (string, error) {
	text, err := config.ReadFile(path, maxSecretFile)
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("read %s: %w", path, errEmptySecret)
	}
	return secret, nil
}
