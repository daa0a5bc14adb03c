package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Readers find the directory of a ZIP file from the end of the file, and in several ways: by the last end record, by the
// directory's offset or length in that record, or by a ZIP64 end record before it. Here all of these must lead to the
// one directory that was read.

// directory describes the directory that was read. The records at the end of a ZIP file must agree with it.
type directory struct {
	begin, size, parts int64
	wide               bool // there is a ZIP64 end record with its locator
}

var (
	errElsewhere = errors.New("its directory is elsewhere than it says")
	errEnd       = errors.New("its end cannot be read")
)

// zipDirectory reads the directory and the end records, and compares them with the parts that were read.
func (s *source) zipDirectory(met parts) error {
	d := directory{begin: s.at, parts: int64(len(met))}
	for {
		signature, err := s.next(4)
		if err != nil {
			return err
		}
		switch kind := string(signature); {
		case kind == zipCentral && !d.wide:
			if err := s.zipListed(met); err != nil {
				return err
			}
		case kind == zipEnd64 && !d.wide:
			d.size, d.wide = s.at-4-d.begin, true
			if err := s.zip64End(d); err != nil {
				return err
			}
		case kind == zipEnd:
			if len(met) > 0 {
				return errors.New("its directory does not list all parts")
			}
			if !d.wide {
				d.size = s.at - 4 - d.begin
			}
			return s.zipEnd(d)
		default:
			return fmt.Errorf("something else stands where its directory should be, at %d", s.at-4)
		}
	}
}

// zipListed reads one entry of the directory, after its signature, and removes its part from met.
func (s *source) zipListed(met parts) error {
	fixed, err := s.next(42)
	if err != nil {
		return err
	}
	flags, method := le16(fixed[4:]), le16(fixed[6:])
	sum, packed, unpacked := binary.LittleEndian.Uint32(fixed[12:]), le32(fixed[16:]), le32(fixed[20:])
	nameLen, extraLen, noteLen, at := int(le16(fixed[24:])), int(le16(fixed[26:])), int(le16(fixed[28:])), le32(fixed[38:])
	name, extra, err := s.zipName(nameLen, extraLen)
	if err != nil {
		return err
	}
	if err := zip64(extra, &unpacked, &packed, &at); err != nil {
		return err
	}
	note, err := s.next(noteLen)
	if err != nil {
		return err
	}
	if bytes.Contains(append(extra, note...), []byte(zipLocator64)) { // readers may mistake it for the locator
		return errElsewhere
	}
	key := nameKey(name)
	p, there := met[key]
	if want := (part{at, packed, unpacked, method, sum}); !there || p != want || flags&zipEncrypted != 0 {
		return errors.New("its directory lists what is not there, or twice")
	}
	delete(met, key)
	return nil
}

// zip64End reads a ZIP64 end record, after its signature, and its locator. Writers of large files put them before the
// end record.
func (s *source) zip64End(d directory) error {
	at := s.at - 4
	b, err := s.next(8)
	if err != nil {
		return err
	}
	length := binary.LittleEndian.Uint64(b)
	if length < 44 || length > Window {
		return errEnd
	}
	if b, err = s.next(int(length)); err != nil {
		return err
	}
	here, all, size, begin := le64(b[12:]), le64(b[20:]), le64(b[28:]), le64(b[36:])
	if le32(b[4:]) != 0 || le32(b[8:]) != 0 || here != d.parts || all != d.parts || size != d.size || begin != d.begin {
		return errElsewhere
	}
	if b, err = s.next(20); err != nil {
		return err
	}
	if string(b[:4]) != zipLocator64 || le32(b[4:]) != 0 || le64(b[8:]) != at || le32(b[16:]) > 1 {
		return errElsewhere
	}
	return nil
}

// zipEnd reads the end record, after its signature: the offset of the directory, and a comment that ends the file.
func (s *source) zipEnd(d directory) error {
	b, err := s.next(18)
	if err != nil {
		return err
	}
	// Each value must be right, or have all bits set if the ZIP64 end record contains it.
	is := func(stored, so, large int64) bool { return stored == so || d.wide && stored == large }
	const short = 1<<16 - 1
	if !is(le16(b), 0, short) || !is(le16(b[2:]), 0, short) || !is(le16(b[4:]), d.parts, short) || !is(le16(b[6:]), d.parts, short) ||
		!is(le32(b[8:]), d.size, zipLarge) || !is(le32(b[12:]), d.begin, zipLarge) {
		return errElsewhere
	}
	comment, err := s.next(int(le16(b[16:])))
	if err != nil {
		return err
	}
	if bytes.Contains(comment, []byte(zipEnd)) { // readers use the last end record
		return errElsewhere
	}
	return s.end("its end")
}

func le64(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }

// maxZipEnd is the greatest length of an end record with its comment, in bytes.
const maxZipEnd = 22 + 1<<16 - 1

// endsAsZip reports whether tail ends with a ZIP end record. ZIP readers then ignore the beginning of the file.
func endsAsZip(tail []byte) bool {
	for rest := tail; ; {
		i := bytes.Index(rest, []byte(zipEnd))
		if i < 0 {
			return false
		}
		if rest = rest[i:]; len(rest) >= 22 && 22+int(le16(rest[20:])) == len(rest) {
			return true
		}
		rest = rest[1:]
	}
}
