package e2e

import (
	"net/http"
	"testing"
	"time"
)

// TestWhatReadsMayLack: the harness repeats a read only if its answer may lack what it lacks.
func TestWhatReadsMayLack(t *testing.T) {
	at := func(position string) answer { return answer{Header: http.Header{"X-Log-Position": {position}}} }
	w := newWritten()
	w.wrote("anna", at("trading/0@5"))
	w.looked("anna", at("trading/0@6"))
	w.wrote("ben", at("trading/0@9"))
	for _, test := range []struct {
		of, user, position string
		took               time.Duration
		want               bool
	}{
		{"all there is", "anna", "trading/0@9", 0, false},
		{"without another user's write", "anna", "trading/0@8", 0, true},
		{"without what was read", "anna", "trading/0@5", 0, false},
		{"without what was read and waited for", "anna", "trading/0@5", lookWait, true},
		{"without an own write that was not waited for", "anna", "trading/0@4", lookWait, false},
		{"without an own write that was waited for", "anna", "trading/0@4", writeWait, true},
		{"of the last writer, who did not wait", "ben", "trading/0@8", lookWait, false},
		{"without a token", "", "trading/0@0", 0, true},
		{"of another journal", "anna", "identity/0@0", 0, false},
	} {
		if got := w.lacks(w.returnedTo(test.user), at(test.position), test.took); got != test.want {
			t.Errorf("a read %s: %v, want %v", test.of, got, test.want)
		}
	}
}
