package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Readers find a ZIP file's directory by its end, and there are several ways to find it: by the last end record, by what that
// says of the directory's place or of its length, or by a wider record before it. Here all of them must lead to the one
// directory that was read.

// directory is what the records at the end of a ZIP file are held against.
type directory struct {
	begin, size, parts int64
	wide               bool // there is a wider end record, and its locator
}

var (
	errElsewhere = errors.New("its directory is elsewhere than it says")
	errEnd       = errors.New("its end cannot be read")
)

// zipDirectory reads the directory and the end of the file, and holds them against the parts that were met.
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

// zipListed reads one entry of the directory, behind its signature, and strikes its part off.
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
	if bytes.Contains(append(extra, note...), []byte(zipLocator64)) { // what ends like one is taken for one, by its distance to the end
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

// zip64End reads what a writer of large files puts before the end, behind its signature: a wider end record and its locator.
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

// zipEnd reads the last record, behind its signature: where the directory began, and a comment up to the end.
func (s *source) zipEnd(d directory) error {
	b, err := s.next(18)
	if err != nil {
		return err
	}
	// What is said here must be so, or all ones where the wider record says it.
	is := func(said, so, large int64) bool { return said == so || d.wide && said == large }
	const short = 1<<16 - 1
	if !is(le16(b), 0, short) || !is(le16(b[2:]), 0, short) || !is(le16(b[4:]), d.parts, short) || !is(le16(b[6:]), d.parts, short) ||
		!is(le32(b[8:]), d.size, zipLarge) || !is(le32(b[12:]), d.begin, zipLarge) {
		return errElsewhere
	}
	comment, err := s.next(int(le16(b[16:])))
	if err != nil {
		return err
	}
	if bytes.Contains(comment, []byte(zipEnd)) { // the last one counts
		return errElsewhere
	}
	return s.end("its end")
}

func le64(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }

// maxZipEnd is how long the last record of a ZIP file may be with its comment.
const maxZipEnd = 22 + 1<<16 - 1

// endsAsZip reports whether the end of a file is that of a ZIP file: readers of those do not look at its beginning.
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
