package live_test

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live"
)

const (
	deflateOffer = "permessage-deflate; client_max_window_bits"
	accepted     = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
)

// deflated is a message as it is compressed on the wire, as one block that is not final.
func deflated(text string) string {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write([]byte(text))
	_ = w.Flush()
	return strings.TrimSuffix(b.String(), "\x00\x00\xff\xff")
}

// ended is the same as a final block, with the empty block behind it that RFC 7692 asks for (7.2.3.4).
func ended(text string) string {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String() + "\x00"
}

// inflate reads a compressed message of the server's, which uses no earlier one.
func inflate(packed []byte) ([]byte, error) {
	r := flate.NewReader(io.MultiReader(bytes.NewReader(packed), strings.NewReader("\x00\x00\xff\xff\x01\x00\x00\xff\xff")))
	return io.ReadAll(r)
}

// long is a masked frame of any length, whose mask is zero.
func long(first byte, payload string) string {
	header := binary.BigEndian.AppendUint64([]byte{first, 0x80 | 127}, uint64(len(payload)))
	return string(append(header, 0, 0, 0, 0)) + payload
}

// TestCompressedFrames sends compressed messages that RFC 7692 allows, and frames that it forbids. The request before them is
// answered. Then the connection ends with a close code, without a reset.
func TestCompressedFrames(t *testing.T) {
	const (
		ping   = `{"op":"ping","id":1}`
		pong   = `{"op":"pong","id":1}`
		second = `{"op":"ping","id":2}`
		pong2  = `{"op":"pong","id":2}`
		bye    = "\x88\x82\x00\x00\x00\x00\x03\xe8"
	)
	limit := int(live.DefaultLimits().MessageBytes)
	fits := `{"op":"ping","id":2` + strings.Repeat(" ", limit-len(second)) + "}"
	packed := deflated(second)
	v := newVenue(t, live.Limits{}, nil, compressing)
	for name, test := range map[string]struct {
		frames string
		code   int
		answer string // what the last text contains
	}{
		"a compressed text":             {masked(0xc1, packed), 1000, pong2},
		"two of them, each by itself":   {masked(0xc1, packed) + masked(0xc1, packed), 1000, pong2},
		"a text that is not compressed": {masked(0x81, second), 1000, pong2},
		"a compressed text behind a mask": {
			"\xc1" + string([]byte{0x80 | byte(len(packed))}) + "\x01\x02\x03\x04" + xor(packed, "\x01\x02\x03\x04"),
			1000, pong2,
		},
		"in three fragments": {
			masked(0x41, packed[:3]) + masked(0x00, packed[3:9]) + masked(0x80, packed[9:]),
			1000, pong2,
		},
		"in fragments, one of them empty": {masked(0x41, "") + masked(0x00, packed) + masked(0x80, ""), 1000, pong2},
		"in fragments, with a ping between": {
			masked(0x41, packed[:3]) + masked(0x89, "x") + masked(0x80, packed[3:]),
			1000, pong2,
		},
		"in a final block":                {masked(0xc1, ended(second)), 1000, pong2},
		"in two blocks":                   {masked(0xc1, deflated(second[:8])+"\x00\x00\xff\xff"+deflated(second[8:])), 1000, pong2},
		"an empty text":                   {masked(0xc1, "\x00"), 1000, "INVALID_MESSAGE"},
		"a compressed binary":             {masked(0xc2, packed), 1000, "not binary"},
		"a text of the greatest size":     {masked(0xc1, deflated(fits)), 1000, pong2},
		"a text that is a byte too large": {masked(0xc1, deflated(fits+" ")), 1009, "larger than 32768 bytes"},
		"a text that inflates to a thousand times": {
			long(0xc1, deflated(strings.Repeat(" ", 1000*limit))),
			1009, "larger than 32768 bytes",
		},
		"the same in fragments": {
			masked(0x41, packed[:2]) + long(0x80, deflated(strings.Repeat(" ", 1000*limit))),
			1007, pong,
		},
		"a frame that is too large as it is sent": {
			long(0xc1, strings.Repeat("x", limit+1)),
			1009, "larger than 32768 bytes",
		},
		"such a message in fragments": {
			long(0x41, strings.Repeat("x", limit)) + masked(0x80, "x"),
			1009, "larger than 32768 bytes",
		},
		"no DEFLATE data":                     {masked(0xc1, "\xff\xff\xff"), 1007, pong},
		"nothing at all":                      {masked(0xc1, ""), 1007, pong},
		"a block that is cut":                 {masked(0xc1, packed[:len(packed)/2]), 1007, pong},
		"a message that goes on with another": {masked(0xc1, ended(second)+packed), 1007, pong},
		"one that uses the message before it": {masked(0xc1, packed) + masked(0xc1, "\x02\x13\x00\x00"), 1007, pong2},
		"a text that is not UTF-8": {
			masked(0xc1, deflated("{\"op\":\"ping\",\"id\":\"\xff\"}")),
			1007, "not valid UTF-8",
		},
		"a compressed ping":                        {masked(0xc9, packed), 1002, pong},
		"a compressed pong":                        {masked(0xca, packed), 1002, pong},
		"a compressed close frame":                 {masked(0xc8, "\x03\xe8"), 1002, pong},
		"a compressed ping amid fragments":         {masked(0x41, packed[:3]) + masked(0xc9, "x"), 1002, pong},
		"a continuation that says so":              {masked(0x41, packed[:3]) + masked(0xc0, packed[3:]), 1002, pong},
		"a continuation of a plain text that does": {masked(0x01, second[:3]) + masked(0xc0, second[3:]), 1002, pong},
		"a compressed continuation of nothing":     {masked(0xc0, packed), 1002, pong},
		"a plain continuation of nothing":          {masked(0xc1, packed) + masked(0x80, packed), 1002, pong2},
		"a text amid a fragmented text":            {masked(0x41, packed[:3]) + masked(0xc1, packed), 1002, pong},
		"a plain text amid a compressed one":       {masked(0x41, packed[:3]) + masked(0x81, second), 1002, pong},
		"a compressed text amid a plain one":       {masked(0x01, second[:3]) + masked(0x41, packed[:3]), 1002, pong},
		"the second reserved bit":                  {masked(0xa1, second), 1002, pong},
		"the third reserved bit":                   {masked(0xd1, packed), 1002, pong},
		"a frame of an unknown kind":               {masked(0xc3, packed), 1002, pong},
		"a frame without a mask": {
			masked(0xc1, packed) + "\xc1" + string([]byte{byte(len(packed))}) + packed,
			1002, pong2,
		},
		"a length with its top bit set": {"\xc1\xff\x80\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00x", 1002, pong},
		"a length that is merely very large": {
			"\xc1\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00x",
			1009, "larger than 32768 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := dialRaw(t, v.url, 0, deflateOffer)
			if !slices.Equal(s.extensions, []string{accepted}) {
				t.Fatalf("the server answers %q", s.extensions)
			}
			s.send(masked(0x81, ping) + test.frames)
			if test.code == 1000 {
				s.send(bye)
			}
			texts, code := s.rest()
			if code != test.code || len(texts) == 0 || texts[0] != pong || !strings.Contains(texts[len(texts)-1], test.answer) {
				t.Errorf("closed with %d after %q, want %d after %s", code, texts, test.code, test.answer)
			}
		})
	}
}

// xor masks a payload.
func xor(payload, mask string) string {
	b := []byte(payload)
	for i := range b {
		b[i] ^= mask[i%len(mask)]
	}
	return string(b)
}

// TestCompressionIsNegotiated offers the extension in all the ways that RFC 7692 has.
func TestCompressionIsNegotiated(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil, compressing)
	for _, test := range []struct {
		answer string
		offers []string
	}{
		{"", nil},
		{accepted, []string{"permessage-deflate"}},
		{accepted, []string{deflateOffer}},
		{accepted, []string{accepted + "; client_max_window_bits=9"}},
		{accepted, []string{` permessage-deflate ;client_max_window_bits = "15"`}},
		{accepted + "; server_max_window_bits=12", []string{deflateOffer + "; server_max_window_bits=12"}},
		{accepted + "; server_max_window_bits=12", []string{"permessage-deflate; server_max_window_bits=15"}},
		{accepted, []string{"permessage-deflate; server_max_window_bits=10, permessage-deflate"}},
		{accepted, []string{"permessage-deflate; server_max_window_bits=10", "permessage-deflate"}},
		{accepted, []string{`x-other; a="b,c;d", permessage-deflate`}},
		{"", []string{"x-webkit-deflate-frame"}},
		{"", []string{"Permessage-Deflate"}},
		{"", []string{`x-other; a="permessage-deflate, permessage-deflate"`}},
		{"", []string{"permessage-deflate; server_max_window_bits=11"}},
		{"", []string{"permessage-deflate; server_max_window_bits=16"}},
		{"", []string{"permessage-deflate; server_max_window_bits=012"}},
		{"", []string{"permessage-deflate; server_max_window_bits"}},
		{"", []string{"permessage-deflate; client_max_window_bits=7"}},
		{"", []string{"permessage-deflate; client_max_window_bits="}},
		{"", []string{"permessage-deflate; server_no_context_takeover=1"}},
		{"", []string{"permessage-deflate; client_no_context_takeover; client_no_context_takeover"}},
		{"", []string{"permessage-deflate; unknown"}},
		{"", []string{"permessage-deflate; "}},
		{"", []string{""}},
	} {
		t.Run(fmt.Sprint(test.offers), func(t *testing.T) {
			s := dialRaw(t, v.url, 0, test.offers...)
			if got := strings.Join(s.extensions, "|"); got != test.answer {
				t.Fatalf("the answer is %q, want %q", got, test.answer)
			}
			code, first := 1000, byte(0xc1)
			if test.answer == "" {
				code = 1002
			}
			s.send(masked(first, deflated(`{"op":"ping"}`)) + masked(0x88, "\x03\xe8"))
			if texts, got := s.rest(); got != code || len(texts) > 1 {
				t.Errorf("closed with %d after %q, want %d", got, texts, code)
			}
		})
	}
	plain := newVenue(t, live.Limits{}, nil)
	if s := dialRaw(t, plain.url, 0, deflateOffer); s.extensions != nil {
		t.Errorf("a server that does not compress answers %q", s.extensions)
	}
}

// TestCompressedAndPlainAreEqual has clients follow all that happens, with and without compression and positions. Those with the
// same subscription get the same messages in the same order, and the short ones are not compressed.
func TestCompressedAndPlainAreEqual(t *testing.T) {
	v := newVenue(t, live.Limits{BeatEvery: time.Hour}, nil, compressing) // a beat would come before some have ended
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(v.hub.Collectors()...)
	token := v.reader("alpha")
	var sockets []*rawSocket
	for i := range 8 {
		var offers []string
		if i%2 == 1 {
			offers = append(offers, deflateOffer)
		}
		s := dialRaw(t, v.url, 0, offers...)
		sockets = append(sockets, s)
		s.send(long(0x81, `{"op":"authenticate","data":{"token":"`+token+`"}}`))
		topics := `"orders","trades","positions","balance-changes","orderbook-stream:` + btc + `","market-trades:` + btc + `"`
		s.send(long(0x81, fmt.Sprintf(`{"op":"subscribe","args":[%s],"data":{"positions":%t}}`, topics, i%4 > 1)))
		s.send(masked(0x81, `{"op":"ping"}`))
		for text := ""; text != `{"op":"pong"}`; {
			var err error
			if _, text, err = s.frame(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 40 {
		v.place(limit("A1", btc, order.Sell, "1.000", fmt.Sprintf("%d", 1000+i%7)))
		v.place(limit("A2", btc, order.Buy, "0.400", "1003"))
		if i == 20 {
			v.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: btc, Price: dec("1001")})
		}
	}
	var all [][]string
	for i, s := range sockets {
		s.send(masked(0x81, `{"op":"ping","id":"last"}`))
		var texts []string
		for last := ""; last != `{"op":"pong","id":"last"}`; texts = append(texts, last) {
			var err error
			if _, last, err = s.frame(); err != nil {
				t.Fatalf("client %d got %d texts: %v", i, len(texts), err)
			}
		}
		if len(texts) < 200 {
			t.Fatalf("client %d got %d texts", i, len(texts))
		}
		all = append(all, texts)
		if i >= 4 && !slices.Equal(texts, all[i-4]) || i%2 == 1 && !slices.Equal(texts, all[i-1]) {
			t.Errorf("client %d got other messages", i)
		}
		want := 0
		for _, text := range texts {
			if i%2 == 1 && len(text) > 125 {
				want++
			}
		}
		if s.compressed < want {
			t.Errorf("client %d got %d messages compressed, want %d", i, s.compressed, want)
		}
	}
	eventually(t, "all to count as written", func() bool { return gather(t, registry)["perpetua_live_queued_messages"] == 0 })
}
