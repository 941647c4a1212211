package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// grantPrefix begins all keys.
const grantPrefix = "/trawl/v1/"

var (
	grantRow = regexp.MustCompile("(?m)^\\| `(trawl-[a-z]+)` \\| (read|read and write) \\| (.*) \\|$")
	grantKey = regexp.MustCompile("`([^`]+)`")
)

// Grant gives a real etcd the user root, and the users, roles and permissions in the table
// of page, the path of docs/security.md. Each role has one user of the same name, whose
// password the function password returns. Then etcd authenticates all clients.
func Grant(ctx context.Context, etcd *clientv3.Client, page string, password func(user string) string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("read the grants: %w", err)
	}
	rows := grantRow.FindAllStringSubmatch(string(text), -1)
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
		for _, key := range grantKey.FindAllStringSubmatch(row[3], -1) {
			from, end := grantPrefix+strings.TrimSuffix(key[1], "*"), ""
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
