package etcdtest

import (
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Copy returns a function that puts the keys of this moment back, with their revisions, as if
// etcd were started on a copy of its disk. As with etcd, watches go on at the
// revision that they have reached, without an error. Leases stay as they are.
func (s *Server) Copy() (goBack func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys, revision := cloneKeys(s.keys), s.revision
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keys, s.revision = cloneKeys(keys), revision
		s.changed.Notify()
	}
}

func cloneKeys(keys map[string][]*mvccpb.KeyValue) map[string][]*mvccpb.KeyValue {
	copied := maps.Clone(keys)
	for name, versions := range copied {
		copied[name] = slices.Clone(versions)
	}
	return copied
}
