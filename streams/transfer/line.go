package transfer

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// line is a record in a file.
type line struct {
	Journal   string   `json:"journal"`
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"` // milliseconds
	Key       octets   `json:"key"`
	Headers   []header `json:"headers"`
	Value     octets   `json:"value"`
}

// baseLine is the line before the records of a trimmed log. Builds without bases refuse it.
type baseLine struct {
	Journal string       `json:"journal"`
	Base    *record.Base `json:"base"`
}

// appendBase appends the line of a base, including the newline.
func appendBase(to []byte, b record.Base) ([]byte, error) {
	text, err := json.Marshal(baseLine{b.Journal, &b})
	if err != nil {
		return nil, fmt.Errorf("transfer: %w", err)
	}
	return append(append(to, text...), '\n'), nil
}

// parseBase parses the line of a base. It returns nil for other lines.
func parseBase(text []byte) (*record.Base, error) {
	var l baseLine
	if err := json.Unmarshal(text, &l, json.RejectUnknownMembers(true)); err != nil || l.Base == nil {
		return nil, nil
	}
	if l.Base.Journal != l.Journal || l.Base.Partition != 0 {
		return nil, fmt.Errorf("it is of %s, with the %v", l.Journal, l.Base)
	}
	return l.Base, l.Base.Validate()
}

// header is a record header. It is a pair, since names may repeat and their order matters.
type header struct {
	name  string
	value octets
}

// octets are bytes. nil and empty octets are different.
type octets []byte

// MarshalJSONTo writes null, a string, or an object with base64 if the bytes are not valid UTF-8.
func (o octets) MarshalJSONTo(e *jsontext.Encoder) error {
	switch {
	case o == nil:
		return e.WriteToken(jsontext.Null)
	case utf8.Valid(o):
		return e.WriteToken(jsontext.String(string(o)))
	}
	return json.MarshalEncode(e, map[string]string{"base64": base64.StdEncoding.EncodeToString(o)})
}

// UnmarshalJSONFrom reads what MarshalJSONTo writes.
func (o *octets) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch d.PeekKind() {
	case 'n':
		*o = nil
		_, err := d.ReadToken()
		return err
	case '"':
		v, err := d.ReadValue()
		if err == nil {
			*o, err = jsontext.AppendUnquote(make([]byte, 0, len(v)), v)
		}
		return err
	}
	var object struct {
		Base64 *string `json:"base64"`
	}
	if err := json.UnmarshalDecode(d, &object, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	if object.Base64 == nil {
		return errors.New("bytes are a string, null or an object with base64")
	}
	b, err := base64.StdEncoding.DecodeString(*object.Base64)
	*o = append(make([]byte, 0, len(b)), b...)
	return err
}

// MarshalJSONTo writes a pair.
func (h header) MarshalJSONTo(e *jsontext.Encoder) error {
	return json.MarshalEncode(e, []octets{octets(h.name), h.value})
}

// UnmarshalJSONFrom reads a pair.
func (h *header) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var pair []octets
	if err := json.UnmarshalDecode(d, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("a header has a name and a value, not %d members", len(pair))
	}
	h.name, h.value = string(pair[0]), pair[1]
	return nil
}

// appendLine appends the line of a record, including the newline.
func appendLine(b []byte, journal string, r *kgo.Record) ([]byte, error) {
	l := line{Journal: journal, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value,
		Headers: make([]header, len(r.Headers))}
	for i, h := range r.Headers {
		l.Headers[i] = header{h.Key, h.Value}
	}
	into := bytes.NewBuffer(b)
	if err := json.MarshalWrite(into, l); err != nil {
		return nil, fmt.Errorf("transfer: the record at offset %d: %w", r.Offset, err)
	}
	return append(into.Bytes(), '\n'), nil
}

// lineParser parses lines. It is not safe for concurrent use.
//
// It has a fast path for nearly all lines: those that appendLine writes of texts without other escapes than those of quotes and
// backslashes. parse defines what a valid line is, and the fast path MUST NOT accept anything that parse reads differently.
// FuzzLine compares them.
type lineParser struct {
	reader fastjson.Reader
	words  fastjson.Words
}

// parse parses a line without its newline. The results do not refer to it. The line is either that of a base or that of a record
// of the journal.
func (p *lineParser) parse(text []byte) (journal string, b *record.Base, r *kgo.Record, err error) {
	if journal, r, ok := p.written(text); ok {
		return journal, nil, r, nil
	}
	if b, err = parseBase(text); err != nil {
		return "", nil, nil, fmt.Errorf("this is not the line of a base: %w", err)
	}
	if b != nil {
		return b.Journal, b, nil, nil
	}
	if journal, r, err = parseLine(text); err != nil {
		return "", nil, nil, fmt.Errorf("this is not the line of a record: %w", err)
	}
	return journal, nil, r, nil
}

// written is the fast path. It reports whether it could parse the line.
func (p *lineParser) written(text []byte) (journal string, r *kgo.Record, ok bool) {
	in := &p.reader
	in.Reset(text, &p.words)
	in.Raw(`{"journal":`)
	journal = in.String()
	in.Raw(`,"partition":`)
	partition := in.Int()
	in.Raw(`,"offset":`)
	offset := in.Int()
	in.Raw(`,"timestamp":`)
	timestamp := in.Int()
	in.Raw(`,"key":`)
	texts := make([]byte, 0, len(text)) // of all texts of the record, which are shorter than the line
	next := func() []byte {
		from := len(texts)
		texts = in.Unquote(texts)
		return texts[from:len(texts):len(texts)]
	}
	r = &kgo.Record{Offset: offset, Timestamp: time.UnixMilli(timestamp), Key: next()}
	in.Raw(`,"headers":[`)
	for more := !in.Try(`]`); more && !in.Failed(); more = !in.Try(`]`) {
		if r.Headers == nil {
			r.Headers = make([]kgo.RecordHeader, 0, 8)
		} else {
			in.Raw(`,`)
		}
		in.Raw(`[`)
		name := in.String()
		in.Raw(`,`)
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: next()})
		in.Raw(`]`)
	}
	in.Raw(`,"value":`)
	r.Value = next()
	in.Raw(`}`)
	if !in.Done() || journal == "" || partition > math.MaxInt32 {
		return "", nil, false
	}
	r.Partition = int32(partition)
	return journal, r, true
}

// parseLine parses the result of appendLine, without the newline.
func parseLine(text []byte) (journal string, r *kgo.Record, err error) {
	var l line
	if err := json.Unmarshal(text, &l, json.RejectUnknownMembers(true)); err != nil {
		return "", nil, err
	}
	if l.Journal == "" {
		return "", nil, errors.New("it names no journal")
	}
	r = &kgo.Record{Partition: l.Partition, Offset: l.Offset, Timestamp: time.UnixMilli(l.Timestamp), Key: l.Key, Value: l.Value}
	for _, h := range l.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.name, Value: h.value})
	}
	return l.Journal, r, nil
}
