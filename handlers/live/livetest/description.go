package livetest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/perpetua-exchange/perpetua/schemas/bundle"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
)

// description parses the AsyncAPI file once.
var description = sync.OnceValues(func() (*conform.Document, error) {
	text, err := bundle.AsyncAPI()
	if err != nil {
		return nil, err
	}
	return conform.NewDocument("asyncapi/asyncapi.yaml", text, nil)
})

// payloads maps each kind of message to its schema. The key is the op, or the channel with the type if the channel
// has several types.
var payloads = map[string]string{
	"subscribed": "Subscribed", "unsubscribed": "Unsubscribed", "authenticated": "Authenticated", "pong": "Pong",
	"error": "Error", "result": "Result", "orders": "Order", "trades": "Trade", "balance-changes": "BalanceChange",
	"orderbook-stream snapshot": "BookSnapshot", "orderbook-stream update": "BookUpdate", "market-trades": "MarketTrade",
	"positions": "PositionMessage", "margin": "MarginMessage", "ticker": "Ticker", "tickers": "Ticker", "candles": "Candle", "instruments": "Instrument", "liquidations": "Liquidation",
}

// checked contains messages that were valid, because readers of one topic get the same messages.
var checked sync.Map

// Check validates a message against the AsyncAPI file.
func Check(m Message) error {
	if _, known := checked.Load(string(m.Raw)); known {
		return nil
	}
	if err := check(m); err != nil {
		return err
	}
	checked.Store(string(m.Raw), nil)
	return nil
}

func check(m Message) error {
	doc, err := description()
	if err != nil {
		return err
	}
	kind := m.Op
	if kind == "" {
		kind, _, _ = strings.Cut(m.Channel, ":")
		if kind == "orderbook-stream" {
			kind += " " + m.Type
		}
	}
	name, known := payloads[kind]
	if !known {
		return fmt.Errorf("the AsyncAPI file knows no message like %s", m.Raw)
	}
	if err := doc.Validate("/components/schemas/"+name, m.Raw); err != nil {
		return fmt.Errorf("%s: %w", m.Raw, err)
	}
	return nil
}
