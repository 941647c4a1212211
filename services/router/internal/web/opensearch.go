package web

import (
	"fmt"
	"html"
	"net/http"

	"github.com/trawl-search/trawl/internal/access"
)

// openSearchPath is where browsers learn how to search from their address bar.
const openSearchPath = "/opensearch.xml"

// description is an OpenSearch description, version 1.1 (https://github.com/dewitt/opensearch).
const description = `<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
  <ShortName>Trawl</ShortName>
  <Description>Search code</Description>
  <InputEncoding>UTF-8</InputEncoding>
  <Url type="text/html" template="%s/?` + queryParam + `={searchTerms}"/>
</OpenSearchDescription>
`

// openSearch describes the search for browsers.
func openSearch(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	w.Header().Set("Content-Type", "application/opensearchdescription+xml")
	fmt.Fprintf(w, description, html.EscapeString(access.Origin(r)))
}
