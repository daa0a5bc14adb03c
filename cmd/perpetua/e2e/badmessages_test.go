package e2e

import (
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// testBadMessages sends what must not work over a socket. Each gets one error; the connection stays, and nobody is
// subscribed to anything.
func testBadMessages(t *testing.T, d *desk) {
	subscribe := func(rest string) string { return `{"op":"subscribe",` + rest + `}` }
	signer := venueSigner(t, d)
	expired := claims(t, d.token("broker-a"))
	expired["exp"] = 1
	for user, table := range map[string]map[string]string{
		"": {
			subscribe(`"args":["orders"]`): "AUTHENTICATION_REQUIRED", subscribe(`"args":["balance-changes"]`): "AUTHENTICATION_REQUIRED",
			`{"op":"authenticate","data":{"token":"garbage"}}`:                                                                            "AUTHENTICATION_FAILED",
			`{"op":"authenticate","data":{"token":"` + signer.sign(map[string]any{"alg": "EdDSA", "kid": signer.kid}, expired) + `"}}`:    "AUTHENTICATION_FAILED",
			`{"op":"authenticate","data":{"token":"` + signer.sign(map[string]any{"alg": "none"}, claims(t, d.token("broker-a"))) + `"}}`: "AUTHENTICATION_FAILED",
			`{"op":"authenticate"}`: "INVALID_MESSAGE",
		},
		"broker-b": {
			"": "INVALID_MESSAGE", "{": "INVALID_MESSAGE", "[]": "INVALID_MESSAGE", "null": "INVALID_MESSAGE", `"ping"`: "INVALID_MESSAGE", `{"op":"ping"}{"op":"ping"}`: "INVALID_MESSAGE",
			`{"op":"ping","op":"ping"}`: "INVALID_MESSAGE", `{"op":"ping","foo":1}`: "INVALID_MESSAGE", `{"op":"PING"}`: "INVALID_MESSAGE", `{"op":1}`: "INVALID_MESSAGE", `{}`: "INVALID_MESSAGE", `{"op":"ping","id":{}}`: "INVALID_MESSAGE",
			`{"op":"order.place"}`: "INVALID_MESSAGE", `{"op":"ping","id":"\ud800"}`: "INVALID_MESSAGE",
			subscribe(`"args":[]`): "INVALID_MESSAGE", subscribe(`"args":"orders"`): "INVALID_MESSAGE", subscribe(`"args":[1]`): "INVALID_MESSAGE", subscribe(`"args":[null]`): "INVALID_MESSAGE", subscribe(`"args":["orders"],"data":[]`): "INVALID_MESSAGE",
			subscribe(`"args":["orders"],"data":{"customer_code":1}`): "INVALID_MESSAGE", subscribe(`"args":["orders"],"data":{"token":"x"}`): "INVALID_MESSAGE",
			subscribe(`"args":["weather"]`): "UNKNOWN_TOPIC", subscribe(`"args":["orders:BTCUSDC_PERP"]`): "UNKNOWN_TOPIC", subscribe(`"args":["orderbook-stream"]`): "UNKNOWN_TOPIC", subscribe(`"args":["Orders"]`): "UNKNOWN_TOPIC",
			subscribe(`"args":["orderbook-stream:XRPUSDC_PERP"]`): "UNKNOWN_SYMBOL", subscribe(`"args":["market-trades:btcusdc_perp"]`): "UNKNOWN_SYMBOL", subscribe(`"args":["market-trades:*"]`): "UNKNOWN_SYMBOL",
			`{"op":"unsubscribe","args":["orders"]}`:                       "NOT_SUBSCRIBED",
			subscribe(`"args":["orders"],"data":{"customer_code":"ANNA"}`): "", subscribe(`"args":["orders"],"data":{"customer_code":"NOBODY"}`): "",
			subscribe(`"args":["orders"],"resume_from":"x"`): "", subscribe(`"args":["orders"],"resume_from":"identity/0@1"`): "", subscribe(`"args":["orders"],"resume_from":"trading/0@99999999"`): "",
		},
	} {
		token := ""
		if user != "" {
			token = d.token(user)
		}
		socket := livetest.Dial(t, d.WebSocket, token)
		for text, code := range table {
			socket.SendText([]byte(text))
			m := socket.Next("an answer to "+text, func(m livetest.Message) bool { return m.Op != "" })
			if m.Op != "error" || m.Message == "" || code != "" && m.Code != code {
				t.Errorf("%q is answered with %s, want %s", text, m.Raw, code)
			}
		}
		socket.Send(livetest.Request{Op: "ping"})
		socket.Next("a pong", func(m livetest.Message) bool { return m.Op == "pong" })
		for _, m := range socket.Messages() {
			if m.Op == "subscribed" || m.Op == "authenticated" || m.Channel != "" && !strings.HasPrefix(m.Op, "error") {
				t.Errorf("as %q: %s", user, m.Raw)
			}
		}
	}
	// What is no UTF-8 ends the connection, as RFC 6455 has it.
	broken := livetest.Dial(t, d.WebSocket, "")
	broken.SendText([]byte("{\"op\":\"ping\",\"id\":\"\xff\"}"))
	if code, _ := broken.Closed(); code != websocket.CloseInvalidFramePayloadData {
		t.Errorf("a message that is no UTF-8 closed with %d", code)
	}
	// What is far too large ends the connection.
	huge := livetest.Dial(t, d.WebSocket, "")
	// The end may come while it is still being sent.
	_ = huge.Socket().WriteMessage(websocket.TextMessage, []byte(`{"op":"ping","id":"`+strings.Repeat("x", 1<<20)+`"}`))
	if code, _ := huge.Closed(); code == 1000 {
		t.Errorf("a message of a mebibyte closed with %d", code)
	}
	if _, response, err := livetest.TryDial(t, d.WebSocket, "garbage"); err == nil || response == nil || response.StatusCode != 401 {
		t.Errorf("a handshake with a bad token: %v, %v", response, err)
	}
}
