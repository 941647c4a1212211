package embedded

import "testing"

// What is acknowledged must be on disk. A test cannot cut the power, so it looks
// at the settings that decide.
func TestWritesAreSynced(t *testing.T) {
	opts, err := natsOptions(Config{}, t.TempDir())
	if err != nil || !opts.SyncAlways {
		t.Errorf("NATS does not sync every write: %v", err)
	}
	conf, err := etcdConfig(Config{}, t.TempDir(), t.TempDir())
	if err != nil || conf.UnsafeNoFsync {
		t.Errorf("etcd does not sync: %v", err)
	}
	if err := conf.Validate(); err != nil {
		t.Errorf("default timing is refused: %v", err)
	}
}
