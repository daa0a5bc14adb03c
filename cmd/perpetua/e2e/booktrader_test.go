package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gorilla/websocket"
)

// bookTrader moves the book of bitcoin over a socket, with a few requests under way at once: mostly limit orders around 65,000,
// some of which cross, market orders, stops that fire, orders that expire, batches, cancels, amendments and mass cancels.
type bookTrader struct {
	customer string
	random   *rand.Rand
	orders   []string // codes of those that were live when they were last heard of

	socket  *websocket.Conn
	sent    int
	placing map[string]bool // ids of the requests under way, and whether they place an order
	done    int             // requests that were done as asked
}

// underWay is how many requests of a trader are under way at once.
const underWay = 16

// round gives so many commands, and calls each, if there is one, before each of them.
func (b *bookTrader) round(url, token string, commands int, each func() error) error {
	socket, response, err := websocket.DefaultDialer.Dial(url, http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		return err
	}
	response.Body.Close()
	defer socket.Close()
	if err := socket.SetReadDeadline(time.Now().Add(10 * patience)); err != nil {
		return err
	}
	b.socket, b.placing = socket, make(map[string]bool)
	for range commands {
		if each != nil {
			if err := each(); err != nil {
				return err
			}
		}
		if err := b.send(); err != nil {
			return err
		}
		if len(b.placing) >= underWay {
			if err := b.result(); err != nil {
				return err
			}
		}
	}
	for len(b.placing) > 0 {
		if err := b.result(); err != nil {
			return err
		}
	}
	return nil
}

// send sends one command.
func (b *bookTrader) send() error {
	op, data := b.command()
	id := strconv.Itoa(b.sent)
	b.sent++
	b.placing[id] = op == "order.place"
	return b.socket.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"op":%q,"id":%q,"data":{"customer_code":%q%s}}`, op, id, b.customer, data))
}

func (b *bookTrader) command() (op, data string) {
	n := b.random.IntN(100)
	if len(b.orders) == 0 {
		n %= 60
	} else if len(b.orders) > 100 {
		n = 60 + n%40
	}
	switch {
	case n < 42:
		return "order.place", "," + b.limit()
	case n < 46:
		return "order.place", "," + b.limit() + `,"post_only":true`
	case n < 49:
		return "order.place", "," + b.limit() + fmt.Sprintf(`,"time_in_force":"GTD","expire_time":%d`, time.Now().Add(time.Second).UnixMilli())
	case n < 54:
		return "order.place", fmt.Sprintf(`,"symbol":%q,"action":%q,"type":"market","amount":"0.0%02d"`, bitcoin, b.action(), 1+b.random.IntN(40))
	case n < 57:
		action := b.action()
		return "order.place", fmt.Sprintf(`,"symbol":%q,"action":%q,"type":"stop_loss","amount":"0.005","trigger_price":"%d"`, bitcoin, action,
			map[string]int{"buy": 65_002, "sell": 64_998}[action])
	case n < 60:
		return "order.place_batch", fmt.Sprintf(`,"orders":[{%s},{%s},{%s}]`, b.limit(), b.limit(), b.limit())
	case n < 85:
		k := b.random.IntN(len(b.orders))
		code := b.orders[k]
		b.orders = slices.Delete(b.orders, k, k+1)
		return "order.cancel", fmt.Sprintf(`,"order_code":%q`, code)
	case n < 99:
		code := b.orders[b.random.IntN(len(b.orders))]
		if b.random.IntN(2) == 0 {
			return "order.amend", fmt.Sprintf(`,"order_code":%q,"amount":"0.%03d"`, code, 1+b.random.IntN(40))
		}
		return "order.amend", fmt.Sprintf(`,"order_code":%q,"limit_price":%q`, code, b.price("buy"))
	}
	b.orders = nil
	return "order.cancel_all", fmt.Sprintf(`,"symbol":%q`, bitcoin)
}

func (b *bookTrader) action() string { return []string{"buy", "sell"}[b.random.IntN(2)] }

func (b *bookTrader) limit() string {
	action := b.action()
	return fmt.Sprintf(`"symbol":%q,"action":%q,"type":"limit","amount":"0.%03d","limit_price":%q`, bitcoin, action, 1+b.random.IntN(30), b.price(action))
}

// price is one of 300 ticks on the side's own half, or a little beyond the middle.
func (b *bookTrader) price(action string) string {
	ticks := b.random.IntN(300) - 20
	if action == "buy" {
		ticks = -ticks
	}
	return strconv.FormatFloat(65_000+float64(ticks)/10, 'f', 1, 64)
}

// result reads the answer to one of the commands.
func (b *bookTrader) result() error {
	_, raw, err := b.socket.ReadMessage()
	if err != nil {
		return err
	}
	var m struct {
		Op, ID string
		Status int
		Data   json.RawMessage
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return fmt.Errorf("%w: %s", err, raw)
	}
	data := answer{Status: m.Status, Body: m.Data}
	placing, asked := b.placing[m.ID]
	delete(b.placing, m.ID)
	switch {
	case m.Op != "result" || !asked:
		return fmt.Errorf("unexpected: %s", raw)
	case m.Status >= 500 && !data.busy(): // a busy machine may make it answer so
		return fmt.Errorf("an order was answered with %s", raw)
	case m.Status < 300:
		b.done++
		if status := data.get("status"); placing && (status == "open" || status == "partially_filled") {
			b.orders = append(b.orders, data.get("code"))
		}
	}
	return nil
}
