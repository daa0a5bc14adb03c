package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestCheck compares blobs that are as expected, lost, cut, and changed, beside one that is not expected.
func TestCheck(t *testing.T) {
	s := NewStore(openTest(t, "mem://"))
	var expected []Expected
	for i := range 4 {
		content := fmt.Appendf(nil, "content %d", i)
		e := Expected{Key: fmt.Sprintf("a/%d", i), Size: int64(len(content)), Sum: func(sum [sha256.Size]byte) bool { return sum == sha256.Sum256(content) }}
		expected = append(expected, e)
	}
	for key, content := range map[string]string{"a/0": "content 0", "a/2": "content", "a/3": "content 4", "a/foreign": "content"} {
		if err := s.Write(t.Context(), key, []byte(content), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	is, err := s.Check(t.Context(), "a/", expected)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a/1 is missing", "a/2 has 7 bytes instead of 9", "a/3 has other bytes than those of its hash"}
	if is.Blobs != 4 || is.Read != 2 || !slices.Equal(is.Wrong, want) {
		t.Errorf("%+v", is)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if is, err := s.Check(ctx, "a/", expected); !errors.Is(err, context.Canceled) || is.Blobs != 4 || is.Read != 0 {
		t.Errorf("after the end of the context: %+v, %v", is, err)
	}
	if is, err := s.Check(ctx, "a/", nil); err != nil || is.Blobs != 0 {
		t.Errorf("without expected blobs: %+v, %v", is, err)
	}
}
