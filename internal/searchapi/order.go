package searchapi

import (
	"github.com/trawl-search/trawl/index/search"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Key is the file's place in the total order of results.
func Key(f *searchv1.FileMatch) search.Key {
	return search.Key{Score: f.Score, Repo: f.Repo, Path: f.Path, Blob: f.Blob}
}

// KeyFromProto is the place in a message, nil without a message.
func KeyFromProto(k *searchv1.OrderKey) *search.Key {
	if k == nil {
		return nil
	}
	return &search.Key{Score: k.Score, Repo: k.Repo, Path: k.Path, Blob: k.Blob}
}

// KeyToProto is the reverse of KeyFromProto.
func KeyToProto(k search.Key) *searchv1.OrderKey {
	return &searchv1.OrderKey{Score: k.Score, Repo: k.Repo, Path: k.Path, Blob: k.Blob}
}
