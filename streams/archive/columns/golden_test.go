package columns

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// goldenFile has a chunk of goldenTexts in hex. An encoder has written it that found templates and counted in other ways, and kept
// the members of all objects by name.
const goldenFile = "testdata/chunk1.hex"

// goldenTexts returns values with all operations. Rows of few and of many pieces, with different members, change their objects.
func goldenTexts() (texts []string) {
	prev := sha256.Sum256(nil)
	balances := make(map[[2]string]int64) // customer and symbol identify an object together
	for i := range 240 {
		customer, symbol := []string{"c1", "c2", "c", "c\x00", "c\x00s1\x00"}[i*i%11%5], []string{"s1", "s2", "1s1"}[i%3]
		kind, amount, pair := i*i%13, int64(i*i%97-40), [2]string{customer, symbol}
		if balances[pair] == 0 {
			balances[pair] = int64(1_000_000 + 7919*i)
		}
		balances[pair] += amount
		own := decide.Stamp{Journal: journal, Sequence: int64(5 + i)}.Derive(1)
		older := decide.Stamp{Journal: journal, Sequence: int64(5 + i/2)}.Derive(1)
		command := scalar.ID{1, 2, 3, 4, byte(i), 6, 0x70 | byte(i)&15, 8, 0x80 | byte(i)&63, 9, byte(i * 7)}
		text := fmt.Sprintf(`{"sequence":%d,"prev":"%x","time":"2027-03-01T08:%02d:15.%06dZ","id":"%s","print":"%x",`, 5+i, prev, i/60, i*6007, command, prev[:8])
		text += fmt.Sprintf(`"order":{"type":"order.kind%c","customer":"%s","code":"%s","amount":"%d"`, 'a'+kind, customer, own, amount)
		if kind%2 == 0 {
			text += fmt.Sprintf(`,"left":"%d","total":"%d"`, -amount, 1000+i*37%1009)
		}
		if kind%3 == 0 {
			text += fmt.Sprintf(`,"note":"%x"`, sha256.Sum256([]byte{byte(i)}))
		} else {
			text += fmt.Sprintf(`,"total":"%d"`, balances[pair]%1009)
		}
		if kind%5 == 0 {
			text += fmt.Sprintf(`,"before":%d,"last":"%s"`, len(texts)/9, older)
		}
		text += fmt.Sprintf(`},"account":{"customer":"%s","symbol":"%s","balance":"%d","of":["%s",%d,true,null]}}`, customer, symbol, balances[pair], older, i%5)
		texts = append(texts, text)
		prev = sha256.Sum256([]byte(text))
	}
	return texts
}

// TestAnEarlierChunk decodes the chunk of another encoder.
func TestAnEarlierChunk(t *testing.T) {
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	chunk, err := hex.DecodeString(string(text[:len(text)-1]))
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	texts, total := goldenTexts(), 0
	var sequences []int64
	for i, text := range texts {
		sequences, total = append(sequences, int64(5+i)), total+len(text)
	}
	for range 2 { // the second time with the memory of the first
		out, err := d.Decode(journal, sequences, chunk, total)
		if err != nil {
			t.Fatal(err)
		}
		from, prev := 0, sha256.Sum256(nil)
		for i, want := range texts {
			if at := out.Prev[i]; at >= 0 {
				hex.Encode(out.Bytes[at:], prev[:])
			}
			if got := string(out.Bytes[from:out.Ends[i]]); got != want {
				t.Fatalf("value %d is %q, want %q", i, got, want)
			}
			from, prev = out.Ends[i], sha256.Sum256([]byte(want))
		}
		d.Free(out.Bytes)
	}
}

// TestTheSameChunk encodes the same values with two encoders.
func TestTheSameChunk(t *testing.T) {
	one, _, _ := encode(t, goldenTexts()...)
	two, _, _ := encode(t, goldenTexts()...)
	if !bytes.Equal(one, two) {
		t.Error("the chunks differ")
	}
}
