package seal

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// sealedStream returns content sealed as a stream, written in pieces.
func sealedStream(t testing.TB, o *Owners, content []byte, at AssociatedData) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := o.Writer(t.Context(), &out, at)
	if err != nil {
		t.Fatal(err)
	}
	for piece := range slices.Chunk(content, 10_000) {
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// openedStream reads a sealed stream to its end, and looks that an error stays.
func openedStream(t testing.TB, o *Owners, s []byte, at AssociatedData) ([]byte, error) {
	t.Helper()
	r, err := o.Reader(t.Context(), bytes.NewReader(s), at)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	if err != nil {
		if n, again := r.Read(make([]byte, 10)); n != 0 || !errors.Is(again, err) {
			t.Errorf("after %v the stream goes on with %d bytes, %v", err, n, again)
		}
	}
	return content, err
}

func noise(n int) []byte {
	out := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(out)
	return out
}

func TestStreamsComeBackAsTheyWere(t *testing.T) {
	o := created(t, t.TempDir())
	at := associatedDataOf(anna, anna.ID)[2]
	for _, n := range []int{0, 1, segmentSize - 100, segmentSize - 64, segmentSize - 57, segmentSize - 56, segmentSize, 3*segmentSize + 17, 20 << 20} {
		content := noise(n)
		s := sealedStream(t, o, content, at)
		if n > 16 && bytes.Contains(s, content[:16]) {
			t.Errorf("%d bytes: the stream shows its content", n)
		}
		if got, err := openedStream(t, o, s, at); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes come back as %d, %v", n, len(got), err)
		}
	}
}

// TestAStreamThatWasTamperedWithIsNotReadToItsEnd cuts, turns round, repeats, leaves out and changes parts of a stream.
func TestAStreamThatWasTamperedWithIsNotReadToItsEnd(t *testing.T) {
	o := created(t, t.TempDir())
	at := associatedDataOf(anna, anna.ID)[2]
	content := noise(4*segmentSize + 1000)
	whole := sealedStream(t, o, content, at)
	segments := slices.Collect(slices.Chunk(whole[headerSize:], segmentSize)) // the first has the header of the cipher
	join := func(of ...[]byte) []byte {
		return append(bytes.Clone(whole[:headerSize]), slices.Concat(of...)...)
	}
	if len(segments) != 5 || !bytes.Equal(join(segments...), whole) {
		t.Fatalf("there are %d segments", len(segments))
	}
	bad := map[string][]byte{
		"nothing":              {},
		"turned round":         join(segments[0], segments[2], segments[1], segments[3], segments[4]),
		"one twice":            join(segments[0], segments[1], segments[1], segments[2], segments[3], segments[4]),
		"one left out":         join(segments[0], segments[2], segments[3], segments[4]),
		"the last twice":       join(append(slices.Clone(segments), segments[4])...),
		"something behind it":  append(bytes.Clone(whole), 0),
		"another stream's end": join(segments[0], segments[1], segments[2], segments[3], sealedStream(t, o, content, at)[headerSize+4*segmentSize:]),
	}
	for i := range segments {
		bad["cut behind segment "+string(rune('0'+i))] = join(segments[:i]...)
	}
	for name, s := range bad {
		if got, err := openedStream(t, o, s, at); !errors.Is(err, ErrDamaged) || !bytes.HasPrefix(content, got) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		i := rapid.IntRange(0, len(whole)-1).Draw(rt, "at")
		flipped := bytes.Clone(whole)
		flipped[i] ^= byte(rapid.IntRange(1, 255).Draw(rt, "by"))
		for name, s := range map[string][]byte{"cut": whole[:i], "flipped": flipped} {
			if got, err := openedStream(t, o, s, at); !errors.Is(err, ErrDamaged) || !bytes.HasPrefix(content, got) {
				rt.Errorf("%s at %d: %d bytes, %v", name, i, len(got), err)
			}
		}
	})
}

func TestAStreamOpensAtItsPlaceOnly(t *testing.T) {
	o := created(t, t.TempDir())
	all := append(associatedDataOf(anna, anna.ID), associatedDataOf(acme, acme.ID)...)
	s := sealedStream(t, o, []byte("passport"), all[2])
	for i, at := range all {
		if got, err := openedStream(t, o, s, at); i != 2 && !errors.Is(err, ErrDamaged) {
			t.Errorf("at %+v: %q, %v", at, got, err)
		}
	}
	if got, err := o.Open(t.Context(), s, all[2]); !errors.Is(err, ErrDamaged) {
		t.Errorf("as a field: %q, %v", got, err)
	}
}

func TestAStreamThatWasNotClosedIsNotComplete(t *testing.T) {
	o := created(t, t.TempDir())
	at := associatedDataOf(anna, anna.ID)[2]
	var out bytes.Buffer
	w, err := o.Writer(t.Context(), &out, at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(noise(3 * segmentSize)); err != nil {
		t.Fatal(err)
	}
	if _, err := openedStream(t, o, out.Bytes(), at); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// TestWhatTheSourceSaysIsNoDamage: who reads has to know whether to try again or to raise an alarm.
func TestWhatTheSourceSaysIsNoDamage(t *testing.T) {
	o := created(t, t.TempDir())
	at := associatedDataOf(anna, anna.ID)[2]
	s := sealedStream(t, o, noise(2*segmentSize), at)
	lost := errors.New("connection reset")
	for _, after := range []int{0, 2, 20, segmentSize, segmentSize + 100} {
		from := io.MultiReader(bytes.NewReader(s[:after]), iotest.ErrReader(lost))
		r, err := o.Reader(t.Context(), from, at)
		if err == nil {
			_, err = io.ReadAll(r)
		}
		if !errors.Is(err, lost) || errors.Is(err, ErrDamaged) {
			t.Errorf("after %d bytes: %v", after, err)
		}
	}
}

// TestStreamsEndWithTheirKey: a download or an upload that is under way when the key is destroyed goes on no longer than a
// node may hold the key.
func TestStreamsEndWithTheirKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder, at := t.TempDir(), associatedDataOf(anna, anna.ID)[2]
		one, other := created(t, folder), onFolder(t, folder)
		r, err := other.Reader(t.Context(), bytes.NewReader(sealedStream(t, one, noise(4*segmentSize), at)), at)
		if err != nil {
			t.Fatal(err)
		}
		w, err := other.Writer(t.Context(), io.Discard, at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		if err := one.Destroy(t.Context(), at.Owner); err != nil {
			t.Fatal(err)
		}
		time.Sleep(KeyLifetime)
		if n, err := r.Read(make([]byte, 10)); n != 0 || !errors.Is(err, ErrDestroyed) {
			t.Errorf("the download goes on with %d bytes, %v", n, err)
		}
		if _, err := w.Write([]byte("x")); !errors.Is(err, ErrDestroyed) {
			t.Errorf("the upload goes on: %v", err)
		}
		if err := w.Close(); !errors.Is(err, ErrDestroyed) {
			t.Errorf("the upload ends well: %v", err)
		}
	})
}

// FuzzReader holds whatever bytes are said to be a sealed stream against its reader.
func FuzzReader(f *testing.F) {
	o := created(f, f.TempDir())
	at := associatedDataOf(anna, anna.ID)[2]
	content := noise(100)
	f.Add(sealedStream(f, o, content, at))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, s []byte) {
		if got, err := openedStream(t, o, s, at); err == nil && !bytes.Equal(got, content) || err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}
