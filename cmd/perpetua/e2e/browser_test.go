package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// browser is a page of a headless Chromium, driven over the W3C WebDriver protocol as a person would: by keys and clicks.
type browser struct {
	t testing.TB
	*chromium
}

func (b *browser) must(value any, method, path string, body any) {
	b.t.Helper()
	if err := b.call(value, method, path, body); err != nil {
		b.t.Fatal(err)
	}
}

// devtools sends a command of the Chrome DevTools Protocol.
func (b *browser) devtools(command string, params map[string]any) {
	b.t.Helper()
	if err := b.cdp(command, params); err != nil {
		b.t.Fatal(err)
	}
}

// before has a script run in each page before the page's own.
func (b *browser) before(script string) {
	b.t.Helper()
	b.devtools("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": script})
}

// lateAnswers lets an answer come late: once window.late is set, the next one from an address with window.watched in it is that of
// the look before, and comes when window.release is called. While window.paused is set the page does not look by itself.
// window.open counts the requests that are not answered, window.asked those to such addresses.
const lateAnswers = `const ask = window.fetch, every = window.setInterval;
const state = { watched: "", late: false, earlier: null, release: null, paused: false, open: 0, asked: 0 };
window.answers = state;
window.setInterval = (work, milliseconds) => every(() => state.paused || work(), milliseconds);
window.fetch = async (path, options) => {
  const watched = state.watched && options?.method === "GET" && String(path).includes(state.watched);
  const late = watched && state.late;
  if (late) state.late = false;
  if (watched) state.asked++;
  state.open++;
  try {
    const response = await ask(path, options);
    if (!watched) return response;
    const body = await response.text();
    const shown = late ? state.earlier : body;
    if (late) await new Promise((release) => { state.release = release; });
    state.earlier = body;
    return new Response(shown, { status: response.status, headers: response.headers });
  } finally {
    state.open--;
  }
};`

// keepBack does something that has the page look at an address: what it would see there is as it was before, and is kept back.
func (b *browser) keepBack(address string, do func()) {
	b.t.Helper()
	b.text(`Object.assign(answers, { watched: arguments[0], earlier: null, release: null })`, address)
	b.seesScript("what is there before", `return answers.earlier ? "seen" : ""`)
	b.text(`answers.paused = true`)
	b.seesScript("all requests to be answered", `return answers.open ? "" : "they are"`)
	b.text(`answers.late = true`)
	do()
	b.seesScript("the look that is kept back", `return answers.release ? "it is" : ""`)
	b.text(`answers.paused = false`)
}

// release lets the page have what was kept back, and waits until it looks again.
func (b *browser) release() {
	b.t.Helper()
	b.text(`answers.before = answers.asked; answers.release()`)
	b.seesScript("the next look", `return answers.asked > answers.before ? "begun" : ""`)
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.must(nil, http.MethodPost, "/url", map[string]string{"url": url})
}

// back goes back to the page before. A script that went back would leave the next one to a page that the browser then freezes.
func (b *browser) back() {
	b.t.Helper()
	b.must(nil, http.MethodPost, "/back", map[string]any{})
}

// text returns what a script returns, as text.
func (b *browser) text(script string, args ...any) string {
	b.t.Helper()
	if args == nil {
		args = []any{}
	}
	var value any
	b.must(&value, http.MethodPost, "/execute/sync", map[string]any{"script": script, "args": args})
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// readable is the start of a script: shown becomes the text of what its first argument, a selector, finds and a person sees.
const readable = `const shown = [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility()).map((e) => e.innerText).join("\n");`

// shown returns the text of all elements that a selector finds and that are visible.
func (b *browser) shown(selector string) string {
	b.t.Helper()
	return b.text(readable+`return shown`, selector)
}

// sees waits until a person would read each of the texts in what the selector finds.
func (b *browser) sees(selector string, texts ...string) {
	b.t.Helper()
	if !b.until(readable+`return arguments[1].every((text) => shown.includes(text))`, selector, texts) {
		b.t.Fatalf("%s shows %q, want %q; the banner shows %q", selector, b.shown(selector), texts, b.shown("#banner"))
	}
}

// seesNot waits until a text is not to be read any more.
func (b *browser) seesNot(selector, text string) {
	b.t.Helper()
	if !b.until(readable+`return !shown.includes(arguments[1])`, selector, text) {
		b.t.Fatalf("%s shows %q, which has %q; the banner shows %q", selector, b.shown(selector), text, b.shown("#banner"))
	}
}

// seesScript waits until a script returns something.
func (b *browser) seesScript(what, script string) {
	b.t.Helper()
	if !b.until(script) {
		b.t.Fatalf("the page does not have %s; the banner shows %q", what, b.shown("#banner"))
	}
}

// until reports whether a script comes to return something. The page itself runs it again and again, which costs a tenth of asking
// the driver as often.
func (b *browser) until(script string, args ...any) bool {
	b.t.Helper()
	if args == nil {
		args = []any{}
	}
	script = `const done = arguments[arguments.length - 1], given = [...arguments].slice(0, -1), end = performance.now() + 1000;
const look = function () {` + script + `};
const again = () => {
  try {
    if (look(...given)) done("found");
    else if (performance.now() > end) done("");
    else setTimeout(again, 50);
  } catch (e) {
    done(String(e));
  }
};
again();`
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		var outcome string
		if err := b.call(&outcome, http.MethodPost, "/execute/async", map[string]any{"script": script, "args": args}); err != nil {
			<-time.After(20 * time.Millisecond) // the page has been loaded anew
			continue
		}
		switch outcome {
		case "found":
			return true
		case "":
		default:
			b.t.Fatalf("%s: %s", script, outcome)
		}
	}
	return false
}

// element waits for an element to do something with. What the page redraws at that moment is looked for again.
func (b *browser) element(selector string, do func(path string) error) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		var found map[string]string
		err := b.call(&found, http.MethodPost, "/element", map[string]string{"using": "css selector", "value": selector})
		if err == nil {
			for _, id := range found {
				err = do("/element/" + id)
			}
		}
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: %v", selector, err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func (b *browser) click(selector string) {
	b.t.Helper()
	b.element(selector, func(path string) error { return b.call(nil, http.MethodPost, path+"/click", struct{}{}) })
}

// enter is the Enter key.
const enter = "\ue007"

// keys types into a field, after what is in it.
func (b *browser) keys(selector, text string) {
	b.t.Helper()
	b.element(selector, func(path string) error {
		return b.call(nil, http.MethodPost, path+"/value", map[string]string{"text": text})
	})
}

// fill types into a field, in place of what is in it.
func (b *browser) fill(selector, text string) {
	b.t.Helper()
	b.element(selector, func(path string) error { return b.call(nil, http.MethodPost, path+"/clear", struct{}{}) })
	b.keys(selector, text)
}

// paste puts a text into a field in place of what is in it, as from the clipboard.
func (b *browser) paste(selector, text string) {
	b.t.Helper()
	b.element(selector, func(path string) error { return b.call(nil, http.MethodPost, path+"/clear", struct{}{}) })
	b.text(`document.querySelector(arguments[0]).focus(); document.execCommand("insertText", false, arguments[1])`, selector, text)
}

// narrow makes the window that of a telephone.
func (b *browser) narrow() {
	b.t.Helper()
	b.devtools("Emulation.setDeviceMetricsOverride", map[string]any{"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true})
}

// screenshotsVariable names a folder for screenshots of the page, for people to look at; there are none without it.
const screenshotsVariable = "PERPETUA_TEST_SCREENSHOTS"

// screenshot keeps what is shown.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	folder := os.Getenv(screenshotsVariable)
	if folder == "" {
		return
	}
	var encoded string
	b.must(&encoded, http.MethodGet, "/screenshot", nil)
	content, err := base64.StdEncoding.DecodeString(encoded)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), content, 0o600)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// wantNoComplaints reports the complaints of the page as errors.
func (b *browser) wantNoComplaints() {
	b.t.Helper()
	for _, c := range b.complaints() {
		b.t.Errorf("the browser complains: %s", c)
	}
}

// complaints returns what the page's scripts and policy complained of: not of answers that are no success.
func (b *browser) complaints() []string {
	b.t.Helper()
	var entries []struct{ Level, Source, Message string }
	b.must(&entries, http.MethodPost, "/se/log", map[string]string{"type": "browser"})
	var out []string
	for _, e := range entries {
		if e.Level == "SEVERE" && e.Source != "network" {
			out = append(out, e.Source+": "+e.Message)
		}
	}
	return out
}
