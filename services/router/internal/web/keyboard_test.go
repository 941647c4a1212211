package web

import (
	"net/http/httptest"
	"testing"
)

// Expressions of the state of a page.
const (
	boxValue  = `document.getElementById("q").value`
	offerText = `[...document.querySelectorAll("#offers li bdi")].map((o) => o.textContent).join(" ")`
	// others are what was loaded from another host.
	others = `performance.getEntriesByType("resource").filter((e) => new URL(e.name).origin !== location.origin).length`
)

// TestCompletionByKeyboard completes a query in a browser, searches, and finds the search again. Signing in again forgets it.
func TestCompletionByKeyboard(t *testing.T) {
	f := pond()
	f.search = defined("FishPond", "FishHook")
	server := httptest.NewServer(f.serve(t, false))
	defer server.Close()
	b := openBrowser(t)
	b.open(server.URL + "/")
	is := func(expression, want string) {
		t.Helper()
		if got := b.eval(expression); got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
	b.typed("r:po")
	b.until(offerText + ` === "host/pond"`)
	is(`document.getElementById("q").getAttribute("aria-expanded")`, "true")
	b.press("ArrowDown")
	is(`document.getElementById(document.getElementById("q").getAttribute("aria-activedescendant")).textContent.trim()`, "host/pond repo")
	b.press("Enter")
	is(boxValue, "r:^host/pond$")
	b.typed(" fis")
	b.until(offerText + ` === "FishPond FishHook"`)
	b.press("ArrowDown", "ArrowDown", "Enter")
	const query = "r:^host/pond$ FishHook"
	is(boxValue, query)
	b.until(`document.querySelector("#offers").hidden`)
	b.press("Enter")
	b.until(`document.title.includes("FishHook") && document.readyState === "complete"`)
	is(others, "0")

	b.open(server.URL + "/?")
	is(boxValue, "")
	b.press("ArrowDown", "ArrowDown")
	is(offerText, query+" Forget all earlier searches")
	b.press("ArrowUp", "Enter")
	is(boxValue, query)
	b.typed(" re")
	b.until(offerText + ` === "repo: ref: regex:"`)
	b.press("Escape")
	is(`document.querySelector("#offers").hidden + " " + (document.activeElement.id === "q")`, "true true")
	b.press("Escape")
	is(`document.activeElement.id === "q"`, "false")

	b.open(server.URL + "/r/host/pond/-/a/fish.go")
	is(`document.querySelector("[data-blame]") === null`, "true") // the software of host/pond is unknown
	b.press("b")
	b.until(`document.querySelector(".said").textContent === "No blame is known for what is open."`)
	b.press("y")
	b.until(`location.pathname.includes("@")`)
	b.until(`document.readyState === "complete"`)
	b.press("y")
	b.until(`document.querySelector(".said").textContent === "This is the permanent address."`)

	locked := httptest.NewServer(f.serve(t, true))
	defer locked.Close()
	b.open(locked.URL + "/login")
	b.eval(`localStorage.setItem("trawl-searches", '["secret"]')`)
	b.open(locked.URL + "/login?")
	is(`localStorage.getItem("trawl-searches")`, "null")
}
