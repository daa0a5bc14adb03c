package commitment_test

import (
	"bufio"
	"os"
	"testing"
)

// BenchmarkRoot computes the roots of the records in a file, one value a line. PERPETUA_BENCH_RECORDS names it; without one it
// takes an order that rests and one that trades.
func BenchmarkRoot(b *testing.B) {
	records := [][]byte{aRecord(1, desk, "order.opened", resting), aRecord(2, desk, "trade.executed", trade, "order.filled", resting, "order.partially_filled", resting)}
	if name := os.Getenv("PERPETUA_BENCH_RECORDS"); name != "" {
		f, err := os.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		records = nil
		lines := bufio.NewScanner(f)
		for lines.Buffer(nil, 8<<20); lines.Scan(); {
			records = append(records, append([]byte(nil), lines.Bytes()...))
		}
	}
	c, key, units, size := committer(b, "trading"), epochKey(b, 1), 0, 0
	for _, r := range records {
		t, err := c.Tree(key, 1, r)
		if err != nil {
			b.Fatal(err)
		}
		units, size = units+len(t.Units), size+len(r)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if _, err := c.Root(key, int64(n), records[n%len(records)]); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(units)/float64(len(records)), "units/record")
	b.ReportMetric(float64(size)/float64(len(records)), "bytes/record")
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
}

const (
	resting = `{"code":"76cc4f97-9324-8ff8-aa7d-bc7aa4813a3b","customer_code":"bob","broker":"alpha","symbol":"BTCUSDC_PERP","action":"buy","type":"limit","status":"open","amount":"0.001","filled_amount":"0.000","filled_quote":"0","limit_price":"60000.0","time_in_force":"GTD","expire_time":"2026-01-01T00:01:49.000000Z","post_only":false,"reduce_only":false,"reference_id":"bob-5","created":"2026-01-01T00:01:39.000000Z","updated":"2026-01-01T00:01:39.000000Z"}`
	trade   = `{"code":"59a3452c-e6df-8fbb-9e53-6b74b6ecba2e","symbol":"BTCUSDC_PERP","price":"66000.0","amount":"0.100","notional":"6600","action":"buy","type":"trade","taker":{"order_code":"a23e3880-31ec-8155-b20e-a191e3fd67e4","customer_code":"bob","broker":"alpha","fee":"1.98","reference_id":"a23e3880-31ec-8155-b20e-a191e3fd67e4"},"maker":{"order_code":"b989f3dc-a998-828a-84f7-15271109bcc4","customer_code":"C821b36008753","broker":"alpha","fee":"1.32","reference_id":"alice-2"},"positions":[{"customer_code":"bob","symbol":"BTCUSDC_PERP","amount":"-0.400","cost":"-26000.04","entry_price":"65000.1"},{"customer_code":"C821b36008753","symbol":"BTCUSDC_PERP","amount":"0.400","cost":"26000.04","entry_price":"65000.1"}],"postings":[{"code":"59a3452c-e6df-8fbb-9e53-6b74b6ecba2e","customer_code":"bob","type":"trade","currency":"USDC","amount":"-99.99","balance":"999639.759985","symbol":"BTCUSDC_PERP","order_code":"a23e3880-31ec-8155-b20e-a191e3fd67e4"},{"account":"clearing","type":"trade","currency":"USDC","amount":"99.99","balance":"99.99","symbol":"BTCUSDC_PERP"},{"code":"59a3452c-e6df-8fbb-9e53-6b74b6ecba2e","customer_code":"bob","type":"trade_fee","currency":"USDC","amount":"-1.98","balance":"999637.779985","symbol":"BTCUSDC_PERP","order_code":"a23e3880-31ec-8155-b20e-a191e3fd67e4"},{"account":"fees","type":"trade_fee","currency":"USDC","amount":"1.98","balance":"18.230025","symbol":"BTCUSDC_PERP"},{"code":"59a3452c-e6df-8fbb-9e53-6b74b6ecba2e","customer_code":"C821b36008753","type":"trade","currency":"USDC","amount":"99.99","balance":"1000093.48999","symbol":"BTCUSDC_PERP","order_code":"b989f3dc-a998-828a-84f7-15271109bcc4"},{"account":"clearing","type":"trade","currency":"USDC","amount":"-99.99","balance":"0","symbol":"BTCUSDC_PERP"},{"code":"59a3452c-e6df-8fbb-9e53-6b74b6ecba2e","customer_code":"C821b36008753","type":"trade_fee","currency":"USDC","amount":"-1.32","balance":"1000092.16999","symbol":"BTCUSDC_PERP","order_code":"b989f3dc-a998-828a-84f7-15271109bcc4"},{"account":"fees","type":"trade_fee","currency":"USDC","amount":"1.32","balance":"19.550025","symbol":"BTCUSDC_PERP"}]}`
)
