package bucket

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
)

// Read returns the content of an object, at most that many bytes of it.
func Read(ctx context.Context, b Bucket, key string, most int64) ([]byte, error) {
	content, _, err := b.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	data, err := io.ReadAll(io.LimitReader(content, most))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return data, nil
}

// Digest returns the SHA-256 of the content of an object.
func Digest(ctx context.Context, b Bucket, key string) ([]byte, error) {
	content, _, err := b.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, content); err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return hash.Sum(nil), nil
}
