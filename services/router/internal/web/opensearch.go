package web

import (
	"encoding/xml"
	"net/http"

	"github.com/trawl-search/trawl/internal/access"
)

// openSearchPath is where browsers learn how to search from their address bar.
const openSearchPath = "/opensearch.xml"

// description is an OpenSearch description, version 1.1 (https://github.com/dewitt/opensearch).
type description struct {
	XMLName     xml.Name `xml:"http://a9.com/-/spec/opensearch/1.1/ OpenSearchDescription"`
	ShortName   string
	Description string
	Encoding    string `xml:"InputEncoding"`
	URL         struct {
		Type     string `xml:"type,attr"`
		Template string `xml:"template,attr"`
	} `xml:"Url"`
}

// openSearch describes the search for browsers.
func openSearch(w http.ResponseWriter, r *http.Request) {
	scheme := "http"
	if access.Encrypted(r) {
		scheme = "https"
	}
	d := description{ShortName: "Trawl", Description: "Search code", Encoding: "UTF-8"}
	d.URL.Type, d.URL.Template = "text/html", scheme+"://"+r.Host+"/?"+queryParam+"={searchTerms}"
	text, err := xml.Marshal(d)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	protect(w.Header())
	w.Header().Set("Content-Type", "application/opensearchdescription+xml")
	_, _ = w.Write(append([]byte(xml.Header), text...)) // the reader may have gone
}
