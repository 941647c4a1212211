package web

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScreenshots makes the pictures of the README and of docs/web.md anew, of a router at the address TRAWL_TEST_PAGES that has real repos, among
// them github.com/hashicorp/terraform.
func TestScreenshots(t *testing.T) {
	address := os.Getenv("TRAWL_TEST_PAGES")
	if address == "" {
		t.Skip("TRAWL_TEST_PAGES is not set")
	}
	b := openBrowser(t)
	size := func(width, height int) {
		b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	}
	size(1280, 800)
	picture := func(name string) {
		t.Helper()
		var shot struct{ Data string }
		b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
		png, err := base64.StdEncoding.DecodeString(shot.Data)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("../../../../docs/images", name), png, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.open(strings.TrimSuffix(address, "/") + "/?q=context+deadline+lang%3Ago")
	b.until(`document.querySelectorAll("article").length > 3`)
	b.eval(`document.activeElement.blur()`)
	picture("search.png")
	b.eval(`document.getElementById("q").focus()`)
	b.eval(`document.getElementById("q").setSelectionRange(1000, 1000)`)
	b.typed(" sym:new")
	b.until(`document.querySelectorAll("#offers li").length > 3 && !document.querySelector(".waiting")`)
	b.press("ArrowDown", "ArrowDown")
	picture("completion.png")
	b.open(strings.TrimSuffix(address, "/") + "/r/github.com/hashicorp/terraform/-/internal/promising/promise.go")
	b.until(`document.querySelectorAll(".names li").length > 3`)
	size(1480, 900)
	picture("file.png")
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
	size(390, 844)
	b.open(strings.TrimSuffix(address, "/") + "/?q=context+deadline+lang%3Ago")
	b.until(`document.querySelectorAll("article").length > 3`)
	picture("small-dark.png")
}
