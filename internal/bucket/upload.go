package bucket

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
)

const (
	// partSize is the largest object that is sent in one request, and the least size of
	// the parts of a larger one. A part is sent from memory, so that the request can be
	// repeated.
	partSize = 16 << 20
	// maxParts is how many parts S3 allows.
	maxParts = 10_000
	// abortTime bounds the cleanup of a failed upload.
	abortTime = 10 * time.Second
)

const contentType = "application/octet-stream"

// putWhole sends an object in one request.
func (s *S3) putWhole(ctx context.Context, key string, content io.Reader, opts PutOptions) error {
	whole := bytes.NewBuffer(make([]byte, 0, opts.Size+bytes.MinRead))
	if _, err := whole.ReadFrom(content); err != nil {
		return err
	}
	put := minio.PutObjectOptions{ContentType: contentType}
	if opts.SHA256 != [32]byte{} {
		// The store then checks the digest too.
		put.UserMetadata = map[string]string{"x-amz-checksum-sha256": base64.StdEncoding.EncodeToString(opts.SHA256[:])}
	}
	if opts.IfAbsent {
		put.SetMatchETagExcept("*")
	}
	_, err := s.core.Client.PutObject(ctx, s.bucket, s.prefix+key, bytes.NewReader(whole.Bytes()), opts.Size, put)
	return err
}

// putParts sends an object in parts. The client's own way to do so would forget
// the condition of IfAbsent.
func (s *S3) putParts(ctx context.Context, key string, content io.Reader, opts PutOptions) error {
	create := minio.PutObjectOptions{ContentType: contentType, UserMetadata: map[string]string{"x-amz-checksum-algorithm": "CRC32C"}}
	id, err := s.core.NewMultipartUpload(ctx, s.bucket, s.prefix+key, create)
	if err != nil {
		return err
	}
	parts, err := s.sendParts(ctx, key, id, content, opts.Size)
	if err == nil {
		var complete minio.PutObjectOptions
		if opts.IfAbsent {
			complete.SetMatchETagExcept("*")
		}
		_, err = s.core.CompleteMultipartUpload(ctx, s.bucket, s.prefix+key, id, parts, complete)
	}
	if err != nil {
		return errors.Join(err, s.abort(ctx, key, id))
	}
	return nil
}

// sendParts sends the parts one after the other.
func (s *S3) sendParts(ctx context.Context, key, id string, content io.Reader, size int64) ([]minio.CompletePart, error) {
	each := max(partSize, (size+maxParts-1)/maxParts)
	buf := make([]byte, each)
	var parts []minio.CompletePart
	for {
		n, err := io.ReadFull(content, buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, err
		}
		if n == 0 {
			return parts, nil
		}
		part, err := s.sendPart(ctx, key, id, len(parts)+1, buf[:n])
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", len(parts)+1, err)
		}
		parts = append(parts, part)
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sendPart sends one part with its checksum.
func (s *S3) sendPart(ctx context.Context, key, id string, number int, part []byte) (minio.CompletePart, error) {
	sum := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(part, castagnoli)))
	header := http.Header{}
	header.Set("X-Amz-Checksum-Crc32c", sum)
	sent, err := s.core.PutObjectPart(ctx, s.bucket, s.prefix+key, id, number, bytes.NewReader(part), int64(len(part)),
		minio.PutObjectPartOptions{CustomHeader: header})
	return minio.CompletePart{PartNumber: number, ETag: sent.ETag, ChecksumCRC32C: sum}, err
}

// abort makes the store drop the parts of a failed upload, even if its context has ended.
func (s *S3) abort(ctx context.Context, key, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	if err := s.core.AbortMultipartUpload(ctx, s.bucket, s.prefix+key, id); err != nil {
		return fmt.Errorf("abort the upload: %w", err)
	}
	return nil
}
