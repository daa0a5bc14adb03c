package live

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

const testLimit = 1 << 10

// unpack reads everything through an inflater.
func unpack(raw io.Reader) ([]byte, error) {
	return io.ReadAll(&inflater{raw: raw, limit: testLimit})
}

// FuzzInflater: whatever a client sends, and however it is cut, the plain frames are the same and so is the fault. No message is
// larger than the limit, and frames that are not compressed pass as they came.
func FuzzInflater(f *testing.F) {
	packed := string(deflate([]byte("\x81\x7e\x00\xc8" + strings.Repeat("perpetua", 25)))[2:])
	mask := func(first byte, payload string) string {
		return string(appendHeader(nil, first, maskBit, len(payload))) + "\x00\x00\x00\x00" + payload
	}
	for _, frames := range []string{
		mask(0xc1, packed), mask(0x41, packed[:5]) + mask(0x89, "x") + mask(0x80, packed[5:]),
		mask(0xc1, "\x00") + mask(0x81, "{}"), mask(0xc1, "\xff"), mask(0xc9, packed), "\xc1\x02{}",
		mask(0x01, "x") + mask(0xc1, packed), mask(0x41, "x") + mask(0x81, "x"),
		mask(0xc1, strings.Repeat("x", 200)), "\x81\xff\x80", "\x88\x81\x00\x00\x00\x00\x03",
	} {
		f.Add([]byte(frames))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		whole, err := unpack(bytes.NewReader(raw))
		cut, cutErr := unpack(iotest.OneByteReader(bytes.NewReader(raw)))
		if !bytes.Equal(whole, cut) || !errors.Is(cutErr, err) {
			t.Fatalf("%q %v, and cut %q %v", whole, err, cut, cutErr)
		}
		if messages := len(raw)/(2+maskBytes) + 1; len(whole) > len(raw)+messages*(testLimit+headerBytes+maskBytes) {
			t.Fatalf("%d bytes became %d", len(raw), len(whole))
		}
		var h frameHeader
		compressed := false
		for rest := raw; len(rest) > 0 && !compressed; rest = skipFrame(&h, rest) {
			compressed = rest[0]&rsv1Bit != 0
		}
		if !compressed && !bytes.HasPrefix(raw, whole) {
			t.Fatalf("%q became %q", raw, whole)
		}
	})
}

// skipFrame returns what follows the first frame, and nothing if that is not whole.
func skipFrame(h *frameHeader, p []byte) []byte {
	*h = frameHeader{}
	for !h.whole() {
		if h.have == len(p) {
			return nil
		}
		h.add(p[h.have])
	}
	if p = p[h.have:]; h.rest() > uint64(len(p)) {
		return nil
	}
	return p[h.rest():]
}

// FuzzInflate: an inflated message is within the limit and the same as that of another decoder. A message that is
// compressed comes back when it is inflated.
func FuzzInflate(f *testing.F) {
	f.Add([]byte("\x00"))
	f.Add([]byte(""))
	f.Add([]byte("\xca\x48\xcd\xc9\xc9\x07\x00"))                           // RFC 7692, 7.2.3.1
	f.Add([]byte("\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"))           // 7.2.3.3
	f.Add([]byte("\xf3\x48\xcd\xc9\xc9\x07\x00\x00"))                       // 7.2.3.4
	f.Add([]byte("\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"))   // 7.2.3.5
	f.Add(bytes.Repeat([]byte("\xed\xc1\x01\x01\x00\x00\x00\x80\x90"), 20)) // no DEFLATE data
	f.Fuzz(func(t *testing.T, data []byte) {
		text, fault := inflate(bytes.Clone(data), testLimit)
		if len(text) > testLimit || fault != nil && text != nil {
			t.Fatalf("%d bytes and %v", len(text), fault)
		}
		if fault == nil {
			want, err := io.ReadAll(flate.NewReader(strings.NewReader(string(data) + flushed + finalBlock)))
			if err != nil || !bytes.Equal(text, want) {
				t.Fatalf("%q, want %q %v", text, want, err)
			}
		}
		plain := textFrame(data)
		if again := deflate(plain.plain); again[0] == finBit|rsv1Bit|opText {
			var h frameHeader
			skipFrame(&h, again)
			if len(again) >= len(plain.plain) {
				t.Fatalf("%d bytes became %d", len(plain.plain), len(again))
			}
			if back, fault := inflate(again[h.have:], int64(len(data))); fault != nil || !bytes.Equal(back, data) {
				t.Fatalf("%q came back as %q %v", data, back, fault)
			}
		}
	})
}

// TestTheRFCsExamples inflates the examples of RFC 7692, 7.2.3.
func TestTheRFCsExamples(t *testing.T) {
	for _, frames := range []string{
		"\xc1\x87\x00\x00\x00\x00\xf2\x48\xcd\xc9\xc9\x07\x00",
		"\x41\x83\x00\x00\x00\x00\xf2\x48\xcd\x80\x84\x00\x00\x00\x00\xc9\xc9\x07\x00",
		"\xc1\x8b\x00\x00\x00\x00\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00",
		"\xc1\x88\x00\x00\x00\x00\xf3\x48\xcd\xc9\xc9\x07\x00\x00",
		"\xc1\x8d\x00\x00\x00\x00\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00",
	} {
		if got, err := unpack(strings.NewReader(frames)); err != nil || string(got) != "\x81\x85\x00\x00\x00\x00Hello" {
			t.Errorf("% x became % x %v", frames, got, err)
		}
	}
}

// TestABombIsNotInflated: a message that would inflate to a thousand times its size costs the memory of the limit.
func TestABombIsNotInflated(t *testing.T) {
	bomb := deflate(textFrame(make([]byte, 32<<20)).plain)
	header := frameHeader{}
	skipFrame(&header, bomb)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, fault := inflate(bomb[header.have:], testLimit); fault != errTooBig {
		t.Errorf("%v", fault)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes of memory for a message of %d", n, len(bomb))
	}
}

// TestAFrameIsCompressedOnce sends one frame to sessions that compress and one that does not. Those that compress share the
// compressed frame.
func TestAFrameIsCompressedOnce(t *testing.T) {
	long := textFrame([]byte(strings.Repeat("perpetua ", 100)))
	if a, b := long.wire(true), long.wire(true); &a[0] != &b[0] || len(a) > len(long.plain)/4 || a[0] != 0xc1 {
		t.Errorf("%d bytes became %d", len(long.plain), len(a))
	}
	if plain := long.wire(false); &plain[0] != &long.plain[0] {
		t.Error("a session that does not compress gets another frame")
	}
	noise := make([]byte, 1000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	for name, f := range map[string]*frame{
		"a short message": textFrame([]byte(strings.Repeat("x", deflateFrom-3))),
		"random bytes":    textFrame(noise),
		"a close frame":   {plain: closeFrame([]byte("\x03\xe8" + strings.Repeat("x", maxControl-2)))},
	} {
		if wire := f.wire(true); &wire[0] != &f.plain[0] {
			t.Errorf("%s is compressed", name)
		}
	}
}

// TestALongFrameIsWrittenApart queues a frame that takes long to compress. It is compressed, and the order of messages stays.
func TestALongFrameIsWrittenApart(t *testing.T) {
	s, r, h := recorded()
	s.extension = accepted
	long := textFrame([]byte(strings.Repeat("perpetua ", gatherBytes/4)))
	s.send([]byte("a"))
	<-r.entered
	s.deliver(long)
	s.send([]byte("b"))
	close(r.proceed)
	h.serving.Wait()
	got, want := string(bytes.Join(r.writes, nil)), "\x81\x01a"+string(long.packed)+"\x81\x01b"
	if got != want || long.packed == nil {
		t.Errorf("%.200q, want %.200q", got, want)
	}
	if s.out.messages != 0 || s.out.bytes != 0 {
		t.Errorf("%d messages of %d bytes are left", s.out.messages, s.out.bytes)
	}
}
