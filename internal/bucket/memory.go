package bucket

import (
	"bytes"
	"context"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is a Bucket in the memory of the process, for tests and trials.
type Memory struct {
	limit   int64
	mu      sync.Mutex
	objects map[string]memoryObject
}

type memoryObject struct {
	content []byte // never changed
	modTime time.Time
}

var _ Bucket = (*Memory)(nil)

// NewMemory makes an empty bucket whose objects have at most limit bytes each.
func NewMemory(limit int64) *Memory {
	return &Memory{limit: limit, objects: map[string]memoryObject{}}
}

// Put implements Bucket.
func (m *Memory) Put(ctx context.Context, key string, r io.Reader, opts PutOptions) error {
	return wrap("put", key, m.put(ctx, key, r, opts))
}

func (m *Memory) put(ctx context.Context, key string, r io.Reader, opts PutOptions) error {
	if err := checkPut(key, opts.Size, m.limit); err != nil {
		return err
	}
	var content bytes.Buffer
	if _, err := content.ReadFrom(newExact(ctx, r, opts)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, exists := m.objects[key]; exists && opts.IfAbsent {
		return ErrExists
	}
	m.objects[key] = memoryObject{content.Bytes(), time.Now()}
	return nil
}

// find is the object of a key.
func (m *Memory) find(ctx context.Context, key string) (memoryObject, error) {
	if err := checkKey(key); err != nil {
		return memoryObject{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if !ok {
		return o, ErrNotFound
	}
	return o, ctx.Err()
}

// Get implements Bucket.
func (m *Memory) Get(ctx context.Context, key string) (io.ReadCloser, Info, error) {
	o, err := m.find(ctx, key)
	if err != nil {
		return nil, Info{}, wrap("get", key, err)
	}
	return o.open(ctx, 0, int64(len(o.content))), o.info(key), nil
}

// GetRange implements Bucket.
func (m *Memory) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	o, err := m.find(ctx, key)
	if err == nil {
		n, err = clip(off, n, int64(len(o.content)))
	}
	if err != nil {
		return nil, wrap("get", key, err)
	}
	return o.open(ctx, off, n), nil
}

// Stat implements Bucket.
func (m *Memory) Stat(ctx context.Context, key string) (Info, error) {
	o, err := m.find(ctx, key)
	if err != nil {
		return Info{}, wrap("stat", key, err)
	}
	return o.info(key), nil
}

// List implements Bucket. It yields the objects that existed when it started.
func (m *Memory) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield(Info{}, wrap("list", prefix, err))
			return
		}
		for _, info := range m.snapshot(prefix) {
			if err := ctx.Err(); err != nil {
				yield(Info{}, wrap("list", prefix, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (m *Memory) snapshot(prefix string) []Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Info
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		if strings.HasPrefix(key, prefix) {
			list = append(list, m.objects[key].info(key))
		}
	}
	return list
}

// Delete implements Bucket.
func (m *Memory) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return wrap("delete", key, err)
	}
	if err := ctx.Err(); err != nil {
		return wrap("delete", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}

func (o memoryObject) info(key string) Info {
	return Info{Key: key, Size: int64(len(o.content)), ModTime: o.modTime}
}

func (o memoryObject) open(ctx context.Context, off, n int64) io.ReadCloser {
	return boundReader{ctx, bytes.NewReader(o.content[off : off+n]), io.NopCloser(nil)}
}
