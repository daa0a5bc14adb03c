package live

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/market"
)

// Code is the code of an error message, as clients see it.
type Code string

// The codes of error messages.
const (
	UnknownSymbol           Code = "UNKNOWN_SYMBOL"
	UnknownTopic            Code = "UNKNOWN_TOPIC"
	AlreadySubscribed       Code = "ALREADY_SUBSCRIBED"
	NotSubscribed           Code = "NOT_SUBSCRIBED"
	InvalidMessage          Code = "INVALID_MESSAGE"
	AuthenticationRequired  Code = "AUTHENTICATION_REQUIRED"
	AuthenticationFailed    Code = "AUTHENTICATION_FAILED"
	Forbidden               Code = "FORBIDDEN"
	SlowConsumer            Code = "SLOW_CONSUMER"
	RateLimited             Code = "RATE_LIMITED"
	ResumeTooOld            Code = "RESUME_TOO_OLD"
	UpstreamError           Code = "UPSTREAM_ERROR" // on the private channels
	OrderbookUpstreamError  Code = "ORDERBOOK_STREAM_UPSTREAM_ERROR"
	OrderbookUpstreamReject Code = "ORDERBOOK_STREAM_UPSTREAM_REJECT"
	TradesUpstreamError     Code = "MARKET_TRADES_UPSTREAM_ERROR"
	TradesUpstreamReject    Code = "MARKET_TRADES_UPSTREAM_REJECT"
)

// Codes lists every code that an error message may carry.
func Codes() []Code {
	return []Code{
		UnknownSymbol, UnknownTopic, AlreadySubscribed, NotSubscribed, InvalidMessage, AuthenticationRequired,
		AuthenticationFailed, Forbidden, SlowConsumer, RateLimited, ResumeTooOld, UpstreamError,
		OrderbookUpstreamError, OrderbookUpstreamReject, TradesUpstreamError, TradesUpstreamReject,
	}
}

// The operations that a client may ask for.
const (
	opSubscribe    = "subscribe"
	opUnsubscribe  = "unsubscribe"
	opAuthenticate = "authenticate"
	opPing         = "ping"
)

// Operations lists what a client may put into op.
func Operations() []string {
	return []string{opSubscribe, opUnsubscribe, opAuthenticate, opPing, opPlace, opAmend, opCancel, opPlaceBatch, opAmendBatch, opCancelBatch, opCancelAll}
}

// suffix says what follows a channel's name in a topic, behind a colon.
type suffix uint8

const (
	noSuffix suffix = iota
	symbolSuffix
	intervalAndSymbol
)

// channel is a kind of topic.
type channel struct {
	name      string
	private   bool // needs a token with the scope read
	suffix    suffix
	resumable bool // its messages are in the log one by one, so a subscription may begin with those that were missed
	snapshots bool // begins with what there is
	failed    Code // when the log cannot be read
	refused   Code // when the instrument is withdrawn
}

// The channels.
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

// Channels lists the topics that can be subscribed to, with {symbol} and {interval} where those belong.
func Channels() []string {
	var names []string
	for _, c := range channels() {
		names = append(names, c.topic([...]string{"", "{symbol}", "{interval}:{symbol}"}[c.suffix]))
	}
	return names
}

// topic returns the channel's topic for what follows its name, "" for nothing.
func (c *channel) topic(of string) string {
	if c.suffix == noSuffix {
		return c.name
	}
	return c.name + ":" + of
}

// parseTopic returns the channel of a topic, what follows its name, and the symbol in that. It returns false if there is
// no such channel.
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

// topicsOf returns what follows the channel's name in the topics of a symbol.
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
