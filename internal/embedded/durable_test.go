package embedded

import (
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// An acknowledged write must be on disk. A test cannot cut the power, so it checks
// the settings that decide.
func TestWritesAreSynced(t *testing.T) {
	opts, err := natsOptions(Config{}, t.TempDir())
	if err != nil || !opts.SyncAlways {
		t.Errorf("NATS does not sync every write: %v", err)
	}
	conf, err := etcdConfig(Config{}, t.TempDir(), t.TempDir())
	if err != nil || conf.UnsafeNoFsync {
		t.Errorf("etcd does not sync: %v", err)
	}
	conf.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	if err := conf.Validate(); err != nil {
		t.Errorf("default timing is refused: %v", err)
	}
}
