package columns

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

var journal = scalar.ID{7, 1, 3}

// encode returns the chunk of texts as a chain of records from sequence 5 on.
func encode(t interface{ Fatal(...any) }, texts ...string) ([]byte, []int64, int) {
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	var values []Value
	var sequences []int64
	var prev [32]byte
	total := 0
	for i, s := range texts {
		values = append(values, Value{[]byte(s), int64(5 + i), hex.EncodeToString(prev[:])})
		sequences = append(sequences, int64(5+i))
		prev = sha256.Sum256([]byte(s))
		total += len(s)
	}
	chunk, err := e.Encode(journal, values)
	if err != nil {
		t.Fatal(err)
	}
	if chunk[0] != formColumns {
		t.Fatal("the values are not stored in columns")
	}
	return chunk, sequences, total
}

// TestOddValues encodes values that no writer of a journal makes. Encode compares them itself.
func TestOddValues(t *testing.T) {
	id := decide.Stamp{Journal: journal, Sequence: 6}.Derive(2).String()
	encode(t)
	encode(t, "")
	encode(t, "", "{", "}", `"`, `"\`, `{"a":"\"`, `{"a":"\\"}`, "null", "[[[[]]]]", "\x00\xff", `{"a":}`, `"a"1"b"`, `"a""b"`)
	encode(t, `{"a":1,"a":2}`, `{"a":2,"a":1}`, `{ "a" : 1 }`, `{"a":"\u00e4\ud83d\ude00 ä"}`, `{"a":01,"b":-0,"c":1e5,"d":0.10,"e":-1.50}`,
		`{"a":9223372036854775807,"b":-9223372036854775808,"c":92233720368.54775807,"d":0.123456789}`,
		`{"a":"2027-03-01T08:00:15.629408Z","b":"2027-03-01T08:00:15,629408Z","c":"0000-00-00T00:00:00.000000Z","d":"9999-12-31T23:59:59.999999Z"}`)
	encode(t, `{"id":"`+id+`"}`, `{"id":"`+id+`"}`, `{"id":"`+strings.ToUpper(id)+`"}`, `{"id":"`+id+`","of":["`+id+`","`+id+`"]}`)
	encode(t, `{"type":"a.b","x":"1"}`, `{"type":"`+strings.Repeat("x", 100)+`"}`, `{"type":"A B"}`, `{"type":3}`)
	prev := sha256.Sum256([]byte("one"))
	twice := `{"prev":"` + hex.EncodeToString(prev[:]) + `","again":"` + hex.EncodeToString(prev[:]) + `"}`
	encode(t, "one", twice, twice)
	encode(t, strings.Repeat(`{"a":"`+strings.Repeat("x", 1<<20)+`"}`, 4), strings.Repeat("[1,", 1<<18), strings.Repeat(`{"k":`, 10_000))
	var many []string
	for i := range 2 * maxPieces {
		many = append(many, `{"`+strings.Repeat("k", i%97)+hex.EncodeToString([]byte{byte(i), byte(i >> 8)})+`":"`+strings.Repeat("v", i%5)+`"}`)
	}
	encode(t, many...)
}

// TestFreedMemory decodes into the memory of values that were in the chunk itself, as they are in the plain form if they cannot be
// compressed. The chunk stays.
func TestFreedMemory(t *testing.T) {
	d, err := NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	other, sequences, total := encode(t, strings.Repeat("other", 20))
	const text = "\x00\x01\x02\x03"
	chunk := append([]byte{formPlain, 1, 0, byte(len(text)), byte(len(text)), 0}, text...)
	before := bytes.Clone(chunk)
	chunk = append(chunk, make([]byte, 1<<10)...)[:len(chunk)]
	out, err := d.Decode(journal, []int64{5}, chunk, len(text))
	if err != nil {
		t.Fatal(err)
	}
	d.Free(out.Bytes)
	if _, err := d.Decode(journal, sequences, other, total); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(chunk, before) {
		t.Errorf("the chunk is %q, and was %q", chunk, before)
	}
}

// TestSharedDecoder decodes chunks of several lengths in several goroutines, which free some of the values.
func TestSharedDecoder(t *testing.T) {
	d, err := NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	var working sync.WaitGroup
	for n := range 4 {
		texts := goldenTexts()[:60*(n+1)]
		chunk, sequences, total := encode(t, texts...)
		working.Go(func() {
			var first *Decoded
			for i := range 20 {
				out, err := d.Decode(journal, sequences, chunk, total)
				if err != nil {
					t.Error(err)
					return
				}
				if first == nil {
					first = out // and is not freed
				}
				if !bytes.Equal(out.Bytes, first.Bytes) {
					t.Errorf("the values of %d records differ the %dth time", len(texts), i)
				}
				if i%3 > 0 && out != first {
					d.Free(out.Bytes)
				}
			}
		})
	}
	working.Wait()
}

// drawText draws a JSON text of few names and values, so that they meet again.
func drawText(t *rapid.T, depth int) string {
	switch n := rapid.IntRange(0, 9).Draw(t, "kind"); {
	case n < 2 && depth > 0:
		var b strings.Builder
		b.WriteByte('{')
		for i := range rapid.IntRange(0, 4).Draw(t, "members") {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`"` + rapid.SampledFrom([]string{"code", "type", "amount", "balance", "time", "of"}).Draw(t, "name") + `":` + drawText(t, depth-1))
		}
		return b.String() + "}"
	case n < 4 && depth > 0:
		var items []string
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, drawText(t, depth-1))
		}
		return "[" + strings.Join(items, ",") + "]"
	case n < 6:
		return rapid.SampledFrom([]string{`"a"`, `"order.opened"`, `"1.50"`, `"-1.5"`, `"1.5"`, `0`, `-0.10`, `true`, `null`, `"2027-03-01T08:00:15.000001Z"`,
			`"2027-03-01T08:00:15.000000Z"`, `"deadbeefdeadbeef"`, `"01a21958-dab2-79ed-90f7-9d21717c26a6"`, `"` + strings.Repeat("0", 64) + `"`}).Draw(t, "word")
	case n < 7:
		return `"` + decide.Stamp{Journal: journal, Sequence: rapid.Int64Range(3, 12).Draw(t, "sequence")}.Derive(rapid.IntRange(0, 3).Draw(t, "index")).String() + `"`
	case n < 8:
		return rapid.StringMatching(`"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,10})?"`).Draw(t, "number")
	default:
		return rapid.String().Draw(t, "anything")
	}
}

func TestAnyValues(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var texts []string
		for range rapid.IntRange(1, 12).Draw(r, "values") {
			texts = append(texts, drawText(r, 3))
		}
		encode(r, texts...)
	})
}

// FuzzDecode decodes damaged chunks: there are values or an error, and no panic.
func FuzzDecode(f *testing.F) {
	chunk, sequences, total := encode(f, `{"sequence":5,"code":"a","amount":"1.5","list":[1,2,{"time":"2027-03-01T08:00:15.000001Z"}]}`,
		`{"sequence":6,"code":"a","amount":"-1.5","list":[1,2,{"time":"2027-03-01T08:00:15.000002Z"}]}`,
		`{"sequence":7,"code":"`+decide.Stamp{Journal: journal, Sequence: 6}.Derive(1).String()+`","amount":"2","list":[]}`)
	d, err := NewDecoder()
	if err != nil {
		f.Fatal(err)
	}
	for _, chunk := range [][]byte{chunk, opened(f, d, chunk, total)} {
		f.Add(chunk)
		for i := range chunk {
			damaged := append([]byte(nil), chunk...)
			damaged[i] ^= 1 << (i % 8)
			f.Add(damaged)
			f.Add(chunk[:i])
		}
	}
	f.Fuzz(func(t *testing.T, chunk []byte) {
		out, err := d.Decode(journal, sequences, chunk, total)
		if err != nil {
			return
		}
		if len(out.Bytes) != total || len(out.Ends) != len(sequences) || out.Ends[len(out.Ends)-1] != total {
			t.Errorf("%d bytes, ends %v", len(out.Bytes), out.Ends)
		}
		first := bytes.Clone(out.Bytes)
		for i := range out.Bytes {
			out.Bytes[i] = '#'
		}
		d.Free(out.Bytes)
		again, err := d.Decode(journal, sequences, chunk, total) // into the memory of the first
		if err != nil || !bytes.Equal(again.Bytes, first) {
			t.Errorf("the second time: %v", err)
		}
	})
}

// opened returns a chunk with the same frames, not compressed. Changes of its bytes change the templates and streams.
func opened(t testing.TB, d *Decoder, chunk []byte, total int) []byte {
	out := stream{b: []byte{chunk[0]}}
	for rest := (stream{b: chunk[1:]}); !rest.done(); {
		b, err := d.frame(&rest, mostInFrame(0, total))
		if err != nil {
			t.Fatal(err)
		}
		out.uvarint(uint64(len(b)))
		out.byte(0)
		out.b = append(out.b, b...)
	}
	return out.b
}

// FuzzEncode encodes any bytes, with a value in each line. Encode decodes and compares them itself.
func FuzzEncode(f *testing.F) {
	f.Add([]byte(strings.Join(goldenTexts()[:20], "\n")))
	f.Add([]byte("{\"a\":\"\\\"\",\"b\":[1,-1,\"1\",\"-1\"]}\n\n[[{}]]\n\"\n{\"type\":\"a.b\",\"a\":1.50}"))
	f.Add(bytes.Repeat([]byte("{\"code\":\"c1\",\"of\":{\"amount\":\"92233720368.54775807\",\"left\":\"-23058430092.13693951\"}}\n"), 10))
	e, err := NewEncoder()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var values []Value
		prev := sha256.Sum256(nil)
		for i, line := range bytes.Split(b, []byte("\n")) {
			values = append(values, Value{line, int64(5 + i), hex.EncodeToString(prev[:])})
			prev = sha256.Sum256(line)
		}
		chunk, err := e.Encode(journal, values)
		if err != nil {
			t.Fatal(err)
		}
		if chunk[0] != formColumns {
			t.Error("the values are not stored in columns")
		}
	})
}
