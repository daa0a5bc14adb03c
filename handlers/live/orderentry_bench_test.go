package live

import (
	"fmt"
	"testing"
)

// BenchmarkParseEntry reads an order entry as a socket brings it.
func BenchmarkParseEntry(b *testing.B) {
	raw := []byte(`{"op":"order.place","id":17,"data":{"customer_code":"BENCH-07","symbol":"BTCUSDC_PERP","action":"buy","type":"limit",` +
		`"amount":"0.005","limit_price":"64999.5","time_in_force":"GTC"}}`)
	message := make([]byte, len(raw))
	b.ReportAllocs()
	for b.Loop() {
		copy(message, raw)
		if _, err := parseEntry(message); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkManyMembers reads a message of the greatest size with as many members as fit.
func BenchmarkManyMembers(b *testing.B) {
	raw := []byte(`{"op":"ping"`)
	for i := 0; len(raw) < 32<<10-16; i++ {
		raw = fmt.Appendf(raw, `,"%x":0`, i)
	}
	raw = append(raw, '}')
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if e, err := parseEntry(raw); e != nil || err != nil {
			b.Fatal(e, err)
		}
	}
}
