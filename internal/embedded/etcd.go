package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

const (
	defaultHeartbeat = 100 * time.Millisecond
	// maxSocketPath is the longest unix socket path that Linux (107) and macOS
	// (103) both take.
	maxSocketPath = 103
	// keptRevisions is how many revisions of history etcd keeps. A watcher that
	// was away for longer lists anew.
	keptRevisions = "10000"
	// storeQuota bounds the etcd database.
	storeQuota = 4 << 30
)

// Etcd is a running embedded etcd with one member. It is safe for concurrent use.
type Etcd struct {
	server   *embed.Etcd
	client   *clientv3.Client
	local    *localKV
	endpoint string
	lock     *os.File
	sockets  string // folder of the unix sockets
	logging  sync.WaitGroup
	closing  atomic.Bool
}

// StartEtcd starts etcd alone on cfg.Dir/etcd and returns when it answers. The
// context bounds the start only.
func StartEtcd(ctx context.Context, cfg Config) (started *Etcd, err error) {
	dir := filepath.Join(cfg.Dir, "etcd")
	e := &Etcd{}
	if e.lock, err = lock(dir); err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	defer func() {
		if err != nil {
			started, err = nil, fmt.Errorf("start etcd: %w", errors.Join(err, e.Close()))
		}
	}()
	if e.sockets, err = socketFolder(dir); err != nil {
		return nil, err
	}
	conf, err := etcdConfig(cfg, dir, e.sockets)
	if err != nil {
		return nil, err
	}
	log := zapCore{logger: cfg.logger().With("server", "etcd"), closing: &e.closing}
	conf.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(log))
	if e.server, err = embed.StartEtcd(conf); err != nil {
		return nil, err
	}
	e.logging.Go(func() { logErrors(cfg.logger(), e.server.Err()) })
	if err := waitReady(ctx, e.server); err != nil {
		return nil, err
	}
	return e, e.connect(conf)
}

// connect makes the client of this process.
func (e *Etcd) connect(conf *embed.Config) error {
	e.endpoint = conf.ListenClientUrls[0].String()
	if conf.ListenClientUrls[0].Scheme == "http" {
		e.endpoint = "http://" + e.server.Clients[0].Addr().String()
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{e.endpoint}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		return err
	}
	e.client, e.local = client, newLocalKV(e.server.Server)
	e.local.use(client)
	return nil
}

// Client returns the etcd client of this process. It ends with Close.
func (e *Etcd) Client() *clientv3.Client { return e.client }

// Endpoint returns the endpoint that clients connect to. It stays the same over
// a restart on the same folder, unless EtcdListen asks for a free port.
func (e *Etcd) Endpoint() string { return e.endpoint }

// Close stops client and server and waits for them. Acknowledged writes are on disk.
// A second call does nothing.
func (e *Etcd) Close() error {
	if e.closing.Swap(true) {
		return nil
	}
	var errs []error
	if e.client != nil {
		e.local.close()
		errs = append(errs, e.client.Close())
	}
	if e.server != nil {
		e.server.Close()
	}
	e.logging.Wait()
	if e.sockets != "" {
		errs = append(errs, os.RemoveAll(e.sockets))
	}
	return errors.Join(append(errs, e.lock.Close())...)
}

// waitReady waits until the member has joined, that is, until writes succeed.
func waitReady(ctx context.Context, server *embed.Etcd) error {
	select {
	case <-server.Server.ReadyNotify():
		return nil
	case <-server.Server.StopNotify():
		return errors.New("server stopped while starting")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func logErrors(logger *slog.Logger, errs <-chan error) {
	for err := range errs {
		logger.Error("embedded etcd failed", "error", err)
	}
}

// socketFolder returns a folder for the sockets that only this user may enter: inside
// dir, or in the system's temporary folder if that path is too long for a socket.
func socketFolder(dir string) (string, error) {
	abs, err := filepath.Abs(filepath.Join(dir, "sockets"))
	if err != nil {
		return "", fmt.Errorf("place sockets: %w", err)
	}
	if len(filepath.Join(abs, "client.sock")) > maxSocketPath {
		return os.MkdirTemp("", "trawl-")
	}
	return abs, os.MkdirAll(abs, 0o700)
}

func etcdConfig(cfg Config, dir, sockets string) (*embed.Config, error) {
	c := embed.NewConfig()
	c.Name = "trawl"
	c.Dir = filepath.Join(dir, "member")
	peers := url.URL{Scheme: "unix", Path: filepath.Join(sockets, "peer.sock")}
	clients := url.URL{Scheme: "unix", Path: filepath.Join(sockets, "client.sock")}
	if cfg.EtcdListen != "" {
		if err := checkLoopback("etcd", cfg.EtcdListen); err != nil {
			return nil, err
		}
		clients = url.URL{Scheme: "http", Host: cfg.EtcdListen}
	}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peers}, []url.URL{peers}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	heartbeat := cmp.Or(cfg.Heartbeat, defaultHeartbeat)
	election := cmp.Or(cfg.Election, 10*heartbeat)
	c.TickMs, c.ElectionMs = uint(heartbeat.Milliseconds()), uint(election.Milliseconds())
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModeRevision, keptRevisions
	c.QuotaBackendBytes = cmp.Or(cfg.Quota, storeQuota)
	c.EnableGRPCGateway = false
	c.UnsafeNoFsync = cfg.NoSync
	return c, nil
}
