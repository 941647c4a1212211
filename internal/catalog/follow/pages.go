package follow

import clientv3 "go.etcd.io/etcd/client/v3"

// Bounds of a page of a listing in keys, and about how many bytes it has within these.
const (
	leastPage = 500
	mostPage  = 100_000
	pageBytes = 32 << 20
)

// Pages is how many keys to read in the next page of a listing. For each page etcd counts all keys behind it, so that a million keys
// in pages of 500 would keep it busy for minutes. The zero value is for the first page.
type Pages struct{ keys int64 }

// Limit bounds the next page.
func (p Pages) Limit() clientv3.OpOption { return clientv3.WithLimit(max(p.keys, leastPage)) }

// Read takes note of a page: the next one may have as many keys as fill it, if they are like these.
func (p *Pages) Read(page *clientv3.GetResponse) {
	size := 0
	for _, kv := range page.Kvs {
		size += len(kv.Key) + len(kv.Value)
	}
	p.keys = min(int64(len(page.Kvs))*pageBytes/int64(max(size, 1)), mostPage)
}
