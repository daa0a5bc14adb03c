package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/program"
)

// chromium is a Chromium with its chromedriver.
type chromium struct {
	session string // the session's address
	client  http.Client
	end     func() // stops both and waits
}

// idle are the Chromiums that no test uses. To start one costs as much as most tests do.
var idle struct {
	sync.Mutex
	all []*chromium
}

// startBrowser gives a test an empty page, and takes the Chromium back when the test ends. Where none is installed the test is
// skipped.
func startBrowser(t testing.TB) *browser {
	t.Helper()
	c := takeChromium(t)
	t.Cleanup(func() {
		if t.Failed() || c.clear() != nil {
			c.end()
			return
		}
		idle.Lock()
		defer idle.Unlock()
		idle.all = append(idle.all, c)
	})
	return &browser{t, c}
}

// takeChromium returns a Chromium that no test uses, or a new one.
func takeChromium(t testing.TB) *chromium {
	t.Helper()
	for c := idleChromium(); c != nil; c = idleChromium() {
		if c.call(nil, http.MethodGet, "/title", nil) == nil {
			return c
		}
		c.end() // it has died since
	}
	return startChromium(t)
}

func idleChromium() *chromium {
	idle.Lock()
	defer idle.Unlock()
	n := len(idle.all) - 1
	if n < 0 {
		return nil
	}
	c := idle.all[n]
	idle.all = idle.all[:n]
	return c
}

// endBrowsers ends the Chromiums that no test uses.
func endBrowsers() {
	for _, c := range idle.all {
		c.end()
	}
}

// clear puts a new tab in place of the pages, and then deletes what they have left behind. It ends at the first error.
func (c *chromium) clear() (err error) {
	do := func(value any, method, path string, body any) {
		if err == nil {
			err = c.call(value, method, path, body)
		}
	}
	var was []string
	var tab struct{ Handle string }
	do(&was, http.MethodGet, "/window/handles", nil)
	do(&tab, http.MethodPost, "/window/new", map[string]string{"type": "tab"})
	for _, w := range was {
		do(nil, http.MethodPost, "/window", map[string]string{"handle": w})
		do(nil, http.MethodDelete, "/window", nil)
	}
	do(nil, http.MethodPost, "/window", map[string]string{"handle": tab.Handle})
	do(new([]json.RawMessage), http.MethodPost, "/se/log", map[string]string{"type": "browser"}) // what the former pages said
	if err != nil {
		return err
	}
	return errors.Join(c.cdp("Storage.clearCookies", nil), c.cdp("Network.clearBrowserCache", nil),
		c.cdp("Storage.clearDataForOrigin", map[string]any{"origin": "*", "storageTypes": "all"}))
}

// findChromium returns an installed Chromium and the name by which chromedriver starts it. The headless shell has the same
// engine without windows, and takes a quarter less processor time.
func findChromium() (name, binary string) {
	for _, b := range []struct{ name, file string }{
		{"chrome-headless-shell", "chromium-headless-shell"}, {"chrome-headless-shell", "chrome-headless-shell"},
		{"chrome", "chromium"}, {"chrome", "chromium-browser"}, {"chrome", "google-chrome"},
	} {
		if binary, err := exec.LookPath(b.file); err == nil {
			return b.name, binary
		}
	}
	return "", ""
}

// startChromium starts a chromedriver, and has it start a Chromium.
func startChromium(t testing.TB) *chromium {
	t.Helper()
	driver, ok := program.Find(t, "chromedriver")
	name, binary := findChromium()
	if !ok || binary == "" {
		t.Skip("no Chromium with a chromedriver here (Debian: chromium-headless-shell or chromium, chromium-driver)")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "perpetua-browser-")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, driver, profile)
	cmd.Env = append(os.Environ(), asDriver+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's interrupt is for the tests
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err = errors.Join(errIn, errOut); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = os.RemoveAll(profile)
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	port := ""
	for started := regexp.MustCompile(`started successfully on port (\d+)`); port == "" && lines.Scan(); {
		if m := started.FindStringSubmatch(lines.Text()); m != nil {
			port = m[1]
		}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
		}
	}()
	c := &chromium{session: "http://127.0.0.1:" + port, client: http.Client{Timeout: patience}}
	c.end = func() {
		_ = c.call(nil, http.MethodDelete, "", nil)
		_ = in.Close()
		<-drained
		_ = cmd.Wait()
	}
	// What Chromium does with a graphics processor, and the endless animation of the console's light, would keep a processor busy.
	// The headless shell downloads a PDF instead of showing it.
	var made struct{ SessionID string }
	if err := c.call(&made, http.MethodPost, "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"browserName":       name,
		"timeouts":          map[string]int64{"script": patience.Milliseconds(), "implicit": 1000},
		"goog:loggingPrefs": map[string]string{"browser": "ALL"},
		"goog:chromeOptions": map[string]any{"binary": binary, "prefs": map[string]any{"download.default_directory": profile}, "args": []string{"--headless", "--no-sandbox", "--disable-gpu",
			"--disable-gpu-compositing", "--disable-software-rasterizer", "--force-prefers-reduced-motion", "--disable-quic",
			"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
			"--window-size=1400,1000", "--user-data-dir=" + profile}}}}}); err != nil {
		c.end()
		t.Fatal(err)
	}
	c.session += "/session/" + made.SessionID
	return c
}

// call sends a command and reads the value that it is answered with.
func (c *chromium) call(value any, method, path string, body any) error {
	var text []byte
	if method == http.MethodPost {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequest(method, c.session+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	response, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer struct{ Value json.RawMessage }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %d: %.400s", method, path, response.StatusCode, answer.Value)
	}
	if value == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, value)
}

// cdp sends a command of the Chrome DevTools Protocol.
func (c *chromium) cdp(command string, params map[string]any) error {
	if params == nil {
		params = map[string]any{}
	}
	return c.call(nil, http.MethodPost, "/goog/cdp/execute", map[string]any{"cmd": command, "params": params})
}
