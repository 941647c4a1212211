package searchapi

import (
	"github.com/trawl-search/trawl/index/shard"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Key is the file's place in the total order of results.
func Key(f *searchv1.FileMatch) shard.Key {
	return shard.Key{Score: f.Score, Repo: f.Repo, Path: f.Path, Blob: f.Blob}
}

// KeyFromProto is the place in a message, nil without a message.
func KeyFromProto(k *searchv1.OrderKey) *shard.Key {
	if k == nil {
		return nil
	}
	return &shard.Key{Score: k.Score, Repo: k.Repo, Path: k.Path, Blob: k.Blob}
}

// KeyToProto is the reverse of KeyFromProto.
func KeyToProto(k shard.Key) *searchv1.OrderKey {
	return &searchv1.OrderKey{Score: k.Score, Repo: k.Repo, Path: k.Path, Blob: k.Blob}
}
