package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"mime"
	"net/http"
	"path"
	"sync"
	"time"
)

//go:embed assets templates
var files embed.FS

// assetNames are the files that pages load besides their HTML.
var assetNames = []string{"style.css", "page.js", "icon.svg"}

// asset is a file that pages load.
type asset struct {
	content []byte
	// url has the content's digest, so that browsers can keep the file for ever.
	url string
}

var assets = sync.OnceValue(func() map[string]asset {
	all := map[string]asset{}
	for _, name := range assetNames {
		content, err := files.ReadFile("assets/" + name)
		if err != nil {
			panic(err) //nolint:forbidigo // the file is part of the program
		}
		sum := sha256.Sum256(content)
		all[name] = asset{content, "/assets/" + name + "?v=" + hex.EncodeToString(sum[:8])}
	}
	return all
})

// assetAge is how long browsers keep a file whose address has its digest.
const assetAge = "public, max-age=31536000, immutable"

func serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := assets()[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	protect(w.Header())
	if r.URL.RequestURI() == a.url {
		w.Header().Set("Cache-Control", assetAge)
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.PathValue("name"))))
	if _, err := w.Write(a.content); err != nil {
		return // the reader has gone
	}
}

// templates are the pages by name. Each has the frame of page.html, and a part main, which
// scripts ask for alone. They are parsed when the first is needed: other commands need none.
var templates = sync.OnceValue(func() map[string]*template.Template {
	all := map[string]*template.Template{}
	functions := template.FuncMap{
		"asset":   func(name string) string { return assets()[name].url },
		"grouped": grouped,
		"parted":  parted,
		"clock":   func(t time.Time) string { return t.Format("15:04:05 MST") },
		"stamp":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"plural":  plural[uint64],
	}
	for _, name := range []string{"search", "file", "folder", "repos", "help", "login", "problem", "complete"} {
		all[name] = template.Must(template.New(name).Funcs(functions).ParseFS(files, "templates/page.html", "templates/"+name+".html"))
	}
	return all
})
