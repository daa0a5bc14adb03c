package format

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// heicBrands are the brands of HEIF files with HEVC-coded images (ISO/IEC 23008-12, annex B).
var heicBrands = []string{"heic", "heix", "heim", "heis"}

// heic checks the boxes of the ISO base media file format (ISO/IEC 14496-12, section 4.2). The meta box declares the
// location of each image in the file. The file must contain all of these bytes.
func (s *source) heic() error {
	name, length, _, err := s.box()
	if err != nil {
		return err
	}
	if err := s.heicBrand(name, length); err != nil {
		return err
	}
	needed := int64(0) // the required file length; 0 before the meta box
	for !s.ended() {
		name, length, toEnd, err := s.box()
		switch {
		case err != nil:
			return err
		case toEnd:
			err = s.drain()
		case name == "meta" && needed == 0:
			needed, err = s.heicMeta(s.at + length)
		default:
			err = s.skip(length)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case needed == 0:
		return errors.New("it does not say where its pictures are")
	case s.at < needed:
		return io.ErrUnexpectedEOF
	}
	return nil
}

// box reads the header of a box and returns the length of the content. toEnd says that the content extends to the end of
// the file.
func (s *source) box() (name string, length int64, toEnd bool, err error) {
	head, err := s.next(8)
	if err != nil {
		return "", 0, false, err
	}
	size, used := be32(head), int64(8)
	name = string(head[4:8])
	switch size {
	case 0:
		return name, 0, true, nil
	case 1:
		large, err := s.next(8)
		if err != nil {
			return "", 0, false, err
		}
		if size = int64(binary.BigEndian.Uint64(large)); size < 0 {
			return "", 0, false, errors.New("a box is longer than any may be")
		}
		used = 16
	}
	if size < used {
		return "", 0, false, errors.New("a box is shorter than its own head")
	}
	return name, size - used, false, nil
}

// heicBrand checks the file type box, which lists the brands of the file.
func (s *source) heicBrand(name string, length int64) error {
	if name != "ftyp" || length < 8 || length > 1024 || length%4 != 0 {
		return errors.New("its file type cannot be read")
	}
	b, err := s.next(int(length))
	if err != nil {
		return err
	}
	for i := 0; i < len(b); i += 4 {
		if i != 4 && slices.Contains(heicBrands, string(b[i:i+4])) { // the second word is a version, not a brand
			return nil
		}
	}
	return errors.New("its pictures are of another kind")
}

// heicMeta reads the boxes inside the meta box, which ends at offset end, and returns the file length that the images
// require.
func (s *source) heicMeta(end int64) (int64, error) {
	if err := s.skip(4); err != nil { // version and flags
		return 0, err
	}
	needed := int64(0)
	for s.at < end {
		name, length, toEnd, err := s.box()
		switch {
		case err != nil:
			return 0, err
		case toEnd || s.at+length > end:
			return 0, errors.New("a box is longer than the one that it is in")
		case name == "iloc" && (needed != 0 || length > Window):
			return 0, errors.New("it says in too many places where its pictures are")
		case name == "iloc":
			b, err := s.next(int(length))
			if err != nil {
				return 0, err
			}
			if needed, err = (&locations{rest: b}).end(); err != nil {
				return 0, err
			}
		default:
			if err := s.skip(length); err != nil {
				return 0, err
			}
		}
	}
	return needed, nil
}

// locations reads an item location box (ISO/IEC 14496-12, section 8.11.3).
type locations struct {
	rest []byte
	bad  bool
}

// uint reads a big-endian number of size bytes: 0, 1, 2, 4 or 8.
func (l *locations) uint(size int) uint64 {
	if size > len(l.rest) {
		l.bad, l.rest = true, nil
		return 0
	}
	b := l.rest[:size]
	l.rest = l.rest[size:]
	n := uint64(0)
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}

// end returns the end offset of the last item that is stored in the file, and at least 1.
func (l *locations) end() (int64, error) {
	version := l.uint(4) >> 24
	sizes := l.uint(2)
	offset, length, base, index := int(sizes>>12), int(sizes>>8&15), int(sizes>>4&15), int(sizes&15)
	idSize, indexed := 2, version == 1 || version == 2
	if version == 2 {
		idSize = 4
	}
	last := uint64(0)
	for items := l.uint(idSize); items > 0 && !l.bad; items-- {
		l.uint(idSize)
		method := uint64(0)
		if indexed {
			method = l.uint(2) & 15
		}
		l.uint(2) // the data reference index: images are in this file
		begin := l.uint(base)
		extents := l.uint(2)
		if !indexed {
			index = 0
		}
		if extents > 1 && offset+length+index == 0 { // empty extents; a few bytes could declare very many
			l.bad = true
		}
		for ; extents > 0 && !l.bad; extents-- {
			l.uint(index)
			at, n := l.uint(offset), l.uint(length)
			if method == 0 {
				last = max(last, begin+at+n)
			}
		}
	}
	if l.bad || last > 1<<40 {
		return 0, errors.New("where its pictures are cannot be read")
	}
	return int64(max(last, 1)), nil
}
