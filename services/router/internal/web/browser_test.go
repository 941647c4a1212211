package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/testrun"
)

// browser is a page of Debian's chromium, driven over pipes by its own protocol.
type browser struct {
	t       *testing.T
	in      io.Writer
	out     *bufio.Reader
	session string
	calls   int
}

// openBrowser starts a browser, which ends with the test. It skips the test where there is none.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed")
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	theirIn, ourIn, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Minute) // each wait may take minutes
	cmd := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,900",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirs} // 3 and 4, as the protocol has them
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	closeAll(t, theirIn, theirs)
	b := &browser{t: t, in: ourIn, out: bufio.NewReader(ours)}
	t.Cleanup(func() {
		b.call("Browser.close", nil, nil)
		if err := cmd.Wait(); err != nil {
			t.Logf("chromium: %v", err)
		}
		cancel()
		closeAll(t, ourIn, ours)
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	return b
}

func closeAll(t *testing.T, files ...*os.File) {
	t.Helper()
	for _, f := range files {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// call calls a method of the protocol and decodes its result.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	b.calls++
	message := map[string]any{"id": b.calls, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" && !strings.HasPrefix(method, "Browser.") {
		message["sessionId"] = b.session
	}
	encoded, err := json.Marshal(message)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(encoded, 0)); err != nil {
		b.t.Fatal(err)
	}
	for {
		text, err := b.out.ReadBytes(0)
		if err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &answer); err != nil {
			b.t.Fatal(err)
		}
		if answer.ID != b.calls {
			continue // an event
		}
		if answer.Error != nil && method == "Runtime.evaluate" && strings.Contains(answer.Error.Message, "navigated") {
			return // the page made room for another one meanwhile
		}
		if answer.Error != nil {
			b.t.Fatalf("%s: %s", method, answer.Error.Message)
		}
		if result == nil {
			return
		}
		if err := json.Unmarshal(answer.Result, result); err != nil {
			b.t.Fatal(err)
		}
		return
	}
}

// open goes to a page and waits until it is there, and the box that it focuses has the focus: keys go elsewhere before.
func (b *browser) open(address string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": address}, nil)
	b.until(`document.readyState === "complete" && location.href.startsWith(` + quoteJS(address) + `) &&
		(document.querySelector("[autofocus]") ?? document.activeElement) === document.activeElement`)
}

func quoteJS(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return ""
	}
	return string(quoted)
}

// eval is the value of an expression as text. An expression that fails has the value "".
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var answer struct{ Result struct{ Value any } }
	b.call("Runtime.evaluate", map[string]any{"expression": "String(" + expression + ")", "returnByValue": true}, &answer)
	text, _ := answer.Result.Value.(string)
	return text
}

// until waits until an expression holds.
func (b *browser) until(expression string) {
	b.t.Helper()
	testrun.Eventually(b.t, expression, func(context.Context) error {
		if b.eval(expression) == "true" {
			return nil
		}
		return fmt.Errorf("the box has %q", b.eval(`document.getElementById("q")?.value`))
	})
}

// typed types a text, a character a time.
func (b *browser) typed(text string) {
	b.t.Helper()
	for _, c := range text {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "text": string(c), "key": string(c)}, nil)
		b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": string(c)}, nil)
	}
}

// keyCodes are the codes of keys that are not characters.
var keyCodes = map[string]int{"Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40}

// press presses keys.
func (b *browser) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		down := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": keyCodes[key]}
		if key == "Enter" {
			down["text"] = "\r"
		}
		b.call("Input.dispatchKeyEvent", down, nil)
		b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": keyCodes[key]}, nil)
	}
}
