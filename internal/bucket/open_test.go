package bucket_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/bucket/buckettest"
)

func defaults(url string) bucket.Config {
	var cfg bucket.Config
	cfg.SetDefaults()
	cfg.URL = url
	return cfg
}

func TestOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with space", "new")
	for _, c := range []struct {
		url  string
		want bucket.Bucket
	}{
		{"mem://", &bucket.Memory{}},
		{"file://" + strings.ReplaceAll(dir, " ", "%20"), &bucket.Folder{}},
		{"s3://name", &bucket.S3{}},
		{"s3://name/some/prefix/?endpoint=http://127.0.0.1:9000&region=eu-west-1", &bucket.S3{}},
		{"s3://name?endpoint=https://store.example/", &bucket.S3{}},
	} {
		cfg := defaults(c.url)
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		if b := open(t, cfg); fmt.Sprintf("%T", b) != fmt.Sprintf("%T", c.want) {
			t.Errorf("%s opened a %T, want a %T", c.url, b, c.want)
		}
	}
	buckettest.Put(t, open(t, defaults("file://"+dir)), "a", []byte("x"))
	buckettest.Want(t, openFolder(t, dir), "a", []byte("x"))
}

func TestOpenRefuses(t *testing.T) {
	for url, reason := range map[string]string{
		"":                                   "scheme file, s3 or mem",
		"/some/folder":                       "scheme file, s3 or mem",
		"gs://name":                          "scheme file, s3 or mem",
		"s3://user:hunter2@name":             "without credentials",
		"s3://hunter2%zz":                    "scheme file, s3 or mem",
		"file://relative/folder":             "nothing else",
		"file:folder":                        "full path",
		"file:///folder?x=1":                 "nothing else",
		"mem://name":                         "nothing after it",
		"s3://":                              "s3://BUCKET",
		"s3://name?secret-key=hunter2":       "endpoint and region",
		"s3://name?endpoint=host:9000":       "an endpoint such as",
		"s3://name?endpoint=ftp://host":      "an endpoint such as",
		"s3://name?endpoint=http://host/x":   "an endpoint such as",
		"s3://name?endpoint=http://u:p@host": "an endpoint such as",
		"s3://name/a//b":                     "without empty or dotted segments",
		"s3://name/../b":                     "without empty or dotted segments",
		"s3://ab":                            "shorter than 3",
		"s3://some..name":                    "invalid characters",
	} {
		cfg := defaults(url)
		_, opening := bucket.Open(t.Context(), cfg)
		for what, err := range map[string]error{"open": opening, "validate": cfg.Validate()} {
			if err == nil || !strings.Contains(err.Error(), reason) || strings.Contains(err.Error(), "hunter2@") || strings.Contains(err.Error(), "=hunter2") {
				t.Errorf("%s %q: error %v, want one that says %q and shows no credentials", what, url, err, reason)
			}
		}
	}
}
