package served

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
	objects "github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/pinned"
)

// ranged has the first queries of a searcher whose shards are only in S3.
type ranged struct {
	cold

	// fetched counts the bytes of objects that the queries of all rounds read, and requests the
	// requests for them.
	fetched, requests int64
}

// Credentials for the S3 gateway, which listens only on loopback.
const (
	accessKey  = "trawl-bench-access"
	secretKey  = "trawl-bench-secret"
	bucketName = "shards"
)

// fetch measures first queries of a searcher whose disk is too small for the shards, so that it reads
// ranges of them from S3. Before each round, the gateway's files are dropped from the page cache.
func (h *host) fetch(ctx context.Context) (err error) {
	if h.cfg.Ranged == 0 {
		return nil
	}
	program, err := pinned.Build(ctx, pinned.Versitygw)
	if err != nil {
		return err
	}
	if err := h.close(); err != nil {
		return err
	}
	files := filepath.Join(h.dir, "s3")
	gateway, err := peer.Gateway(ctx, h.trawlLog, program, files, accessKey, secretKey)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gateway.Close()) }()
	url, err := h.upload(ctx, gateway)
	if err != nil {
		return err
	}
	hosted, err := peer.Trawl(ctx, h.trawlLog, h.cfg.Trawl, h.data(), "--roles", "none", "--etcd-listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hosted.Close()) }()
	router, err := peer.Role(ctx, h.trawlLog, h.cfg.Trawl, "router", hosted.Etcd, nil, "--nats-url", hosted.NATS)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, router.Close()) }()
	roles := separate{router: router, etcd: hosted.Etcd, bucket: url, budget: diskBudget(h.prepared[0].IndexBytes)}
	queries := interleaved(h.queries)
	bar := report.NewProgress(h.cfg.Log, h.corpus.Name+": shards in S3", len(users)*h.cfg.Ranged)
	at := 0
	for _, n := range users {
		r := ranged{cold: cold{name: trawl, users: n}}
		for range h.cfg.Ranged {
			if err := peer.DropCache(files); err != nil {
				return err
			}
			if err := h.fetchRound(ctx, &r, roles, queries, at); err != nil {
				return err
			}
			at += n
			bar.Step(fmt.Sprintf("%d users", n))
		}
		h.ranged = append(h.ranged, r)
	}
	return nil
}

// upload copies the bucket that Trawl wrote to the gateway, and returns its URL there.
func (h *host) upload(ctx context.Context, gateway *peer.Server) (url string, err error) {
	admin, err := minio.New(gateway.HTTP, &minio.Options{Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Region: peer.Region})
	if err != nil {
		return "", fmt.Errorf("making a client of S3: %w", err)
	}
	if err := admin.MakeBucket(ctx, bucketName, minio.MakeBucketOptions{Region: peer.Region}); err != nil {
		return "", fmt.Errorf("making a bucket: %w", err)
	}
	url = fmt.Sprintf("s3://%s?endpoint=http://%s&region=%s", bucketName, gateway.HTTP, peer.Region)
	var from, to objects.Config
	from.SetDefaults()
	to.SetDefaults()
	from.URL = "file://" + filepath.Join(h.data(), "bucket")
	to.URL, to.CredentialsFile = url, filepath.Join(h.dir, "s3-credentials")
	keys := fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", accessKey, secretKey)
	if err := os.WriteFile(to.CredentialsFile, keys, 0o600); err != nil {
		return "", fmt.Errorf("writing the keys of S3: %w", err)
	}
	source, err := objects.Open(ctx, from)
	if err != nil {
		return "", fmt.Errorf("opening the bucket: %w", err)
	}
	target, err := objects.Open(ctx, to)
	if err != nil {
		return "", fmt.Errorf("opening the bucket in S3: %w", err)
	}
	for object, err := range source.List(ctx, "") {
		if err == nil {
			err = copyObject(ctx, source, target, object.Key)
		}
		if err != nil {
			return "", fmt.Errorf("copying the bucket: %w", err)
		}
	}
	return url, nil
}

func copyObject(ctx context.Context, from, to objects.Bucket, key string) (err error) {
	r, info, err := from.Get(ctx, key)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return to.Put(ctx, key, r, objects.PutOptions{Size: info.Size})
}

// Counters for a searcher's requests to the bucket.
var (
	bytesRead  = peer.Series{Name: "trawl_bucket_bytes_total", Label: `direction="read"`}
	rangesRead = peer.Series{Name: "trawl_bucket_calls_total", Label: `op="get_range"`}
)

// separate has the parts that outlive a searcher.
type separate struct {
	router       *peer.Server
	etcd, bucket string
	// budget of the searcher's disk, in bytes.
	budget int64
}

// diskBudget returns a quarter of the index, which has no room for a large shard as a whole, but at
// least what a searcher needs for the parts of a shard that are always read.
func diskBudget(indexBytes int64) int64 { return max(indexBytes/4, 16<<20) }

func (h *host) fetchRound(ctx context.Context, r *ranged, roles separate, queries []string, at int) (err error) {
	cache, err := os.MkdirTemp(h.dir, "searcher-")
	if err != nil {
		return fmt.Errorf("making a folder for shards: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cache)) }()
	s, err := peer.Role(ctx, h.trawlLog, h.cfg.Trawl, "searcher", roles.etcd,
		[]string{"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey},
		"--cache-dir", cache, "--bucket-url", roles.bucket, "--disk-budget", strconv.FormatInt(roles.budget, 10))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := roles.router.AwaitRepos(ctx, len(h.corpus.Repos)); err != nil {
		return err
	}
	before, err := s.Counters(ctx, bytesRead, rangesRead)
	if err != nil {
		return err
	}
	if err := h.together(ctx, &r.cold, roles.router, queries, at); err != nil {
		return err
	}
	after, err := s.Counters(ctx, bytesRead, rangesRead)
	if err != nil {
		return err
	}
	r.fetched += after[0] - before[0]
	r.requests += after[1] - before[1]
	return nil
}
