package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// TestABrowserIsLikeANewOne uses a browser in every way that leaves something behind, and has the next test find nothing of it, at
// the same address.
func TestABrowserIsLikeANewOne(t *testing.T) {
	var asked atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/kept" {
			asked.Add(1)
			w.Header().Set("Cache-Control", "max-age=3600")
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>A page</title><p>A page.")
	}))
	defer site.Close()
	const found = `return [document.cookie, localStorage.length, sessionStorage.length, window.added, matchMedia("(prefers-color-scheme: dark)").matches, innerWidth].join()`
	var c *chromium
	var fresh string
	t.Run("first", func(t *testing.T) {
		b := startBrowser(t)
		c = b.chromium
		b.open(site.URL)
		fresh = b.text(found)
		b.before(`window.added = 1`)
		b.setScreen(400, "dark")
		b.open(site.URL)
		b.text(`document.cookie = "a=1; max-age=3600"; localStorage.a = sessionStorage.a = 1; window.open("/kept"); console.error("here")`)
		b.must(nil, http.MethodPost, "/execute/async", map[string]any{"args": []any{}, "script": `const done = arguments[0]; fetch("/kept").then(() => done())`})
		if now := b.text(found); now == fresh {
			t.Fatalf("nothing is left behind: %s", now)
		}
	})
	before := asked.Load()
	t.Run("second", func(t *testing.T) {
		b := startBrowser(t)
		if b.chromium != c {
			t.Fatal("the browser is not used again")
		}
		b.open(site.URL)
		if now := b.text(found); now != fresh {
			t.Errorf("the page finds %s, and in a new browser %s", now, fresh)
		}
		b.must(nil, http.MethodPost, "/execute/async", map[string]any{"args": []any{}, "script": `const done = arguments[0]; fetch("/kept").then(() => done())`})
		if asked.Load() == before {
			t.Error("the page gets an answer that a former page got")
		}
		var windows []string
		if b.must(&windows, http.MethodGet, "/window/handles", nil); len(windows) != 1 {
			t.Errorf("%d windows are open", len(windows))
		}
		b.wantNoComplaints()
		c.end() // as one that dies while no test uses it
	})
	t.Run("third", func(t *testing.T) {
		b := startBrowser(t)
		b.open(site.URL)
		if now := b.text(found); now != fresh {
			t.Errorf("after one has died, the page finds %s, and in a new browser %s", now, fresh)
		}
	})
}
