package format

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of a package. A small file that unpacks to more is a ZIP bomb for the programs that open it.
const (
	maxUnpacked = 256 << 20 // bytes of all parts together
	maxParts    = 10_000
	maxTypes    = 1 << 20 // bytes of the content types part
)

// The signatures of a ZIP file's records (PKWARE APPNOTE, section 4.3).
const (
	zipLocal      = "PK\x03\x04"
	zipCentral    = "PK\x01\x02"
	zipEnd        = "PK\x05\x06"
	zipEnd64      = "PK\x06\x06"
	zipLocator64  = "PK\x06\x07"
	zipDescriptor = "PK\x07\x08"
)

const (
	zipEncrypted  = 1 << 0 // flags
	zipDescribed  = 1 << 3
	zipStored     = 0 // methods
	zipDeflated   = 8
	zip64Extra    = 0x0001 // extra fields
	zipOtherName  = 0x7075
	zipLarge      = 1<<32 - 1 // means that the value is in an extra field or a wider record
	contentTypes  = "[Content_Types].xml"
	workbookType  = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
	bombUnpacked  = "it unpacks to more than is taken"
	badDescriptor = "a part is not what its description says"
)

// part describes one entry of a ZIP file.
type part struct {
	at, packed, unpacked int64
	method               int64
	sum                  uint32
}

// parts holds the entries that were read and that the directory has not listed yet. The keys are hashes of the names,
// since a file may have very many long names.
type parts map[[16]byte]part

func nameKey(name string) (key [16]byte) {
	sum := sha256.Sum256([]byte(name))
	copy(key[:], sum[:])
	return key
}

// xlsx reads a ZIP file from its first entry to its last. It unpacks each part, counts the bytes and discards them. Then
// it reads the directory at the end, which must list exactly these parts. So it rejects a file that shows different
// content to readers of entries and to readers of the directory, and a file that unpacks to too many bytes.
func (s *source) xlsx() error {
	met := make(parts)
	var types bytes.Buffer
	total := int64(0)
	for {
		signature, err := s.Peek(4)
		if err != nil {
			return cut(s.note(0, err))
		}
		if string(signature) != zipLocal {
			break
		}
		name, p, err := s.zipPart(&types, maxUnpacked-total)
		if err != nil {
			return err
		}
		key := nameKey(name)
		if _, twice := met[key]; twice || len(met) == maxParts {
			return errors.New("it has a part twice, or too many")
		}
		if strings.HasSuffix(strings.ToLower(name), "vbaproject.bin") {
			return errHoldsProgram
		}
		met[key] = p
		total += p.unpacked
	}
	if err := s.zipDirectory(met); err != nil {
		return err
	}
	return workbook(types.String())
}

var errHoldsProgram = errors.New("it holds a program")

// workbook checks that the content types are those of a workbook without programs. A part is a program by its type,
// under any name.
func workbook(types string) error {
	if !strings.Contains(types, workbookType) {
		return errors.New("it is no workbook")
	}
	if lower := strings.ToLower(types); strings.Contains(lower, "vbaproject") || strings.Contains(lower, "macroenabled") {
		return errHoldsProgram
	}
	return nil
}

// zipPart reads one entry: its header, its data and, if flagged, the data descriptor after them. The part may unpack to
// at most limit bytes.
func (s *source) zipPart(types io.Writer, limit int64) (string, part, error) {
	p := part{at: s.at}
	fixed, err := s.next(30)
	if err != nil {
		return "", p, err
	}
	flags, method := le16(fixed[6:]), le16(fixed[8:])
	sum, packed, unpacked := binary.LittleEndian.Uint32(fixed[14:]), le32(fixed[18:]), le32(fixed[22:])
	nameLen, extraLen := le16(fixed[26:]), le16(fixed[28:])
	name, extra, err := s.zipName(int(nameLen), int(extraLen))
	if err != nil {
		return "", p, err
	}
	described := flags&zipDescribed != 0
	p.method = method
	switch {
	case flags&zipEncrypted != 0:
		return "", p, errors.New("a part is encrypted")
	case method != zipDeflated && (method != zipStored || described):
		return "", p, errors.New("a part is packed in a way that is not taken")
	case !described:
		if err = zip64(extra, &unpacked, &packed); err != nil {
			return "", p, err
		}
	}
	into := io.Discard
	if name == contentTypes {
		into, limit = types, min(limit, maxTypes)
	}
	if method == zipStored {
		err = s.unpackStored(&p, into, unpacked, limit)
	} else {
		err = s.inflate(&p, into, limit)
	}
	if err != nil {
		return "", p, err
	}
	if described {
		return name, p, s.zipDescription(p)
	}
	if p.sum != sum || p.packed != packed || p.unpacked != unpacked {
		return "", p, errors.New(badDescriptor)
	}
	return name, p, nil
}

// zipName reads the name of a part and the extra field after it.
func (s *source) zipName(nameLen, extraLen int) (name string, extra []byte, err error) {
	b, err := s.next(nameLen)
	if err != nil {
		return "", nil, err
	}
	name = string(b)
	if extra, err = s.next(min(extraLen, Window)); err != nil {
		return "", nil, err
	}
	extra = bytes.Clone(extra)
	// Some readers use the name in this extra field instead.
	if other := extraField(extra, zipOtherName); other != nil && (len(other) < 5 || string(other[5:]) != name) {
		return "", nil, errors.New("a part has two names")
	}
	return name, extra, checkName(name)
}

// extraField returns the content of the extra field of a kind, or nil.
func extraField(extra []byte, kind int64) []byte {
	for len(extra) >= 4 {
		n := int(le16(extra[2:]))
		if len(extra) < 4+n {
			return nil
		}
		if le16(extra) == kind {
			return extra[4 : 4+n : 4+n]
		}
		extra = extra[4+n:]
	}
	return nil
}

// checkName rejects names that lead out of the folder into which a user might unpack the file.
func checkName(name string) error {
	if name == "" || len(name) > 512 || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.ContainsAny(name, `\:`) {
		return errors.New("a part has a name that is not taken")
	}
	for element := range strings.SplitSeq(strings.TrimSuffix(name, "/"), "/") {
		if element == "" || element == "." || element == ".." {
			return errors.New("the name of a part leads elsewhere")
		}
	}
	return nil
}

// zip64 replaces values that do not fit the header by the values in the extra field, in their order.
func zip64(extra []byte, values ...*int64) error {
	wide := extraField(extra, zip64Extra)
	for _, v := range values {
		if *v != zipLarge {
			continue
		}
		if len(wide) < 8 {
			return errors.New("a part does not say its size")
		}
		*v, wide = int64(binary.LittleEndian.Uint64(wide)), wide[8:]
	}
	return nil
}

func (s *source) unpackStored(p *part, into io.Writer, size, limit int64) error {
	if size < 0 || size > limit {
		return errors.New(bombUnpacked)
	}
	p.packed, p.unpacked = size, size
	return s.pass(size, func(b []byte) {
		p.sum = crc32.Update(p.sum, crc32.IEEETable, b)
		_, _ = into.Write(b) // a buffer or io.Discard; cannot fail
	})
}

// inflate unpacks a part. Only the deflate stream marks its own end, so inflate ignores the declared sizes and stops at
// the limit.
func (s *source) inflate(p *part, into io.Writer, limit int64) error {
	begin := s.at
	if s.packed == nil { // the decompressor and the buffer are large, and a package may have very many parts
		s.packed, s.piece = flate.NewReader(s), make([]byte, 32<<10)
	} else if err := s.packed.(flate.Resetter).Reset(s, nil); err != nil {
		return err
	}
	for {
		n, err := s.packed.Read(s.piece)
		if p.unpacked += int64(n); p.unpacked > limit {
			return errors.New(bombUnpacked)
		}
		p.sum = crc32.Update(p.sum, crc32.IEEETable, s.piece[:n])
		_, _ = into.Write(s.piece[:n]) // a buffer or io.Discard; cannot fail
		if err == io.EOF {             //nolint:errorlint // of a stream's own end, bare
			p.packed = s.at - begin
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// zipDescription reads the data descriptor of a part. The header of this part did not contain the sizes. A descriptor
// may lack the signature, and its sizes may have four or eight bytes. Only a comparison with the actual sizes shows
// which form it has.
func (s *source) zipDescription(p part) error {
	ahead, err := s.Peek(24)
	if err != nil && !errors.Is(err, io.EOF) {
		return s.note(0, err)
	}
	for _, signature := range []string{zipDescriptor, ""} {
		for _, wide := range []bool{false, true} {
			b := binary.LittleEndian.AppendUint32([]byte(signature), p.sum)
			if wide {
				b = binary.LittleEndian.AppendUint64(b, uint64(p.packed))
				b = binary.LittleEndian.AppendUint64(b, uint64(p.unpacked))
			} else {
				b = binary.LittleEndian.AppendUint32(b, uint32(p.packed))
				b = binary.LittleEndian.AppendUint32(b, uint32(p.unpacked))
			}
			// A record follows the descriptor. Its signature distinguishes a descriptor with four-byte sizes from one
			// with eight-byte sizes.
			if bytes.HasPrefix(ahead, b) && (len(ahead) < len(b)+2 || string(ahead[len(b):len(b)+2]) == "PK") {
				return s.skip(int64(len(b)))
			}
		}
	}
	if len(ahead) < 12 {
		return io.ErrUnexpectedEOF
	}
	return errors.New(badDescriptor)
}
