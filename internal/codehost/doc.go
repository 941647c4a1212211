// Package codehost reads code hosts. A source names a host, the repos wanted of
// it and their branches; an operator writes sources into a file, and etcd stores
// them. A Client lists a source's repos through the API of GitHub, GitLab, Gitea
// and Forgejo, Bitbucket Cloud and Data Center, or Gerrit. ReadHook decodes the
// webhooks with which these hosts announce pushes.
//
// A dialect holds what differs between hosts: the address of the first page, the
// form of a page, the authorization and the signature of webhooks. Paging,
// conditional requests, rate limits, allowed addresses and the meaning of errors
// are shared.
//
// Sources name secrets and never hold them.
package codehost
