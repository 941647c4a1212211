package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/testrun"
	"github.com/trawl-search/trawl/internal/tlsfiles/tlstest"
)

func put(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// natsRotation is a secret of NATS: change makes the next one, in the server's options and in
// the files of the configuration.
type natsRotation struct {
	options *server.Options
	cfg     natsConfig
	change  func()
}

func passwordRotation(t *testing.T) *natsRotation {
	r := &natsRotation{options: &server.Options{Username: "trawl"}, cfg: natsConfig{Username: "trawl", PasswordFile: filepath.Join(t.TempDir(), "password")}}
	r.change = func() {
		r.options.Password += "next"
		put(t, r.cfg.PasswordFile, []byte(r.options.Password+"\n"))
	}
	return r
}

// credsRotation revokes each user when the next one is made.
func credsRotation(t *testing.T) *natsRotation {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	keys := func(create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		t.Helper()
		pair, err := create()
		must(err)
		public, err := pair.PublicKey()
		must(err)
		return pair, public
	}
	operator, operatorID := keys(nkeys.CreateOperator)
	account, accountID := keys(nkeys.CreateAccount)
	claims := jwt.NewAccountClaims(accountID)
	accounts := &server.MemAccResolver{}
	trusted := jwt.NewOperatorClaims(operatorID)
	r := &natsRotation{
		options: &server.Options{TrustedOperators: []*jwt.OperatorClaims{trusted}, AccountResolver: accounts},
		cfg:     natsConfig{CredsFile: filepath.Join(t.TempDir(), "trawl.creds")},
	}
	last := ""
	r.change = func() {
		user, userID := keys(nkeys.CreateUser)
		if last != "" {
			claims.RevokeAt(last, time.Now().Add(time.Minute))
		}
		last = userID
		signed, err := claims.Encode(operator)
		must(err)
		must(accounts.Store(accountID, signed))
		token, err := jwt.NewUserClaims(userID).Encode(account)
		must(err)
		seed, err := user.Seed()
		must(err)
		creds, err := jwt.FormatUserConfig(token, seed)
		must(err)
		put(t, r.cfg.CredsFile, creds)
	}
	return r
}

// certificateRotation changes the CA of both ends: the server identifies the client by its
// certificate alone.
func certificateRotation(t *testing.T) *natsRotation {
	r := &natsRotation{options: &server.Options{TLS: true, TLSVerify: true, TLSTimeout: 60}}
	dir := t.TempDir()
	r.cfg.TLS.CAFile = filepath.Join(dir, "ca.pem")
	var mine tlstest.Files
	r.change = func() {
		ca := tlstest.NewCA(t)
		own := ca.Issue("127.0.0.1")
		options, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: own.Cert, KeyFile: own.Key, CaFile: ca.File, Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		r.options.TLSConfig = options
		text, err := os.ReadFile(ca.File)
		if err != nil {
			t.Fatal(err)
		}
		put(t, r.cfg.TLS.CAFile, text)
		if mine == (tlstest.Files{}) {
			mine = ca.Issue("trawl")
			r.cfg.TLS.CertFile, r.cfg.TLS.KeyFile = mine.Cert, mine.Key
		} else {
			ca.IssueTo(mine, time.Hour, "trawl")
		}
	}
	return r
}

// TestSecretsOfNATSAreReadAgain: an existing connection reads its files again, and logs in to a
// server that accepts only the next password, user or CA.
func TestSecretsOfNATSAreReadAgain(t *testing.T) {
	for name, newRotation := range map[string]func(*testing.T) *natsRotation{
		"password": passwordRotation, "creds": credsRotation, "certificates": certificateRotation,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRotation(t)
			port := int(netip.MustParseAddrPort(testrun.Address(t)).Port())
			r.options.Host, r.options.Port, r.options.NoSigs, r.options.NoLog = "127.0.0.1", port, true, true
			r.change()
			s := startNATS(t, r.options)
			r.cfg.URL, r.cfg.Replicas, r.cfg.Prefix = "nats://"+s.Addr().String(), 1, "trawl"
			if err := r.cfg.Validate(); err != nil {
				t.Fatal(err)
			}
			conn, err := r.cfg.connect(slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			connected := func(when string) {
				t.Helper()
				testrun.Eventually(t, "connected "+when, func(context.Context) error {
					if conn.IsConnected() && s.NumClients() > 0 {
						return nil
					}
					return fmt.Errorf("its last error: %w", conn.LastError())
				})
			}
			connected("at the start")
			s.Shutdown()
			s.WaitForShutdown()
			r.change()
			s = startNATS(t, r.options)
			defer s.WaitForShutdown()
			defer s.Shutdown()
			connected("after the change")
		})
	}
}

func startNATS(t *testing.T, options *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(options.Clone()) // it changes them
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("NATS does not start")
	}
	return s
}

// TestNkeyOfNATS: a file that holds only the seed of an nkey logs in too.
func TestNkeyOfNATS(t *testing.T) {
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	public, err := user.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	s := startNATS(t, &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, Nkeys: []*server.NkeyUser{{Nkey: public}}})
	defer s.WaitForShutdown()
	defer s.Shutdown()
	cfg := natsConfig{URL: s.ClientURL(), CredsFile: filepath.Join(t.TempDir(), "nkey")}
	put(t, cfg.CredsFile, append(seed, '\n'))
	conn, err := cfg.connect(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.FlushTimeout(time.Minute); err != nil {
		t.Error(err)
	}
}

// TestPasswordOfEtcdIsReadAgain: an existing client reads the file again, and logs in after the
// password of its user has changed.
func TestPasswordOfEtcdIsReadAgain(t *testing.T) {
	e, err := embedded.StartEtcd(t.Context(), embedded.Config{
		NoSync: true,
		Dir:    t.TempDir(), Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	file := filepath.Join(t.TempDir(), "password")
	cfg := etcdConfig{Endpoints: []string{e.Endpoint()}, Username: "root", PasswordFile: file, Prefix: "/trawl/"}
	put(t, file, []byte("first\n"))
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	client, err := cfg.connect(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := client.UserAdd(ctx, "root", "first"); return err },
		func(ctx context.Context) error { _, err := client.UserGrantRole(ctx, "root", "root"); return err },
		func(ctx context.Context) error { _, err := client.AuthEnable(ctx); return err },
		func(ctx context.Context) error { _, err := client.Put(ctx, "/trawl/a", "first"); return err },
		func(ctx context.Context) error {
			_, err := client.UserChangePassword(ctx, "root", "second")
			return err
		},
	} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Put(t.Context(), "/trawl/a", "stale"); err == nil {
		t.Error("the first password still does")
	}
	put(t, file, []byte("second\n"))
	if _, err := client.Put(t.Context(), "/trawl/a", "second"); err != nil {
		t.Errorf("with the second password: %v", err)
	}
}
