// Package api has the description of the HTTP interface, for programs that make clients of it.
package api

import (
	_ "embed"
	"net/http"
	"strconv"
)

// OpenAPI is the description, in OpenAPI 3.1 as JSON. `make generate` makes it of the protos.
//
//go:embed openapi.json
var OpenAPI []byte

// Path is where a router serves the description.
const Path = "/api/openapi.json"

// Serve answers with the description.
func Serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET is supported", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(OpenAPI)))
	_, _ = w.Write(OpenAPI) // it fails only if the caller has gone
}
