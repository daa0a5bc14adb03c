package trading

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/market"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// FuzzOrderEntry reads bodies. What is let through must have no fault left but those that only the engine can see: of
// the instrument's grid and bounds, and of the time.
func FuzzOrderEntry(f *testing.F) {
	for _, body := range []string{
		`{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.5","limit_price":"65000","reference_id":"r"}`,
		`{"symbol":"BTCUSDC_PERP","action":"sell","type":"market","cash_amount":"10","leverage":"13"}`,
		`{"symbol":"BTCUSDC_PERP","action":"sell","type":"stop_loss","amount":"1","trigger_price":"1","time_in_force":"GTD","expire_time":"2030-01-01T00:00:00.000000Z"}`,
		`{"symbol":"BTCUSDC_PERP","action":"buy","type":"take_profit_limit","amount":"1","trigger_price":"1","limit_price":"1","post_only":true}`,
		`{"symbol":"BTCUSDC_PERP","action":"buy","type":"take_profit_stop_loss","amount":"1","stop_loss_price":"1","take_profit_price":"2","leverage":1}`,
		`{"symbol":"\ud800","action":1e5,"type":null,"x":[{}]}`,
	} {
		f.Add(body)
	}
	instrument := market.Instrument{Symbol: "BTCUSDC_PERP", Underlying: "BTC", QuoteCurrency: "USDC", SettlementCurrency: "USDC",
		MaxLeverage: 13, FundingIntervalSeconds: 3600}
	for text, to := range map[string]interface{ UnmarshalText([]byte) error }{
		"0.1": &instrument.PriceTick, "0.001": &instrument.AmountStep, "0.002": &instrument.MinAmount, "1000": &instrument.MaxAmount, "1": &instrument.ContractSize,
		"5": &instrument.InitMarginReq, "2.5": &instrument.MaintMarginReq, "6": &instrument.PriceBand, "20": &instrument.LimitBand,
	} {
		if err := to.UnmarshalText([]byte(text)); err != nil {
			f.Fatal(err)
		}
	}
	contract := market.NewContract(instrument.Normal())
	engine := []string{"INVALID_AMOUNT_STEP", "AMOUNT_BELOW_MINIMUM", "AMOUNT_ABOVE_MAXIMUM", "INVALID_PRICE_TICK", "INVALID_PRICE",
		"INVALID_CASH_AMOUNT", "INVALID_EXPIRE_TIME"}
	e := echo.New()
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		form := web.Body(e.NewContext(r, httptest.NewRecorder()))
		ask := readOrder(form, "A-1")
		if form.Done() != nil {
			return
		}
		for _, fault := range domain.CheckOrder(contract, ask, 0) {
			if !slices.Contains(engine, fault.Code) {
				t.Errorf("%s is let through with %v", body, fault)
			}
		}
		if print := Fingerprint(normal(ask)); len(print) != 32 {
			t.Errorf("fingerprint %q", print)
		}
	})
}
