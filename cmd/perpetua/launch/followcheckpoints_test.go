package launch

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// place serves a checkpoint of a tree of one record.
func place(t *testing.T, signer note.Signer, root string) string {
	t.Helper()
	signed, err := note.Sign(&note.Note{Text: fmt.Sprintf("%s\n1\n%s\n", signer.Name(), root)}, signer)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/checkpoint") {
			_, _ = w.Write(signed)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/tlog/trading/0"
}

// TestCheckpointsOfTwoHistories compares two sources: only two histories that the venue has signed stop the follower, and a restart
// finds them again.
func TestCheckpointsOfTwoHistories(t *testing.T) {
	const origin = "localhost/tlog/trading/0/01a2036b-99f6-7f7b-b190-cfe339c2aea9"
	private, public, err := note.GenerateKey(nil, origin)
	if err != nil {
		t.Fatal(err)
	}
	venue, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	private, _, err = note.GenerateKey(nil, origin)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	const one, other = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=", "DsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="
	for name, c := range map[string]struct {
		mirror      string
		halts       bool
		fault       string
		wantsAlarms int
	}{
		"the same":               {place(t, venue, one), false, "", 0},
		"another history":        {place(t, venue, other), true, "two histories", 1},
		"signed by somebody":     {place(t, stranger, other), false, "signature", 0},
		"a place that is silent": {"http://127.0.0.1:1/tlog/trading/0", false, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			signed := &checkpoints{key: public, given: true, urls: []string{place(t, venue, one), c.mirror}, file: filepath.Join(t.TempDir(), "state"),
				log: slog.New(slog.NewTextHandler(io.Discard, nil))}
			s, err := settings.Parse("follow", nil, settings.IO{Env: func(string) (string, bool) { return "", false }}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := signed.open("", s); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			alarms := 0
			checked := func() int64 { cancel(); return 1 } // after the first comparison
			if err := signed.run(ctx, checked, func(string, error) { alarms++ }); err != nil {
				t.Fatal(err)
			}
			if halts := signed.Halt("trading") != ""; halts != c.halts || signed.Halt("identity") != "" || alarms != c.wantsAlarms {
				t.Errorf("it halts: %t, with %d alarms", halts, alarms)
			}
			if fault := signed.Fault(); c.fault == "" && fault != "" || !strings.Contains(fault, c.fault) {
				t.Errorf("it says %q", fault)
			}
		})
	}
}

// TestCheckpointKeys: the keys are one or, after a rotation, several of the log of trading. An empty key, as a failed download leaves
// it, is refused.
func TestCheckpointKeys(t *testing.T) {
	s, err := settings.Parse("follow", nil, settings.IO{Env: func(string) (string, bool) { return "", false }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	key := func(origin string) string {
		_, public, err := note.GenerateKey(nil, origin)
		if err != nil {
			t.Fatal(err)
		}
		return public
	}
	const trading = "localhost/tlog/trading/0/01a2036b-99f6-7f7b-b190-cfe339c2aea9"
	old, next := key(trading), key(trading)
	for name, c := range map[string]struct{ key, want string }{
		"one":                {old, ""},
		"with a line's end":  {old + "\n", ""},
		"both of a rotation": {old + " until 2026-12-29T09:54:03Z\n" + next + "\n", ""},
		"none":               {"", "no verifier key"},
		"a garbled one":      {old[:len(old)-4] + "AAA=", "--tlog-key"},
		"of another journal": {key(strings.Replace(trading, "trading", "identity", 1)), "/tlog/trading/0"},
	} {
		err := (&checkpoints{key: c.key, given: true, log: slog.New(slog.DiscardHandler)}).open("https://venue.example", s)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
