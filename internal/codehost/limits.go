package codehost

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// maxWait bounds the wait that a host can demand.
const maxWait = 2 * time.Hour

// refusal makes an *Error of a response without a page.
func refusal(resp *http.Response) error {
	wait, said := limited(resp.Header)
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusForbidden && said:
		return &Error{Reason: fmt.Sprintf("the host limits how often it is asked (HTTP %d)", code), RetryAfter: wait}
	case code == http.StatusUnauthorized:
		return trouble("the host refuses the token: it is wrong, expired or revoked (HTTP 401)")
	case code == http.StatusForbidden:
		return trouble("the token may not list these repos (HTTP 403)")
	case code == http.StatusNotFound:
		return trouble("there is no such owner, or it is not visible with this token (HTTP 404)")
	default:
		return &Error{Reason: fmt.Sprintf("the host answered HTTP %d", code), RetryAfter: wait}
	}
}

// nothingLeft fails if the host announced that it will refuse the next request.
func nothingLeft(answer cached, h http.Header) error {
	if wait, said := limited(h); said && answer.next != "" {
		return &Error{Reason: "the host allows no more requests for now", RetryAfter: wait}
	}
	return nil
}

// limited returns how long a host asks to be left alone, from the headers that the
// supported hosts use: a time to wait, or an exhausted quota and when it is reset. Times are by the host's clock.
func limited(h http.Header) (time.Duration, bool) {
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	if after := h.Get("Retry-After"); after != "" {
		if seconds, err := strconv.Atoi(after); err == nil {
			return bound(time.Duration(min(seconds, int(maxWait/time.Second))) * time.Second), true
		}
		if at, err := http.ParseTime(after); err == nil {
			return bound(at.Sub(now)), true
		}
	}
	for _, prefix := range []string{"X-Ratelimit-", "Ratelimit-"} {
		if h.Get(prefix+"Remaining") != "0" {
			continue
		}
		reset, err := strconv.ParseInt(h.Get(prefix+"Reset"), 10, 64)
		if err != nil {
			return time.Minute, true
		}
		return bound(time.Unix(reset, 0).Sub(now)), true
	}
	return 0, false
}

func bound(wait time.Duration) time.Duration { return min(max(wait, time.Second), maxWait) }
