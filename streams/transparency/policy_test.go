package transparency

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

// TestKeysWithAPlus: the base64 of a key may contain "+". Two keys with the same text after it are different keys.
func TestKeysWithAPlus(t *testing.T) {
	key := func(name string, first byte) string {
		public := append(bytes.Repeat([]byte{first}, 29), 0xf8, 0, 0)
		k, err := note.NewEd25519VerifierKey(name, public)
		if err != nil || !strings.HasSuffix(k, "+AAA") {
			t.Fatal(k, err)
		}
		return k
	}
	if _, err := ParsePolicy([]byte("log " + key("a", 1) + "\nlog " + key("b", 2) + "\nquorum none\n")); err != nil {
		t.Error(err)
	}
	if _, err := ParsePolicy([]byte("log " + key("a", 1) + "\nlog " + key("b", 1) + "\nquorum none\n")); err == nil {
		t.Error("one key has two names")
	}
}
