package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestDebugListener profiles a venue at the operator's own address, and finds nothing of it at the public one.
func TestDebugListener(t *testing.T) {
	t.Parallel()
	v := startVenue(t, "--debug-listen", "127.0.0.1:0")
	if v.Debug == "" {
		t.Fatal("run.json does not say where the debugging listener is")
	}
	get := func(url, host string) (int, string) {
		r, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(body)
	}
	if status, body := get(v.Debug+"goroutine?debug=1", ""); status != http.StatusOK || !strings.Contains(body, "streams/journal") {
		t.Errorf("the goroutines: %d, %.200s", status, body)
	}
	if status, body := get(v.Debug+"heap", ""); status != http.StatusOK || !strings.HasPrefix(body, "\x1f\x8b") {
		t.Errorf("the heap: %d, no compressed profile", status)
	}
	if status, _ := get(v.Debug, "elsewhere.example"); status != http.StatusForbidden {
		t.Errorf("by another host's name: %d", status)
	}
	if a := v.do("", http.MethodGet, "/debug/pprof/", nil); a.Status != http.StatusNotFound {
		t.Errorf("at the public address: %d", a.Status)
	}
}
