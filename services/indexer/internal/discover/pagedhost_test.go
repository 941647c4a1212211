package discover

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// hostPage is how many repos are on a page of a pagedHost.
const hostPage = 100

// pagedHost lists the organisations large, with n repos, and small, with three, page by page as GitHub does.
type pagedHost struct {
	*httptest.Server
	n int

	// asked counts the requests for pages of large, unsent those answered without a body, and most how many were open at once.
	asked, unsent, open, most atomic.Int64

	mu      sync.Mutex
	trouble string
}

func startPagedHost(t *testing.T, n int) *pagedHost {
	h := &pagedHost{n: n}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

// set sets what is wrong with the list of large from now on: "" is nothing.
//
//	gone         the list is empty
//	half         it ends after half of the repos
//	short        the connection breaks within a page
//	truncated    a page ends early as if that were all
//	unavailable  a page is answered by 503
//	not found    the organisation is answered by 404
func (h *pagedHost) set(trouble string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trouble = trouble
}

// repo is the name of the repo at a path, cloneURL where it is cloned from.
func (h *pagedHost) repo(path string) string {
	return strings.TrimPrefix(h.URL, "http://") + "/" + path
}
func (h *pagedHost) cloneURL(path string) string { return h.URL + "/" + path + ".git" }

// ServeHTTP implements http.Handler.
func (h *pagedHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	owner := strings.Split(r.URL.Path, "/")[2]
	n, trouble := 3, ""
	if owner == "large" {
		h.asked.Add(1)
		if now := h.open.Add(1); now > h.most.Load() {
			h.most.Store(now)
		}
		defer h.open.Add(-1)
		h.mu.Lock()
		n, trouble = h.n, h.trouble
		h.mu.Unlock()
	}
	switch trouble {
	case "gone":
		n = 0
	case "half":
		n /= 2
	case "not found":
		http.Error(w, "no such owner", http.StatusNotFound)
		return
	}
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	if tag := fmt.Sprintf(`"%d of %d"`, page, n); trouble == "" || trouble == "half" || trouble == "gone" {
		w.Header().Set("ETag", tag)
		if (page+1)*hostPage < n {
			w.Header().Set("Link", fmt.Sprintf(`<%s%s?page=%d>; rel="next"`, h.URL, r.URL.Path, page+1))
		}
		if r.Header.Get("If-None-Match") == tag {
			if owner == "large" {
				h.unsent.Add(1)
			}
			w.WriteHeader(http.StatusNotModified)
			return
		}
	} else if page < 3 {
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?page=%d>; rel="next"`, h.URL, r.URL.Path, page+1))
		trouble = ""
	}
	list := []map[string]any{}
	for i := page * hostPage; i < min((page+1)*hostPage, n); i++ {
		path := fmt.Sprintf("%s/r%07d", owner, i)
		list = append(list, map[string]any{"id": 1 + i, "full_name": path, "clone_url": h.cloneURL(path)})
	}
	body, _ := json.Marshal(list)
	switch trouble {
	case "unavailable":
		http.Error(w, "come back later", http.StatusServiceUnavailable)
		return
	case "short":
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		body = body[:len(body)/2]
	case "truncated":
		body = body[:len(body)/2]
	}
	_, _ = w.Write(body)
}
