package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// S3 is a Bucket in a bucket of S3 or of a compatible store, which must support
// conditional writes (If-None-Match). Requests that fail for a temporary reason are
// repeated with growing pauses. A download resumes where it broke or stalled. An upload
// that was cut off may leave parts behind that never become an object: let a lifecycle
// rule of the store remove them.
type S3 struct {
	core      minio.Core
	transport *http.Transport
	bucket    string
	prefix    string
	limit     int64
	attempts  int
	stall     time.Duration // see stallTime
}

var _ Bucket = (*S3)(nil)

func newS3(t target, cfg Config) (*S3, error) {
	transport, err := minio.DefaultTransport(t.secure)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", t.shown, err)
	}
	core, err := minio.NewCore(t.host, &minio.Options{
		Creds: credentialsOf(cfg), Secure: t.secure, Region: t.region, Transport: transport,
		TrailingHeaders: true, MaxRetries: cfg.Attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", t.shown, err)
	}
	core.SetAppInfo("trawl", "1")
	return &S3{
		core: *core, transport: transport, bucket: t.bucket, prefix: t.prefix,
		limit: cfg.MaxObjectBytes, attempts: cfg.Attempts, stall: stallTime,
	}, nil
}

// credentialsOf takes the keys of the configured file, or finds them as AWS's tools do.
func credentialsOf(cfg Config) *credentials.Credentials {
	if cfg.CredentialsFile != "" {
		return credentials.New(&credentialsFile{FileAWSCredentials: credentials.FileAWSCredentials{Filename: cfg.CredentialsFile, Profile: "default"}})
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
	})
}

// Close drops idle connections.
func (s *S3) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// Put implements Bucket.
func (s *S3) Put(ctx context.Context, key string, r io.Reader, opts PutOptions) error {
	return wrap("put", key, s.put(ctx, key, r, opts))
}

func (s *S3) put(ctx context.Context, key string, r io.Reader, opts PutOptions) error {
	if err := checkPut(key, opts.Size, s.limit); err != nil {
		return err
	}
	if opts.IfAbsent {
		// The store decides in the end; this check saves a useless upload.
		if _, err := s.stat(ctx, key); !errors.Is(err, ErrNotFound) {
			return errors.Join(err, existsIf(err == nil))
		}
	}
	content := newExact(ctx, r, opts)
	var err error
	if opts.Size > partSize {
		err = s.putParts(ctx, key, content, opts)
	} else {
		err = s.putWhole(ctx, key, content, opts)
	}
	return s.outcome(ctx, key, content, err)
}

func existsIf(exists bool) error {
	if exists {
		return ErrExists
	}
	return nil
}

// outcome translates the error of an upload from content.
func (s *S3) outcome(ctx context.Context, key string, content *exact, err error) error {
	switch {
	case content.err != nil && !errors.Is(content.err, io.EOF):
		return content.err // it matters more than any error of the store
	case minio.ToErrorResponse(rootOf(err)).Code == "ConditionalRequestConflict":
		// Someone else wrote the key at the same moment: check who was first.
		_, statErr := s.stat(ctx, key)
		return errors.Join(err, existsIf(statErr == nil))
	}
	return s.meaning(ctx, err)
}

// Get implements Bucket.
func (s *S3) Get(ctx context.Context, key string) (io.ReadCloser, Info, error) {
	d, err := s.download(ctx, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, Info{}, wrap("get", key, err)
	}
	d.end = d.info.Size
	return d, d.info, nil
}

// GetRange implements Bucket.
func (s *S3) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	var get minio.GetObjectOptions
	if off < 0 || n < 1 || off+n < 0 {
		return nil, wrap("get", key, ErrRange)
	}
	if err := get.SetRange(off, off+n-1); err != nil {
		return nil, wrap("get", key, errors.Join(ErrRange, err))
	}
	d, err := s.download(ctx, key, get)
	if err != nil {
		return nil, wrap("get", key, err)
	}
	d.off, d.end = off, off+d.info.Size
	return d, nil
}

// Stat implements Bucket.
func (s *S3) Stat(ctx context.Context, key string) (Info, error) {
	info, err := s.stat(ctx, key)
	return info, wrap("stat", key, err)
}

func (s *S3) stat(ctx context.Context, key string) (Info, error) {
	if err := checkKey(key); err != nil {
		return Info{}, err
	}
	o, err := s.core.StatObject(ctx, s.bucket, s.prefix+key, minio.StatObjectOptions{})
	if err != nil {
		return Info{}, s.meaning(ctx, err)
	}
	return Info{Key: key, Size: o.Size, ModTime: o.LastModified}, nil
}

// List implements Bucket. It holds one page of 1000 keys.
func (s *S3) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(Info{}, wrap("list", prefix, err))
			return
		}
		opts := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}
		for o := range s.core.ListObjectsIter(ctx, s.bucket, opts) {
			if o.Err != nil {
				yield(Info{}, wrap("list", prefix, s.meaning(ctx, o.Err)))
				return
			}
			key := strings.TrimPrefix(o.Key, s.prefix)
			if !isKey(key) {
				continue // not put by a Bucket
			}
			if !yield(Info{Key: key, Size: o.Size, ModTime: o.LastModified}, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Info{}, wrap("list", prefix, err))
		}
	}
}

// Delete implements Bucket.
func (s *S3) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return wrap("delete", key, err)
	}
	err := s.meaning(ctx, s.core.RemoveObject(ctx, s.bucket, s.prefix+key, minio.RemoveObjectOptions{}))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return wrap("delete", key, err)
}

// meaning adds the error of Bucket that an answer of the store means.
func (s *S3) meaning(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	answer := minio.ToErrorResponse(rootOf(err))
	switch {
	case answer.Code == minio.NoSuchKey:
		return ErrNotFound
	case answer.Code == minio.NoSuchBucket:
		return fmt.Errorf("there is no bucket %s: %w", s.bucket, err)
	case answer.StatusCode == http.StatusPreconditionFailed:
		return ErrExists
	case answer.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return ErrRange
	case answer.Code == "BadDigest" || answer.Code == "XAmzContentChecksumMismatch":
		return errors.Join(ErrChecksum, err)
	}
	return err
}

// rootOf finds the store's answer in an error. The client's own function for
// that does not look into wrapped errors.
func rootOf(err error) error {
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return answer
	}
	return err
}
