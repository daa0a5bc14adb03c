package live

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/market"
)

// Code is the code of an error message.
type Code string

// These are the codes of error messages.
const (
	UnknownSymbol           Code = "UNKNOWN_SYMBOL"
	UnknownTopic            Code = "UNKNOWN_TOPIC"
	AlreadySubscribed       Code = "ALREADY_SUBSCRIBED"
	NotSubscribed           Code = "NOT_SUBSCRIBED"
	InvalidMessage          Code = "INVALID_MESSAGE"
	AuthenticationRequired  Code = "AUTHENTICATION_REQUIRED"
	AuthenticationFailed    Code = "AUTHENTICATION_FAILED"
	Forbidden               Code = "FORBIDDEN"
	ReadOnly                Code = "READ_ONLY" // at a node that follows the venue
	SlowConsumer            Code = "SLOW_CONSUMER"
	RateLimited             Code = "RATE_LIMITED"
	ResumeTooOld            Code = "RESUME_TOO_OLD"
	UpstreamError           Code = "UPSTREAM_ERROR" // private channels
	OrderbookUpstreamError  Code = "ORDERBOOK_STREAM_UPSTREAM_ERROR"
	OrderbookUpstreamReject Code = "ORDERBOOK_STREAM_UPSTREAM_REJECT"
	TradesUpstreamError     Code = "MARKET_TRADES_UPSTREAM_ERROR"
	TradesUpstreamReject    Code = "MARKET_TRADES_UPSTREAM_REJECT"
)

// These are the operations that are not order entry.
const (
	opSubscribe    = "subscribe"
	opUnsubscribe  = "unsubscribe"
	opAuthenticate = "authenticate"
	opPing         = "ping"
)

// Operations returns the valid values of op.
func Operations() []string {
	return []string{opSubscribe, opUnsubscribe, opAuthenticate, opPing, opPlace, opAmend, opCancel, opPlaceBatch, opAmendBatch, opCancelBatch, opCancelAll}
}

// suffix is the form of the part of a topic after the channel's name and a colon.
type suffix uint8

const (
	noSuffix suffix = iota
	symbolSuffix
	intervalAndSymbol
)

// channel is a kind of topic.
type channel struct {
	name      string
	private   bool // requires a token with the scope read
	suffix    suffix
	resumable bool // every message is in the log, so a subscription may begin with missed ones
	snapshots bool // begins with a snapshot
	failed    Code // error code if the log cannot be read
	refused   Code // error code if the instrument is withdrawn
}

// These are the channels.
var (
	orders         = &channel{name: "orders", private: true, resumable: true, failed: UpstreamError}
	trades         = &channel{name: "trades", private: true, resumable: true, failed: UpstreamError}
	balanceChanges = &channel{name: "balance-changes", private: true, resumable: true, failed: UpstreamError}
	positionsNow   = &channel{name: "positions", private: true, snapshots: true, failed: UpstreamError}
	marginNow      = &channel{name: "margin", private: true, snapshots: true, failed: UpstreamError}
	orderbook      = &channel{name: "orderbook-stream", suffix: symbolSuffix, failed: OrderbookUpstreamError, refused: OrderbookUpstreamReject}
	marketTrades   = &channel{name: "market-trades", suffix: symbolSuffix, resumable: true, failed: TradesUpstreamError, refused: TradesUpstreamReject}
	ticker         = &channel{name: "ticker", suffix: symbolSuffix, failed: UpstreamError, refused: UnknownSymbol}
	tickers        = &channel{name: "tickers", failed: UpstreamError}
	candles        = &channel{name: "candles", suffix: intervalAndSymbol, failed: UpstreamError, refused: UnknownSymbol}
	instruments    = &channel{name: "instruments", failed: UpstreamError}
	liquidations   = &channel{name: "liquidations", resumable: true, failed: UpstreamError}
)

func channels() []*channel {
	return []*channel{orders, trades, balanceChanges, positionsNow, marginNow, orderbook, marketTrades, ticker, tickers, candles, instruments, liquidations}
}

// topic returns the channel's topic with a suffix, which is "" if the channel has none.
func (c *channel) topic(of string) string {
	if c.suffix == noSuffix {
		return c.name
	}
	return c.name + ":" + of
}

// parseTopic returns the channel of a topic, its suffix, and the symbol in the suffix. It returns false if there is
// no such topic.
func parseTopic(topic string) (c *channel, of, symbol string, ok bool) {
	name, of, suffixed := strings.Cut(topic, ":")
	for _, c := range channels() {
		if c.name != name || suffixed != (c.suffix != noSuffix) {
			continue
		}
		symbol := of
		if c.suffix == intervalAndSymbol {
			var interval string
			interval, symbol, _ = strings.Cut(of, ":")
			if _, known := market.ParseInterval(interval); !known {
				return nil, "", "", false
			}
		}
		return c, of, symbol, !suffixed || symbol != ""
	}
	return nil, "", "", false
}

// topicsOf returns the suffixes of the channel's topics about a symbol.
func (c *channel) topicsOf(symbol string) (all []string) {
	switch c.suffix {
	case symbolSuffix:
		return []string{symbol}
	case intervalAndSymbol:
		for _, i := range market.Intervals() {
			all = append(all, i.String()+":"+symbol)
		}
	}
	return all
}
