package admin

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/opening"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// sampleOpening is a file of two accounts.
func sampleOpening() string {
	body := strings.Join([]string{`{"type":"perpetua-opening","version":1,"source":"books of the old venue","journal":"01020304-0506-0708-090a-0b0c0d0e0f10"}`,
		`{"type":"balance","customer_code":"A-1","currency":"USDC","amount":"1000.5"}`,
		`{"type":"balance","customer_code":"A-2","currency":"USDC","amount":"2000"}`,
		`{"type":"position","customer_code":"A-1","symbol":"BTCUSDC_PERP","amount":"0.01","entry_price":"64000.12345678"}`,
		`{"type":"position","customer_code":"A-2","symbol":"BTCUSDC_PERP","amount":"-0.01","entry_price":"65000","lot":7}`}, "\n") + "\n"
	return body + fmt.Sprintf(`{"type":"end","balances":2,"balance_total":"3000.5","positions":2,"position_total":"0.02","sha256":"%x"}`, sha256.Sum256([]byte(body))) + "\n"
}

// TestNoDamagedFileIsRead: with any byte changed, removed, or doubled, and cut anywhere, a file is refused with the line, or means
// the same.
func TestNoDamagedFileIsRead(t *testing.T) {
	file := sampleOpening()
	want, errs := readOpening([]byte(file))
	if len(errs) > 0 || len(want.Lines) != 4 || want.Lines[2].Lot != 1 || want.Lines[3].Lot != 7 || want.Lines[3].Number != 5 || want.SHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte(file))) {
		t.Fatalf("the file is read as %+v, %v", want, errs)
	}
	accepted := 0
	check := func(damaged string) {
		if damaged == file {
			return
		}
		got, errs := readOpening([]byte(damaged))
		if len(errs) > 0 {
			for _, e := range errs {
				if !strings.HasPrefix(e.Path.String(), "line[") || e.Code == "" || e.Message == "" {
					t.Errorf("an error without its place: %+v\n%s", e, damaged)
				}
			}
			return
		}
		accepted++
		if got.SHA256 = want.SHA256; !reflect.DeepEqual(got, want) {
			t.Errorf("read as %+v\n%s", got, damaged)
		}
	}
	for i := range file {
		for bit := range 8 {
			check(file[:i] + string([]byte{file[i] ^ 1<<bit}) + file[i+1:])
		}
		check(file[:i] + " " + file[i+1:])
		check(file[:i] + file[i+1:])
		check(file[:i] + file[i:i+1] + file[i:])
		check(file[:i])
	}
	lines := strings.SplitAfter(strings.TrimSuffix(file, "\n"), "\n")
	for i := range lines {
		check(strings.Join(slices.Delete(slices.Clone(lines), i, i+1), ""))
		check(strings.Join(slices.Insert(slices.Clone(lines), i, lines[i]), ""))
		for k := range i {
			swapped := slices.Clone(lines)
			swapped[i], swapped[k] = swapped[k], swapped[i]
			check(strings.Join(swapped, ""))
		}
	}
	if accepted == 0 || accepted > 10 { // only the last line break may differ
		t.Errorf("%d damaged files are read", accepted)
	}
}

// TestFaultsNameTheirLine: an amount that cannot be counted is an error of its line, and not of the sums in the last one. The last
// line has a total of its own, so that no sum can hide the error.
func TestFaultsNameTheirLine(t *testing.T) {
	header := `{"type":"perpetua-opening","version":1,"source":"books"}`
	balance := func(amount string) string {
		return `{"type":"balance","customer_code":"A-1","currency":"USDC","amount":"` + amount + `"}`
	}
	position := func(amount, price string) string {
		return `{"type":"position","customer_code":"A-1","symbol":"BTCUSDC_PERP","amount":"` + amount + `","entry_price":"` + price + `"}`
	}
	for _, c := range []struct{ line, total, want string }{
		{balance("99999999999"), "99999999999", "line[2].amount INVALID_AMOUNT"},
		{balance("92233720369"), "0", "line[2].amount INVALID_AMOUNT"},
		{balance("99999999999999999999"), "0", "line[2].amount TOO_MANY_DIGITS"},
		{balance("1.123456789"), "1.123456789", "line[2].amount INVALID_AMOUNT"},
		{balance("-5"), "-5", "line[2].amount INVALID_AMOUNT"},
		{balance("5"), "6", "line[3].balance_total SUM_MISMATCH"},
		{position("99999999999", "1"), "0", "line[2].amount INVALID_AMOUNT"},
		{position("1", "0"), "0", "line[2].entry_price INVALID_PRICE"},
	} {
		body := header + "\n" + c.line + "\n"
		balances := strings.Count(body, `"balance"`)
		_, errs := readOpening([]byte(body + fmt.Sprintf(`{"type":"end","balances":%d,"balance_total":"%s","positions":%d,"position_total":"0","sha256":"%x"}`,
			balances, c.total, 1-balances, sha256.Sum256([]byte(body)))))
		if len(errs) != 1 || errs[0].Path.String()+" "+errs[0].Code != c.want {
			t.Errorf("%s with the total %s: %+v, not %s", c.line, c.total, errs, c.want)
		}
	}
}

// FuzzReadOpening: whatever is sent, the reader returns a file that passes its checks, or errors with their lines.
func FuzzReadOpening(f *testing.F) {
	f.Add([]byte(sampleOpening()))
	f.Add([]byte(""))
	f.Add([]byte("{}\n{}"))
	f.Add([]byte(`{"type":"perpetua-opening","version":1,"source":"x"}` + "\n" + `{"type":"end","balances":0,"balance_total":"0","positions":0,"position_total":"0","sha256":""}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		file, errs := readOpening(raw)
		if len(errs) > validation.MaxErrors {
			t.Errorf("%d errors", len(errs))
		}
		var again validation.Errors
		if file.Check(&again); len(errs) == 0 && (len(again.List) > 0 || len(file.Lines) > opening.MaxLines) {
			t.Errorf("%+v is read, and has the errors %v", file, again.List)
		}
	})
}
