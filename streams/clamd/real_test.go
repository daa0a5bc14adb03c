package clamd_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/clamd"
	"github.com/perpetua-exchange/perpetua/streams/clamd/clamdtest"
)

// TestTheRealDaemon has the packaged clamd scan, with a signature of our own.
func TestTheRealDaemon(t *testing.T) {
	s := clamdtest.Start(t).Scanner(t)
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"nothing":                 {nil, ""},
		"a clean file":            {[]byte("clean"), ""},
		"the signature":           {[]byte("before " + clamdtest.Marker + " behind"), clamdtest.Found},
		"behind many bytes":       {append(bytes.Repeat([]byte("x"), 20<<20-len(clamdtest.Marker)), clamdtest.Marker...), clamdtest.Found},
		"as many bytes and clean": {bytes.Repeat([]byte("x"), 20<<20), ""},
	} {
		t.Run(name, func(t *testing.T) {
			running, err := s.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer running.Close()
			if _, err := running.Write(test.content); err != nil {
				t.Fatal(err)
			}
			if got, err := running.Verdict(); err != nil || got != test.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	t.Run("more than it takes", func(t *testing.T) {
		running, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer running.Close()
		_, _ = running.Write(make([]byte, 30<<20))
		if got, err := running.Verdict(); !errors.Is(err, clamd.ErrAway) {
			t.Errorf("%q, %v", got, err)
		}
	})
}
