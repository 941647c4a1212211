package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/trawl-search/trawl/integration/cluster/faults"
)

func (c *cluster) startEtcd(ctx context.Context) error {
	var members []string
	for i := range c.layout.etcd {
		members = append(members, fmt.Sprintf("etcd%d=http://etcd%d:2380", i, i))
	}
	return c.startMany(ctx, &c.etcd, c.layout.etcd, func(i int) spec {
		name := fmt.Sprintf("etcd%d", i)
		return spec{
			name: name, image: c.images.Etcd, volumes: []string{"/data"}, ports: []string{"2379/tcp"},
			ready: wait.ForHTTP("/health").WithPort("2379/tcp"),
			args: []string{
				"--name", name, "--data-dir", "/data/etcd", "--initial-cluster", strings.Join(members, ","),
				"--listen-client-urls", "http://0.0.0.0:2379", "--advertise-client-urls", "http://" + name + ":2379",
				"--listen-peer-urls", "http://0.0.0.0:2380", "--initial-advertise-peer-urls", "http://" + name + ":2380",
			},
		}
	})
}

// etcdEndpoints returns the endpoints of etcd for the roles.
func (c *cluster) etcdEndpoints() string {
	var list []string
	for _, n := range c.etcd {
		list = append(list, "http://"+n.name+":2379")
	}
	return strings.Join(list, ",")
}

func (c *cluster) startNATS(ctx context.Context) error {
	return c.startMany(ctx, &c.nats, c.layout.nats, c.natsSpec)
}

// natsSpec describes a NATS server that acknowledges a message only once it is on disk.
func (c *cluster) natsSpec(i int) spec {
	name := fmt.Sprintf("nats%d", i)
	config := "server_name: " + name + "\nport: 4222\nhttp: 8222\njetstream { store_dir: /data, sync_interval: always }\n"
	if c.layout.nats > 1 {
		var routes []string
		for j := range c.layout.nats {
			routes = append(routes, fmt.Sprintf("nats://nats%d:6222", j))
		}
		config += "cluster { name: trawl, port: 6222, routes: [" + strings.Join(routes, ", ") + "] }\n"
	}
	return spec{
		name: name, image: c.images.NATS, volumes: []string{"/data"}, ports: []string{"8222/tcp"},
		ready: wait.ForHTTP("/healthz").WithPort("8222/tcp"),
		files: []testcontainers.ContainerFile{{Reader: strings.NewReader(config), ContainerFilePath: "/nats.conf", FileMode: 0o644}},
		args:  []string{"--config", "/nats.conf"},
	}
}

func (c *cluster) natsURL() string {
	var list []string
	for _, n := range c.nats {
		list = append(list, "nats://"+n.name+":4222")
	}
	return strings.Join(list, ",")
}

// objectStore is a bucket of an S3 server.
type objectStore struct {
	endpoint string // http://HOST:PORT for the roles
	access   string
	secret   string
	region   string
	bucket   string
	// admin is a client on this machine; nil before makeBucket.
	admin *minio.Client
	// foreign: the test did not start the server and must clean up after itself.
	foreign bool
}

// startObjects starts an S3 server, unless the environment names one, and makes a bucket.
func (c *cluster) startObjects(ctx context.Context) error {
	o := &c.objects
	o.bucket = fmt.Sprintf("trawl-%x", c.rng.Uint64())
	local := os.Getenv("TRAWL_TEST_S3_ENDPOINT")
	if local != "" {
		o.foreign, o.endpoint = true, local
		o.access, o.secret, o.region = os.Getenv("TRAWL_TEST_S3_ACCESS_KEY"), os.Getenv("TRAWL_TEST_S3_SECRET_KEY"), os.Getenv("TRAWL_TEST_S3_REGION")
	} else {
		o.access, o.secret, o.region = "trawl-test-access", "trawl-test-secret", "us-east-1"
		n, err := c.start(ctx, spec{
			name: "s3", image: c.images.S3, volumes: []string{"/data", "/meta"}, ports: []string{"7070/tcp"},
			env:   map[string]string{"ROOT_ACCESS_KEY_ID": o.access, "ROOT_SECRET_ACCESS_KEY": o.secret},
			args:  []string{"--port", ":7070", "--health", "/health", "--region", o.region, "posix", "--sidecar", "/meta", "/data"},
			ready: wait.ForHTTP("/health").WithPort("7070/tcp"),
		})
		if err != nil {
			return err
		}
		o.endpoint = "http://s3:7070"
		if local, err = n.PortEndpoint(ctx, "7070/tcp", "http"); err != nil {
			return err
		}
	}
	return o.makeBucket(ctx, local)
}

func (o *objectStore) makeBucket(ctx context.Context, endpoint string) (err error) {
	host, secure := strings.CutPrefix(endpoint, "https://")
	host = strings.TrimPrefix(host, "http://")
	o.admin, err = minio.New(host, &minio.Options{Creds: credentials.NewStaticV4(o.access, o.secret, ""), Secure: secure, Region: o.region})
	if err != nil {
		return fmt.Errorf("make a client of %s: %w", endpoint, err)
	}
	if err := o.admin.MakeBucket(ctx, o.bucket, minio.MakeBucketOptions{Region: o.region}); err != nil {
		return fmt.Errorf("make the bucket: %w", err)
	}
	return nil
}

// close removes the bucket from a foreign server.
func (o *objectStore) close(ctx context.Context) error {
	if o.admin == nil || !o.foreign {
		return nil
	}
	var errs []error
	for object := range o.admin.ListObjects(ctx, o.bucket, minio.ListObjectsOptions{Recursive: true}) {
		errs = append(errs, object.Err, o.admin.RemoveObject(ctx, o.bucket, object.Key, minio.RemoveObjectOptions{}))
	}
	return errors.Join(append(errs, o.admin.RemoveBucket(ctx, o.bucket))...)
}

// env returns the environment variables that give a role the bucket.
func (o *objectStore) env(role string) map[string]string {
	return map[string]string{
		"TRAWL_" + role + "_BUCKET_URL": fmt.Sprintf("s3://%s?endpoint=%s&region=%s", o.bucket, o.endpoint, o.region),
		"AWS_ACCESS_KEY_ID":             o.access, "AWS_SECRET_ACCESS_KEY": o.secret,
	}
}

// proxies inject faults between the containers. They run in the test's process.
type proxies struct {
	bucket     *faults.S3
	toSearcher []*faults.TCP
	toEtcd     *faults.TCP
}

// startProxies starts the proxies of the layout. Searchers start only later, so their proxies
// look up the address at each connection.
func (c *cluster) startProxies() {
	c.t.Helper()
	var err error
	if c.layout.faultyBucket {
		c.bucket, err = faults.NewS3(c.listen(), c.objects.admin.EndpointURL().String())
		c.must(err)
		c.objects.endpoint = "http://" + c.bucket.Addr()
	}
	if c.layout.proxiedEtcd {
		c.toEtcd, err = faults.NewTCP(c.listen(), func(ctx context.Context) (string, error) { return c.etcd[0].PortEndpoint(ctx, "2379/tcp", "") })
		c.must(err)
	}
	if c.layout.proxiedSearchers {
		for i := range c.layout.searchers {
			p, err := faults.NewTCP(c.listen(), func(ctx context.Context) (string, error) { return c.searchers[i].PortEndpoint(ctx, "7440/tcp", "") })
			c.must(err)
			c.toSearcher = append(c.toSearcher, p)
		}
	}
}

func (p *proxies) closeProxies() error {
	var errs []error
	if p.bucket != nil {
		errs = append(errs, p.bucket.Close())
	}
	if p.toEtcd != nil {
		errs = append(errs, p.toEtcd.Close())
	}
	for _, proxy := range p.toSearcher {
		errs = append(errs, proxy.Close())
	}
	return errors.Join(errs...)
}
