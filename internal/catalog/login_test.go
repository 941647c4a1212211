package catalog_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
)

// guarded is an etcd with the user root, and the user trawl that may use /t/.
func guarded(t *testing.T) (endpoint string, root *clientv3.Client) {
	t.Helper()
	e, err := embedded.StartEtcd(t.Context(), etcdConfig(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	root = login(t, e.Endpoint(), "root", func() (string, error) { return "of root", nil })
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := root.UserAdd(ctx, "root", "of root"); return err },
		func(ctx context.Context) error { _, err := root.RoleAdd(ctx, "root"); return err },
		func(ctx context.Context) error { _, err := root.UserGrantRole(ctx, "root", "root"); return err },
		func(ctx context.Context) error { _, err := root.UserAdd(ctx, "trawl", "first"); return err },
		func(ctx context.Context) error { _, err := root.RoleAdd(ctx, "trawl"); return err },
		func(ctx context.Context) error {
			_, err := root.RoleGrantPermission(ctx, "trawl", "/t/", "/t0", clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func(ctx context.Context) error { _, err := root.UserGrantRole(ctx, "trawl", "trawl"); return err },
	} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return e.Endpoint(), root
}

func login(t *testing.T, endpoint, user string, password func() (string, error)) *clientv3.Client {
	t.Helper()
	client, err := catalog.Connect(catalog.Options{Endpoints: []string{endpoint}, Login: &catalog.Login{Username: user, Password: password}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// TestLogin: writes and watches of a client go on when etcd begins to authenticate
// clients, when the password changes and when the session is gone. A wrong password and a
// forbidden key are errors that do not show the password.
func TestLogin(t *testing.T) {
	endpoint, root := guarded(t)
	var password atomic.Pointer[string]
	set := func(p string) { password.Store(&p) }
	set("first")
	client := login(t, endpoint, "trawl", func() (string, error) { return *password.Load(), nil })
	works := func(when string) {
		t.Helper()
		watch, stop := context.WithCancel(t.Context())
		defer stop()
		put, err := client.Put(t.Context(), "/t/key", when)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		for answer := range client.Watch(watch, "/t/", clientv3.WithPrefix(), clientv3.WithRev(put.Header.Revision)) {
			if err := answer.Err(); err != nil {
				t.Fatalf("%s: watch: %v", when, err)
			}
			if len(answer.Events) > 0 {
				break
			}
		}
	}
	works("before etcd asks")
	if _, err := root.AuthEnable(t.Context()); err != nil {
		t.Fatal(err)
	}
	works("when etcd asks")
	if _, err := client.Put(t.Context(), "/other", "x"); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("a key of others: %v", err)
	}

	set("second")
	works("with a session of the first password")
	if _, err := root.UserChangePassword(t.Context(), "trawl", "second"); err != nil {
		t.Fatal(err)
	}
	works("with the second password")

	set("wrong, and secret")
	if _, err := root.UserChangePassword(t.Context(), "trawl", "third"); err != nil {
		t.Fatal(err)
	}
	_, err := client.Put(t.Context(), "/t/key", "x")
	if err == nil || !strings.Contains(err.Error(), `log in to etcd as "trawl"`) || strings.Contains(err.Error(), "secret") {
		t.Errorf("with a wrong password: %v", err)
	}
	set("third")
	works("with the third password")
}

// TestLoginWithoutPassword: if the password cannot be read, the operation ends with
// that error.
func TestLoginWithoutPassword(t *testing.T) {
	gone := errors.New("the file is gone")
	client := login(t, shared.Endpoint(), "trawl", func() (string, error) { return "", gone })
	if _, err := client.Get(t.Context(), "/t/key"); err == nil || !strings.Contains(err.Error(), gone.Error()) {
		t.Errorf("%v", err)
	}
}
