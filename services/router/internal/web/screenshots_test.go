package web

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScreenshots makes the pictures of the README anew, of a router with the pages of real repos at the address TRAWL_TEST_PAGES.
func TestScreenshots(t *testing.T) {
	address := os.Getenv("TRAWL_TEST_PAGES")
	if address == "" {
		t.Skip("TRAWL_TEST_PAGES is not set")
	}
	b := openBrowser(t)
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": false}, nil)
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
}
