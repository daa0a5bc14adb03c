package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// lastOn returns the members of the last message on a topic, nil before the first.
func lastOn(c *livetest.Client, topic string) map[string]string {
	all := c.On(topic)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1].Fields()
}

// TestTickersAndCandlesAsRESTHasThem: what the channels show is, figure by figure, what REST answers; it comes when
// something has changed, and soon after subscribing.
func TestTickersAndCandlesAsRESTHasThem(t *testing.T) {
	t.Parallel()
	v := startVenue(t)
	v.fund("100000", "ANNA", "BEN")
	c := livetest.Dial(t, v.WebSocket, "")
	const ticker, candles = "ticker:BTCUSDC_PERP", "candles:1m:BTCUSDC_PERP"
	c.Subscribe(ticker, "tickers", candles, "candles:1d:BTCUSDC_PERP")
	waitFor(t, "the tickers of all instruments", func() bool {
		symbols := make(map[string]bool)
		for _, m := range c.On("tickers") {
			symbols[m.Symbol] = true
		}
		return len(symbols) == 3 && lastOn(c, ticker)["mark_price"] == "65000.0"
	})
	v.must(201, "broker-a", http.MethodPost, "/v1/customers/ANNA/orders", `{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.2","limit_price":"65000"}`)
	bought := v.must(201, "broker-a", http.MethodPost, "/v1/customers/BEN/orders", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.1","limit_price":"65000"}`)
	waitFor(t, "the trade in ticker and candles", func() bool {
		among := slices.ContainsFunc(c.On("tickers"), func(m livetest.Message) bool {
			return m.Symbol == "BTCUSDC_PERP" && m.Fields()["volume_24h"] == "0.100"
		})
		return among && lastOn(c, ticker)["last_price"] == "65000.0" && lastOn(c, candles)["volume"] == "0.100" &&
			lastOn(c, "candles:1d:BTCUSDC_PERP")["trades"] == "1"
	})
	for topic, path := range map[string]string{ticker: "/v1/tickers?symbol=BTCUSDC_PERP", "candles:1d:BTCUSDC_PERP": "/v1/candles/BTCUSDC_PERP?interval=1d"} {
		var list []map[string]any
		if err := json.Unmarshal(v.must(200, "", http.MethodGet, path, nil, "X-Min-Log-Position", bought.Header.Get("X-Log-Position")).Body, &list); err != nil || len(list) != 1 {
			t.Fatalf("%s: %v %v", path, err, list)
		}
		shown := lastOn(c, topic)
		if len(shown) != len(list[0])+2 {
			t.Errorf("%s: %v, over REST %v", topic, shown, list[0])
		}
		for name, value := range list[0] {
			if text, ok := value.(string); ok && shown[name] != text {
				t.Errorf("%s: %s is %s, over REST %s", topic, name, shown[name], text)
			}
		}
	}
	if m := c.Ask(livetest.Request{Op: "subscribe", Args: []string{"candles:2m:BTCUSDC_PERP"}}); m.Code != "UNKNOWN_TOPIC" {
		t.Errorf("%s", m.Raw)
	}
	if m := c.Ask(livetest.Request{Op: "subscribe", Args: []string{"candles:1m:NONE"}}); m.Code != "UNKNOWN_SYMBOL" {
		t.Errorf("%s", m.Raw)
	}
}
