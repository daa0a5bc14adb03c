package onboarding_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestFrozenFingerprints sends every write with one Idempotency-Key and compares the fingerprint and the key of the command
// with those that earlier builds made. The log remembers both: a client may repeat a request after an upgrade.
func TestFrozenFingerprints(t *testing.T) {
	f := furnish(t)
	var made []decide.Command
	f.Fail(func(c decide.Command) error {
		made = append(made, c)
		return &submit.NotAcceptedError{}
	})
	// Ids that this run made. A fingerprint that contains one is another in each run.
	ids := []string{f.webhook, f.delivery}
	for _, m := range []map[string]string{f.owners, f.entitlements, f.triggers} {
		for path := range maps.Values(m) {
			ids = append(ids, path[strings.LastIndexByte(path, '/')+1:])
		}
	}
	for _, q := range f.questionnaires {
		ids = append(ids, q.id)
	}
	frozen := 0
	for _, r := range f.Routes() {
		if r.Method == http.MethodGet {
			continue
		}
		route := r.Method + " " + r.Path
		path, body := f.path(r.Path), f.writes()[route]
		made = nil
		if f.sendKeyed(r.Method, path, body, "k"); len(made) != 1 {
			t.Fatalf("%s makes %d commands", route, len(made))
		}
		c := made[0]
		print := c.Metadata.Fingerprint
		if slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(path+body, id) }) {
			print = print[:len(print)-32] + "…" // the route's digits, if there are any
		}
		recordtest.Frozen(t, route, c.Type+" "+c.Metadata.Key+" "+print)
		frozen++
	}
	if frozen < 70 {
		t.Errorf("%d routes write", frozen)
	}
}
