package blob

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
)

// Expected describes a blob that a catalog or a manifest names.
type Expected struct {
	Key  string
	Size int64
	Sum  func(sum [sha256.Size]byte) bool // reports whether a SHA-256 is that of the bytes
}

// Checked is the result of Check.
type Checked struct {
	Blobs int      // that are expected
	Read  int      // blobs whose bytes were compared
	Wrong []string // what is wrong with each blob that is missing or damaged
}

// Check compares the blobs below a prefix with the expected ones: first their sizes, then their bytes. Other blobs are ignored. The order of
// reading is random, so that runs that end early read other blobs each time. After an error, such as the end of the context, the result has
// the findings before it.
func (s *Store) Check(ctx context.Context, prefix string, expected []Expected) (is Checked, err error) {
	is.Blobs = len(expected)
	if is.Blobs == 0 {
		return is, nil
	}
	listed, err := s.List(ctx, prefix)
	if err != nil {
		return is, fmt.Errorf("blob store: listing %s: %w", prefix, err)
	}
	sizes := make(map[string]int64, len(listed))
	for _, o := range listed {
		sizes[o.Key] = o.Size
	}
	var present []Expected
	for _, e := range expected {
		switch size, ok := sizes[e.Key]; {
		case !ok:
			is.Wrong = append(is.Wrong, e.Key+" is missing")
		case size != e.Size:
			is.Wrong = append(is.Wrong, fmt.Sprintf("%s has %d bytes instead of %d", e.Key, size, e.Size))
		default:
			present = append(present, e)
		}
	}
	for _, i := range rand.Perm(len(present)) {
		e := &present[i]
		sum, err := s.sum(ctx, e.Key)
		switch {
		case Missing(err):
			is.Wrong = append(is.Wrong, e.Key+" is missing")
			continue
		case err != nil:
			return is, err
		case !e.Sum(sum):
			is.Wrong = append(is.Wrong, e.Key+" has other bytes than those of its hash")
		}
		is.Read++
	}
	return is, nil
}

// sum returns the SHA-256 of a blob's bytes.
func (s *Store) sum(ctx context.Context, key string) (sum [sha256.Size]byte, err error) {
	r, err := s.NewReader(ctx, key)
	if err != nil {
		return sum, err
	}
	defer r.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, struct{ io.Reader }{r}, make([]byte, readSize)); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
