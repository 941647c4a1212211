package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/trawl-search/trawl/internal/config"
)

// Config configures where objects are kept. The URL never holds credentials.
type Config struct {
	URL             string `config:"url" doc:"where objects are kept: file:///FOLDER, s3://BUCKET[/PREFIX][?endpoint=https://HOST[:PORT]&region=REGION], or mem:// (lost when the process ends)"`
	CredentialsFile string `config:"credentials-file" doc:"file like ~/.aws/credentials whose profile default has the S3 keys, read again when it changes; empty: the keys of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, of ~/.aws/credentials, or of the instance's role"`

	// MaxObjectBytes is the size of the largest object that is written, and Attempts how often
	// a request to S3 is tried before its failure is reported. They are no settings.
	MaxObjectBytes int64 `config:"-"`
	Attempts       int   `config:"-"`
	// Existing refuses a folder that is not there, for what uses a bucket that others have filled. It is no setting.
	Existing bool `config:"-"`
}

const (
	// maxObjectBytes is many times the largest shard. It stops a writer that does not end.
	maxObjectBytes = 16 << 30
	// defaultAttempts takes some seconds with the pauses between: longer than a store takes
	// to move a request elsewhere.
	defaultAttempts = 5
)

// SetDefaults implements config.Settings. The URL has no default.
func (c *Config) SetDefaults() {
	*c = Config{MaxObjectBytes: maxObjectBytes, Attempts: defaultAttempts}
}

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	if t, err := parseURL(c.URL); err != nil {
		check.That(false, "url", t.shown, err.Error())
	}
	return check.Err()
}

// Open opens the bucket of the configuration, which must be valid. A folder is made
// if needed, unless the bucket has to exist. A bucket of S3 must exist. Open does not check that, so that a process
// can start while the store is down. Close releases the bucket's resources.
func Open(_ context.Context, cfg Config) (Bucket, error) {
	t, err := parseURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: want %w", t.shown, err)
	}
	limit := cfg.MaxObjectBytes
	switch t.scheme {
	case "mem":
		return NewMemory(limit), nil
	case "file":
		if _, err := os.Stat(t.path); err != nil && cfg.Existing {
			return nil, fmt.Errorf("open bucket %s, which has to be there already: %w", t.shown, err)
		}
		return OpenFolder(t.path, limit)
	default:
		return newS3(t, cfg)
	}
}

// target is a parsed bucket URL.
type target struct {
	scheme string
	path   string // of a folder
	bucket string
	prefix string // of the keys in S3: empty or ending in a slash
	secure bool   // whether the endpoint uses TLS
	host   string // of the endpoint
	region string
	shown  string // the URL without credentials
}

// defaultEndpoint is where S3 is unless the URL says otherwise.
const defaultEndpoint = "https://s3.amazonaws.com"

// parseURL parses a bucket's URL. The error completes "want …".
func parseURL(raw string) (target, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return target{shown: "[not a URL]"}, errors.New("a URL with the scheme file, s3 or mem")
	}
	t := target{scheme: u.Scheme, shown: (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()}
	if u.User != nil {
		return t, errors.New("a URL without credentials: they have a file, credentials-file")
	}
	switch u.Scheme {
	case "mem":
		return t, requireEmpty("mem:// and nothing after it", u.Host, u.Path, u.RawQuery)
	case "file":
		t.path = path.Clean(u.Path)
		if !strings.HasPrefix(u.Path, "/") {
			return t, errors.New("file:///FOLDER with the folder's full path")
		}
		return t, requireEmpty("file:///FOLDER and nothing else", u.Host, u.RawQuery)
	case "s3":
		return t, t.parseS3(u)
	default:
		return t, errors.New("a URL with the scheme file, s3 or mem")
	}
}

func requireEmpty(want string, parts ...string) error {
	if strings.Join(parts, "") != "" {
		return errors.New(want)
	}
	return nil
}

// parseS3 reads bucket, prefix, endpoint and region.
func (t *target) parseS3(u *url.URL) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || u.Host == "" {
		return errors.New("s3://BUCKET[/PREFIX][?endpoint=…&region=…]")
	}
	endpoint := defaultEndpoint
	for name, values := range query {
		switch name {
		case "endpoint":
			endpoint = values[0]
		case "region":
			t.region = values[0]
		default:
			return errors.New("no other parameters than endpoint and region")
		}
	}
	e, err := url.Parse(endpoint)
	if err != nil || e.Host == "" || e.User != nil || e.Scheme != "https" && e.Scheme != "http" || strings.Trim(e.Path, "/") != "" || e.RawQuery != "" {
		return errors.New("an endpoint such as https://HOST:PORT, without path or credentials")
	}
	if err := s3utils.CheckValidBucketName(u.Host); err != nil {
		return fmt.Errorf("the name of a bucket: %w", err) // no request would be sent
	}
	t.bucket, t.secure, t.host = u.Host, e.Scheme == "https", e.Host
	if prefix := strings.Trim(u.Path, "/"); prefix != "" {
		t.prefix = prefix + "/"
		if path.Clean("/"+prefix) != "/"+prefix {
			return errors.New("a prefix without empty or dotted segments")
		}
	}
	return nil
}
