package live

import "strings"

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
	return []string{opSubscribe, opUnsubscribe, opAuthenticate, opPing, opPlace, opAmend, opCancel, opPlaceBatch, opCancelBatch, opCancelAll}
}

// channel is a kind of topic.
type channel struct {
	name    string
	private bool // needs a token with the scope read; otherwise the topic has a symbol suffix
	failed  Code // when the log cannot be read
	refused Code // when the instrument is withdrawn
}

// The channels.
var (
	orders         = &channel{name: "orders", private: true, failed: UpstreamError}
	trades         = &channel{name: "trades", private: true, failed: UpstreamError}
	balanceChanges = &channel{name: "balance-changes", private: true, failed: UpstreamError}
	orderbook      = &channel{name: "orderbook-stream", failed: OrderbookUpstreamError, refused: OrderbookUpstreamReject}
	marketTrades   = &channel{name: "market-trades", failed: TradesUpstreamError, refused: TradesUpstreamReject}
)

func channels() []*channel {
	return []*channel{orders, trades, balanceChanges, orderbook, marketTrades}
}

// Channels lists the topics that can be subscribed to, with {symbol} where a symbol belongs.
func Channels() []string {
	var names []string
	for _, c := range channels() {
		if c.private {
			names = append(names, c.name)
		} else {
			names = append(names, c.name+":{symbol}")
		}
	}
	return names
}

// topic returns the channel's topic for a symbol, or for the empty symbol of a private channel.
func (c *channel) topic(symbol string) string {
	if c.private {
		return c.name
	}
	return c.name + ":" + symbol
}

// parseTopic returns the channel and symbol of a topic, and false if there is no such channel.
func parseTopic(topic string) (*channel, string, bool) {
	name, symbol, suffixed := strings.Cut(topic, ":")
	for _, c := range channels() {
		if c.name == name && suffixed != c.private {
			return c, symbol, !suffixed || symbol != ""
		}
	}
	return nil, "", false
}
