package reference_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/reference"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// TestTheAuditorFindsWhatIsWrong: records of a market in which one thing is another, at the first place where it can be, each
// with the hash of the one before it.
func TestTheAuditorFindsWhatIsWrong(t *testing.T) {
	v := openVenue(t, 3, scalar.TimeOf(time.Date(2027, 3, 1, 7, 59, 50, 0, time.UTC)))
	v.keeps = true
	log := v.market(20)
	if err := replay(log, func(value []byte) []byte { return value }); err != nil {
		t.Fatalf("nothing is changed, and the auditor says %v", err)
	}
	leave := func(what string) func([]byte) []byte {
		return func(value []byte) []byte {
			if bytes.Contains(value, []byte(what)) {
				return nil
			}
			return value
		}
	}
	for name, test := range map[string]struct {
		change func([]byte) []byte
		want   string // a pattern
	}{
		"a deposit's balance":         {replace(`("type":"deposit","currency":"USDC","amount":"\d+","balance":"\d+)"`, `$1.00000001"`), "the balance of"},
		"a trade's price":             {replace(`("type":"trade.executed".{60,120}"price":"\d*)\d(\.\d+)?"`, `${1}7$2"`), "a trade"},
		"a trade's fee":               {replace(`("fee":"\d+)\.\d`, `${1}.99`), "the fees of a trade"},
		"a mark price":                {replace(`("mark_price":"\d+)\d`, `${1}9`), "the mark of"},
		"a position's cost":           {replace(`("cost":"-?\d+)`, `${1}1`), "holds"},
		"an order's filled amount":    {replace(`("status":"filled","amount":"[0-9.]+","filled_amount":")`, `${1}9`), "are filled"},
		"a stop that does not fire":   {leave(`"work":"trigger"`), "trigger is due|fires, and not"},
		"when a stop fired":           {replace(`("triggered":"20)\d`, `${1}9`), "says that it fired at"},
		"a stop that says nothing":    {replace(`,"triggered":"[^"]*"`, ``), "says that it fired at"},
		"a funding that is not fixed": {leave(`"work":"funding"`), "funding is due"},
		"a settlement not fixed":      {leave(`"work":"settlement"`), "settlement is due"},
		"a funding rate":              {replace(`("type":"funding.fixed".{20,80}"funding_rate":"-?\d\.\d{7})\d`, `${1}9`), "the funding rate of"},
		"a posting that is left out":  {leave(`"work":"posting"`), "the balance of|owes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := replay(log, test.change)
			if err == nil || !regexp.MustCompile(test.want).MatchString(err.Error()) {
				t.Errorf("the auditor says %v, not: %s", err, test.want)
			}
		})
	}
}

// replace returns a change of the first match of a pattern in a record.
func replace(pattern, by string) func([]byte) []byte {
	find := regexp.MustCompile(pattern)
	return func(value []byte) []byte {
		if at := find.FindIndex(value); at != nil {
			return bytes.Join([][]byte{value[:at[0]], find.ReplaceAll(value[at[0]:at[1]], []byte(by)), value[at[1]:]}, nil)
		}
		return value
	}
}

// market has a market go on for so many seconds, and returns its records.
func (v *venue) market(seconds int) [][]byte {
	c := openCrowd(v, 3, 80, trading.Rules().Newest())
	for range seconds {
		c.second()
	}
	return v.tail
}

var chained = regexp.MustCompile(`^\{"sequence":\d+,"prev":"[0-9a-f]{64}"`)

// replay has a new auditor read a log, of which the first record that a change makes another is changed, or left out.
func replay(log [][]byte, change func([]byte) []byte) error {
	a := reference.New()
	var tip [sha256.Size]byte
	sequence, changed := 0, false
	check := func(value []byte) error {
		value = chained.ReplaceAll(value, fmt.Appendf(nil, `{"sequence":%d,"prev":"%x"`, sequence, tip))
		tip = sha256.Sum256(value)
		sequence++
		return a.Check(value)
	}
	for _, value := range log {
		if other := change(value); !changed && !bytes.Equal(other, value) {
			changed = true
			if value = other; value == nil {
				continue
			}
		}
		if err := check(value); err != nil {
			return err
		}
	}
	return nil
}
