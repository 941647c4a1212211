package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
)

// TestEncodedBodies: a body with an encoding is refused as such before any handler, in whichever header the encoding is.
func TestEncodedBodies(t *testing.T) {
	s := run(t, &service{get: fine}, asIs)
	s.Handle("/x", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, tt := range []struct {
		encodings []string
		want      int
	}{
		{nil, 200}, {[]string{""}, 200}, {[]string{"identity"}, 200}, {[]string{"Identity", ""}, 200},
		{[]string{"gzip"}, 415}, {[]string{"br, gzip"}, 415}, {[]string{"identity", "gzip"}, 415}, {[]string{"", "gzip"}, 415},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.HTTPAddr().String()+"/x", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header["Content-Encoding"] = tt.encodings
		resp, err := s.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != tt.want {
			t.Errorf("%q: %d %s, %v", tt.encodings, resp.StatusCode, text, err)
		}
		if tt.want == http.StatusOK || resp.StatusCode == http.StatusOK {
			continue
		}
		var refusal struct {
			Error, Message string
			Code           codes.Code
		}
		if err := json.Unmarshal(text, &refusal); err != nil || refusal.Code != codes.InvalidArgument || refusal.Error != refusal.Message ||
			!strings.Contains(refusal.Message, "gzip") || resp.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("%q: %s, %v, %v", tt.encodings, text, resp.Header, err)
		}
	}
}
