package catalog

import (
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/trawl-search/trawl/internal/tlsfiles"
)

const (
	// keepAliveTime is how long a silent connection to etcd is trusted.
	keepAliveTime = 10 * time.Second
	// keepAliveTimeout is how long an answer to a ping may take.
	keepAliveTimeout = 3 * time.Second
)

// reconnect bounds how long a client may stay away after etcd is back. gRPC's own
// wait grows to two minutes, during which no router could answer.
var reconnect = grpc.ConnectParams{
	Backoff: backoff.Config{
		BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second,
	},
	MinConnectTimeout: 5 * time.Second,
}

// Options configure the connection to etcd.
type Options struct {
	// Endpoints as etcd's clients take them: http://host:port, unix:///path.
	Endpoints []string
	// TLS is for endpoints with https; nil means no certificate, and the CAs of the system.
	TLS *tlsfiles.Client
	// Login is the user to log in as; nil means none.
	Login *Login
}

// Connect makes an etcd client. It does not wait for etcd: the first operation fails if
// etcd is unreachable or refuses the login. The caller closes the client.
func Connect(opts Options) (*clientv3.Client, error) {
	if len(opts.Endpoints) == 0 {
		return nil, errors.New("connect to etcd: no endpoints")
	}
	dial := []grpc.DialOption{grpc.WithConnectParams(reconnect)}
	if opts.TLS != nil {
		dial = append(dial, grpc.WithTransportCredentials(opts.TLS.Credentials()))
	}
	if opts.Login != nil {
		s := &sessions{login: *opts.Login, turn: make(chan struct{}, 1)}
		dial = append(dial, grpc.WithChainUnaryInterceptor(s.unary), grpc.WithChainStreamInterceptor(s.stream))
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            opts.Endpoints,
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		DialOptions:          dial,
		// Failures reach the caller as errors; the client's own log repeats them.
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %q: %w", opts.Endpoints, err)
	}
	return client, nil
}
