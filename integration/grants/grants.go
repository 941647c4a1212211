// Package grants gives an etcd the users, roles and permissions that docs/security.md asks
// for, and turns its authentication on.
package grants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// prefix stands before all keys.
const prefix = "/trawl/v1/"

var (
	row = regexp.MustCompile("(?m)^\\| `(trawl-[a-z]+)` \\| (read|read and write) \\| (.*) \\|$")
	key = regexp.MustCompile("`([^`]+)`")
)

// Apply makes each role of the table in the page docs/security.md, a user of the same name with
// the password that password returns, and the user root; then etcd asks all clients who they are.
func Apply(ctx context.Context, etcd *clientv3.Client, page string, password func(user string) string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("read the grants: %w", err)
	}
	rows := row.FindAllStringSubmatch(string(text), -1)
	if len(rows) == 0 {
		return fmt.Errorf("%s has no table of grants", page)
	}
	errs := []error{addUser(ctx, etcd, "root", password("root"))}
	made := map[string]bool{}
	for _, row := range rows {
		role, kind := row[1], clientv3.PermReadWrite
		if row[2] == "read" {
			kind = clientv3.PermRead
		}
		if !made[role] {
			made[role] = true
			errs = append(errs, addUser(ctx, etcd, role, password(role)))
		}
		for _, key := range key.FindAllStringSubmatch(row[3], -1) {
			from, end := prefix+strings.TrimSuffix(key[1], "*"), ""
			if strings.HasSuffix(key[1], "*") {
				end = clientv3.GetPrefixRangeEnd(from)
			}
			_, err := etcd.RoleGrantPermission(ctx, role, from, end, clientv3.PermissionType(kind))
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("make the users of etcd: %w", err)
	}
	_, err = etcd.AuthEnable(ctx)
	return err
}

// addUser makes a user with a role of the same name.
func addUser(ctx context.Context, etcd *clientv3.Client, name, password string) error {
	_, err := etcd.RoleAdd(ctx, name)
	if err == nil {
		_, err = etcd.UserAdd(ctx, name, password)
	}
	if err == nil {
		_, err = etcd.UserGrantRole(ctx, name, name)
	}
	return err
}
