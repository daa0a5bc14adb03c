package journal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
)

func TestKeyHeadersAndTimestampAreFunctionsOfTheValue(t *testing.T) {
	r, id := recordtest.Sample(), scalar.ID{9, 9}
	e := record.Entry{Record: r, Journal: id, Value: []byte("{}")}
	k := KafkaRecord("x-trading", "trading", 3, id, r, e.Value)
	if string(k.Key) != "trading/3" || k.Topic != "x-trading" || k.Partition != 3 || k.Timestamp.UnixMicro() != 1772600767000000 {
		t.Errorf("%+v", k)
	}
	want := [][2]string{{"ce_specversion", "1.0"}, {"ce_id", "09090000-0000-0000-0000-000000000000/12"}, {"ce_source", "/journals/trading/3"},
		{"ce_type", "test.say"}, {"ce_time", "2026-03-04T05:06:07.000089Z"}, {"content-type", "application/json"}}
	for i, h := range k.Headers {
		if h.Key != want[i][0] || string(h.Value) != want[i][1] {
			t.Errorf("header %d is %s: %s", i, h.Key, h.Value)
		}
	}
	if err := VerifyKafka(e, "trading", k); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*kgo.Record){
		"key":       func(k *kgo.Record) { k.Key = nil },
		"timestamp": func(k *kgo.Record) { k.Timestamp = k.Timestamp.Add(time.Millisecond) },
		"value":     func(k *kgo.Record) { k.Headers[3].Value = []byte("test.other") },
		"name":      func(k *kgo.Record) { k.Headers[0].Key = "x" },
		"more":      func(k *kgo.Record) { k.Headers = append(k.Headers, kgo.RecordHeader{Key: "x"}) },
		"partition": func(k *kgo.Record) { k.Partition = 4 },
	} {
		k := KafkaRecord("x-trading", "trading", 3, id, r, e.Value)
		change(k)
		if VerifyKafka(e, "trading", k) == nil {
			t.Errorf("another %s passes", what)
		}
	}
}

// TestIsWritten changes each byte of the key and of the headers: what is equal, and only that, matches without a comparison of whole
// Kafka records.
func TestIsWritten(t *testing.T) {
	r, id := recordtest.Sample(), scalar.ID{9, 9}
	for _, journal := range []string{"trading", strings.Repeat("long", 40)} {
		e := record.Entry{Record: r, Journal: id, Value: []byte("{}")}
		k := KafkaRecord("x-trading", journal, 3, id, r, e.Value)
		if !isWritten(&e, journal, k) {
			t.Errorf("the Kafka record of %s does not match", journal)
		}
		if n := testing.AllocsPerRun(10, func() { isWritten(&e, journal, k) }); n > 0 && journal == "trading" {
			t.Errorf("%v allocations", n)
		}
		texts := []*[]byte{&k.Key}
		for i := range k.Headers {
			texts = append(texts, &k.Headers[i].Value)
		}
		for i, text := range texts {
			right := *text
			for at := range right {
				for _, wrong := range [][]byte{append(bytes.Clone(right[:at]), right[at+1:]...), append(append(bytes.Clone(right[:at]), right[at]^1), right[at+1:]...),
					append(append(bytes.Clone(right[:at]), 'x'), right[at:]...), right[:at]} {
					if *text = wrong; isWritten(&e, journal, k) || VerifyKafka(e, journal, k) == nil {
						t.Errorf("%q in place of %q passes, at %d", wrong, right, i)
					}
				}
			}
			*text = right
		}
		for i := range k.Headers {
			right := k.Headers[i].Key
			if k.Headers[i].Key = right + "x"; isWritten(&e, journal, k) || VerifyKafka(e, journal, k) == nil {
				t.Errorf("another name of %s passes", right)
			}
			k.Headers[i].Key = right
		}
		k.Headers = k.Headers[:5]
		if isWritten(&e, journal, k) || VerifyKafka(e, journal, k) == nil {
			t.Error("five headers pass")
		}
	}
}

// TestARestampedRecordGetsItsTimestampBack: a topic had message.timestamp.type LogAppendTime for a while. The error for such a record
// says how to repair the log. A timestamp that the producer had chosen is left alone.
func TestARestampedRecordGetsItsTimestampBack(t *testing.T) {
	r, id := recordtest.Sample(), scalar.ID{9, 9}
	value, err := record.Encode(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	last := record.Entry{Record: r, Journal: id, Value: value}
	restamped := KafkaRecord("trading", "trading", 0, id, r, value)
	written, later := restamped.Timestamp, restamped.Timestamp.Add(time.Second)
	restamped.Timestamp = later
	if RestoreTimestamp(restamped); !restamped.Timestamp.Equal(later) {
		t.Error("the timestamp of the producer was replaced")
	}
	restamped.Attrs = kgo.NewRecordAttrs(kgo.RecordAttrsOpts{TimestampType: 1})
	if err := VerifyKafka(last, "trading", restamped); err == nil || !strings.Contains(err.Error(), "perpetua log copy") {
		t.Error(err)
	}
	RestoreTimestamp(restamped)
	if err := VerifyKafka(last, "trading", restamped); err != nil || !restamped.Timestamp.Equal(written) {
		t.Error(err)
	}
	other := &kgo.Record{Value: []byte("hello"), Timestamp: later, Attrs: restamped.Attrs}
	if RestoreTimestamp(other); !other.Timestamp.Equal(later) {
		t.Error("the timestamp of something else was changed")
	}
}
