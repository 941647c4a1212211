package codehost

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/internal/gitsource/origin"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// CheckClone returns an error, for the source's author, if a source may not bring repos
// with a clone URL. Repos are fetched with the credentials of the host in their clone
// URL. A source may therefore bring only repos of its own host, below its own path
// there, and of the hosts in its clone_hosts. They must be cloned over https, unless the
// API is not https either. Since a repo's name begins with its host, the source can
// claim only names below these hosts.
func CheckClone(s *ingestv1.Source, cloneURL string) error {
	if s.GetKind() == Git {
		return nil // the source is the URL
	}
	remote, err := origin.Parse(cloneURL)
	if err != nil {
		return err
	}
	base, err := origin.Parse(strings.TrimSuffix(BaseURL(s), "/") + "/x")
	if err != nil {
		return err
	}
	if remote.Scheme != "https" && (remote.Scheme != "http" || base.Scheme != "http") {
		return fmt.Errorf("it is cloned over %s, but the API of the source uses %s", remote.Scheme, base.Scheme)
	}
	at := remote.HostPort(remote.Host)
	if slices.ContainsFunc(s.GetCloneHosts(), func(h string) bool { return cloneHost(remote.Scheme, h) == at }) {
		return nil
	}
	if at != webHost(s, base) {
		return fmt.Errorf("it is at the host %s, which is not the host of the source: name it in clone_hosts if it is right", at)
	}
	below := strings.TrimSuffix(base.Path, "x")
	if s.GetKind() == GitHub {
		below = strings.TrimSuffix(below, "api/v3/")
	}
	if !strings.HasPrefix(remote.Path, below) {
		return fmt.Errorf("it is not below %s, where the source is", below)
	}
	return nil
}

// webHost is the host to clone from, derived from the API's. GitHub's and Bitbucket's
// clouds have a separate host for the API.
func webHost(s *ingestv1.Source, base origin.Remote) string {
	host := base.Host
	if s.GetKind() == GitHub || s.GetKind() == Bitbucket {
		host = strings.TrimPrefix(host, "api.")
	}
	return base.HostPort(host)
}

// cloneHost is an entry of clone_hosts in the form that clone URLs of the scheme have;
// "" if it is not a host.
func cloneHost(scheme, entry string) string {
	remote, err := origin.Parse(scheme + "://" + entry + "/x")
	if err != nil || strings.ContainsAny(entry, "/@") {
		return ""
	}
	return remote.HostPort(remote.Host)
}

func checkCloneHosts(s *ingestv1.Source) error {
	if s.GetKind() == Git && len(s.GetCloneHosts()) > 0 {
		return fmt.Errorf("clone_hosts: a single URL has none")
	}
	for _, h := range s.GetCloneHosts() {
		if cloneHost("https", h) == "" {
			return fmt.Errorf("clone_hosts: %q is not a host, or HOST:PORT", h)
		}
	}
	return nil
}
