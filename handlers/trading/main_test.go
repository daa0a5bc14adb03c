package trading_test

import (
	"os"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

const (
	btc    = "BTCUSDC_PERP"
	a1, b1 = "/v1/customers/A-1", "/v1/customers/B-1"
)

// funded is a venue with two customers of alpha and one of beta, 100,000 USDC each, and a BTC price of 65,000.
func funded(t *testing.T) *tradingtest.Venue {
	t.Helper()
	return fundedOn(t, tradingtest.New(t))
}

// fundedOn adds the customers, their deposits, and an index price to a new venue.
func fundedOn(t *testing.T, v *tradingtest.Venue) *tradingtest.Venue {
	t.Helper()
	for _, c := range []struct{ user, code string }{{"broker-a", "A-1"}, {"broker-a", "A-2"}, {"broker-b", "B-1"}} {
		v.Send(c.user, "POST", "/v1/customers", `{"customer_code":"`+c.code+`"}`).Want(201)
		v.Send("operator", "POST", "/admin/v1/customers/"+c.code+"/deposits", `{"currency":"USDC","amount":"100000","reference_id":"d"}`).Want(201)
	}
	v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"65000"}`).Want(200)
	return v
}
