package journals

import (
	"encoding"
	"reflect"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/peer"
)

// texts are read by the text forms of the payloads' members.
var texts = []string{"1.25", "7", "2026-01-02T03:04:05.000006Z", "11111111-2222-8333-8444-555555555555", "2026-01-02", "word",
	strings.Repeat("A", 42) + "g="} // a hash

// fill gives every member a value that is not zero. It fails on members that a command cannot carry to another node.
func fill(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		for _, text := range texts {
			if u.UnmarshalText([]byte(text)) == nil {
				return
			}
		}
		t.Errorf("%s: no text for %s", path, v.Type())
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				t.Errorf("%s.%s is not exported", path, f.Name)
			} else if f.Tag.Get("json") != "-" { // the rules set it, not the command
				fill(t, v.Field(i), path+"."+f.Name)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), path+"[]")
		}
	case reflect.String:
		v.SetString("word")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	default:
		t.Errorf("%s is %s", path, v.Type())
	}
}

// empty sets every list to one without elements and every pointer to a zero value, which both differ from none.
func empty(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			empty(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
	}
}

// TestPayloadsTravel: the owner on another node gets the payload of every command as it was submitted: without anything, with
// all members, and with empty ones.
func TestPayloadsTravel(t *testing.T) {
	for _, j := range All() {
		for _, name := range j.Payloads.Types() {
			t.Run(j.Name()+" "+name, func(t *testing.T) {
				for _, change := range []func(reflect.Value){func(reflect.Value) {}, func(v reflect.Value) { fill(t, v, name) }, empty} {
					sent, _ := j.Payloads.New(name)
					change(reflect.ValueOf(sent).Elem())
					b, err := peer.EncodePayload(sent)
					if err != nil {
						t.Fatal(err)
					}
					got, _ := j.Payloads.New(name)
					if err := peer.DecodePayload(b, got); err != nil || !reflect.DeepEqual(sent, got) {
						t.Errorf("%v\nsent %+v\ngot  %+v\nas   %s", err, sent, got, b)
					}
				}
			})
		}
	}
}

// TestOrdersTravelWithoutAbsentMembers: the owner does not read what an order does not have.
func TestOrdersTravelWithoutAbsentMembers(t *testing.T) {
	sent := &trading.PlaceOrder{CustomerCode: "C", Symbol: "S", Action: order.Buy, Type: order.Market, Amount: fixed.Decimal{Coef: 1}}
	const want = `{"CustomerCode":"C","Symbol":"S","Action":"buy","Type":"market","Amount":"1"}`
	if b, err := peer.EncodePayload(sent); err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
}

// TestEndsWithoutReasonsTravelToEarlierBuilds: a proposal is rejected and withdrawn also while the owner's build knows no reasons.
func TestEndsWithoutReasonsTravelToEarlierBuilds(t *testing.T) {
	for _, p := range []decide.Payload{&decide.RejectProposal{ID: scalar.ID{1}}, &decide.WithdrawProposal{ID: scalar.ID{1}}} {
		b, err := peer.EncodePayload(p)
		if err != nil {
			t.Fatal(err)
		}
		var earlier decide.ConfirmProposal // has the form that all three had
		if err := peer.DecodePayload(b, &earlier); err != nil || earlier.ID != (scalar.ID{1}) {
			t.Errorf("%s travels as %s: %v", p.CommandType(), b, err)
		}
	}
}
