package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
	"slices"
	"strings"
)

const pngSignature = "\x89PNG\r\n\x1a\n"

// png checks the chunks and their checksums from IHDR to IEND (W3C Portable Network Graphics, section 5), and the bytes
// after them.
func (s *source) png() error {
	if _, err := s.next(len(pngSignature)); err != nil {
		return err
	}
	for image, first := false, true; ; first = false {
		head, err := s.next(8)
		if err != nil {
			return err
		}
		length, name := be32(head), string(head[4:8])
		switch {
		case length > 1<<31-1:
			return errors.New("a chunk is longer than any may be")
		case first && (name != "IHDR" || length != 13):
			return errors.New("it does not begin with its header")
		}
		if err := s.pngContent(name, length, image); err != nil {
			return err
		}
		sum := crc32.ChecksumIEEE([]byte(name))
		if err := s.pass(length, func(b []byte) { sum = crc32.Update(sum, crc32.IEEETable, b) }); err != nil {
			return err
		}
		want, err := s.next(4)
		if err != nil {
			return err
		}
		if binary.BigEndian.Uint32(want) != sum {
			return fmt.Errorf("the checksum of the chunk %q is another", name)
		}
		image = image || name == "IDAT" && length > 0
		if name == "IEND" {
			if !image {
				return errors.New("it has no picture")
			}
			return s.behindPicture()
		}
	}
}

// pngContent inspects the beginning of a chunk without consuming it: IHDR must give the image a size, and the first IDAT
// must begin a zlib stream (RFC 1950, 2.2). image says that an earlier IDAT chunk had data, which this one continues.
func (s *source) pngContent(name string, length int64, image bool) error {
	if name != "IHDR" && (name != "IDAT" || image || length < 2) {
		return nil
	}
	b, err := s.Peek(int(min(length, 8)))
	switch {
	case err != nil:
		return cut(s.note(0, err))
	case name == "IHDR" && (be32(b) == 0 || be32(b[4:]) == 0):
		return errors.New("its picture has no size")
	case name == "IDAT" && (b[0]&15 != 8 || binary.BigEndian.Uint16(b)%31 != 0):
		return errors.New("what should be its picture is something else")
	}
	return nil
}

// cut returns err or, if err is nil, io.ErrUnexpectedEOF.
func cut(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

// The JPEG markers that the checks use (ITU-T T.81, table B.1).
const (
	jpegTEM  = 0x01
	jpegSOF0 = 0xc0
	jpegDHT  = 0xc4
	jpegJPG  = 0xc8
	jpegDAC  = 0xcc
	jpegSOF  = 0xcf // the last SOF marker
	jpegRST0 = 0xd0
	jpegSOI  = 0xd8
	jpegEOI  = 0xd9
	jpegSOS  = 0xda
)

// jpeg checks the segments and scans up to the end of the image. Cameras append more images and videos, which are
// accepted; an appended page, program or archive is not.
func (s *source) jpeg() error {
	if _, err := s.next(2); err != nil {
		return err
	}
	framed, scanned := false, false
	for {
		marker, err := s.jpegMarker()
		if err != nil {
			return err
		}
		switch {
		case marker == jpegEOI:
			if !scanned {
				return errors.New("it has no picture")
			}
			return s.behindPicture()
		case marker == jpegSOS && !framed:
			return errors.New("it does not say how large its picture is")
		case marker == jpegTEM || marker >= jpegRST0 && marker <= jpegSOI:
			return errors.New("a marker stands where none may be")
		}
		if err := s.jpegSegment(); err != nil {
			return err
		}
		framed = framed || marker >= jpegSOF0 && marker <= jpegSOF && marker != jpegDHT && marker != jpegJPG && marker != jpegDAC
		if marker == jpegSOS {
			scanned = true
			if err := s.jpegScan(); err != nil {
				return err
			}
		}
	}
}

// jpegMarker reads the next marker after any number of fill bytes.
func (s *source) jpegMarker() (byte, error) {
	b, err := s.next(1)
	if err != nil {
		return 0, err
	}
	if b[0] != 0xff {
		return 0, errors.New("a marker is missing")
	}
	for {
		b, err := s.next(1)
		if err != nil {
			return 0, err
		}
		switch b[0] {
		case 0xff:
		case 0:
			return 0, errors.New("a marker is missing")
		default:
			return b[0], nil
		}
	}
}

func (s *source) jpegSegment() error {
	b, err := s.next(2)
	if err != nil {
		return err
	}
	length := int64(binary.BigEndian.Uint16(b))
	if length < 2 {
		return errors.New("a segment is shorter than its own length")
	}
	return s.skip(length - 2)
}

// jpegScan consumes coded data up to the next marker that ends it. Within the data, 0xff is followed by 0 or by a
// restart marker's number.
func (s *source) jpegScan() error {
	for {
		b, err := s.Peek(2)
		if err != nil {
			return cut(s.note(0, err))
		}
		n := 1
		switch {
		case b[0] != 0xff: // most of the data: consume the buffer up to the next byte that may begin a marker
			held, _ := s.Peek(s.r.Buffered())
			if n = bytes.IndexByte(held, 0xff); n < 0 {
				n = len(held)
			}
		case b[1] == 0 || b[1] >= jpegRST0 && b[1] < jpegSOI:
			n = 2
		case b[1] != 0xff:
			return nil
		}
		d, err := s.r.Discard(n)
		if err := s.note(d, err); err != nil {
			return err
		}
	}
}

// disguised lists signatures that no camera writes after an image: programs, archives and documents.
var disguised = []string{"PK\x03\x04", "MZ", "\x7fELF", "#!", "%PDF-", "Rar!\x1a", "7z\xbc\xaf", "\xd0\xcf\x11\xe0"}

// pageBegins matches the beginning of an HTML, XML or PHP page. A lone < does not match: it also occurs in the length
// field of camera data. XMP, which editors append, does not match either.
var pageBegins = regexp.MustCompile(`(?i)^<(!|\?(php|xml|=)|/?(html|head|body|script|svg|iframe|object|embed|style|title|meta|link|base|form|table|div|font|img|h1|br|a|b|p)[\s/>])`)

// behindPicture reads the bytes after an image up to the end of the file. Phones append more images, videos and their
// own data, and some tools that crop a screenshot leave the rest of the old file. These are accepted.
func (s *source) behindPicture() error {
	head, err := s.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return s.note(0, err)
	}
	if len(head) == 0 { // the usual case
		return s.end("its picture")
	}
	behind := string(bytes.TrimLeft(head, "\x00 \t\r\n\ufeff"))
	if pageBegins.MatchString(behind) || slices.ContainsFunc(disguised, func(begin string) bool { return strings.HasPrefix(behind, begin) }) {
		return errors.New("there is something else behind the picture")
	}
	// An archive may begin anywhere. It is recognized by its end.
	tail, err := s.tail(maxZipEnd)
	if err != nil {
		return err
	}
	if endsAsZip(tail) {
		return errors.New("it is an archive as well")
	}
	return nil
}

// drain reads the rest of the stream.
func (s *source) drain() error {
	_, err := io.Copy(io.Discard, s)
	return err
}

// webp checks the chunks of a RIFF container (WebP Container Specification). The container must be as long as the file.
func (s *source) webp() error {
	head, err := s.next(12)
	if err != nil {
		return err
	}
	end := le32(head[4:]) + 8
	image := false
	for s.at < end {
		chunk, err := s.next(8)
		if err != nil {
			return err
		}
		name, length := string(chunk[:4]), le32(chunk[4:])
		length += length & 1
		if s.at+length > end {
			return errors.New("a chunk is longer than the file says it is")
		}
		first := s.at == 20
		if first && !slices.Contains([]string{"VP8 ", "VP8L", "VP8X"}, name) {
			return errors.New("it does not begin with a picture")
		}
		picture, err := s.webpContent(name, length)
		if err != nil {
			return err
		}
		image = image || picture
		if err := s.skip(length); err != nil {
			return err
		}
	}
	if !image {
		return errors.New("it has no picture")
	}
	return s.end("what it says is its end")
}

// webpPictures describes the beginning of the chunks that contain images (RFC 6386, 9.1; WebP Lossless Bitstream, 3): a
// signature, its offset, and the minimum length of the chunk.
var webpPictures = map[string]struct {
	mark      string
	at, least int
}{"VP8 ": {"\x9d\x01\x2a", 3, 10}, "VP8L": {"\x2f", 0, 6}, "ANMF": {"", 0, 16}}

// webpContent inspects the beginning of a chunk without consuming it, and reports whether it is an image.
func (s *source) webpContent(name string, length int64) (image bool, err error) {
	p, is := webpPictures[name]
	if !is {
		return false, nil
	}
	if length < int64(p.least) {
		return false, errors.New("its picture is empty")
	}
	b, err := s.Peek(p.least)
	if err != nil {
		return false, cut(s.note(0, err))
	}
	if !strings.HasPrefix(string(b[p.at:]), p.mark) {
		return false, errors.New("what should be its picture is something else")
	}
	return true, nil
}
