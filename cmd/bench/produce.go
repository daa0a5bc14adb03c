package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// produceConfig configures the produce child.
type produceConfig struct{ Brokers []string }

const produceTopic = "bench-produce"

// produceChild repeatedly produces the last record of the trading journal to a separate topic, one record in flight,
// with the settings of the journal's writer. It answers a request for a time with the median latency in microseconds.
func produceChild(ctx context.Context, cfg produceConfig, in *json.Decoder, out *json.Encoder) error {
	record, err := lastRecord(ctx, cfg.Brokers)
	if err != nil {
		return err
	}
	kc, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if err != nil {
		return err
	}
	defer kc.Close()
	if _, err := kadm.NewClient(kc).CreateTopic(ctx, 1, 1, nil, produceTopic); err != nil {
		return err
	}
	return answerAll(in, out, struct{}{}, func(length time.Duration) (float64, error) {
		var took []time.Duration
		for start := time.Now(); time.Since(start) < length; {
			before := time.Now()
			r := &kgo.Record{Topic: produceTopic, Key: record.Key, Value: record.Value, Headers: record.Headers}
			if err := kc.ProduceSync(ctx, r).FirstErr(); err != nil {
				return 0, err
			}
			took = append(took, time.Since(before))
		}
		slices.Sort(took)
		return microseconds(took[len(took)/2]), nil
	})
}

// lastRecord reads the last record of the trading journal.
func lastRecord(ctx context.Context, brokers []string) (*kgo.Record, error) {
	kc, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		"trading": {0: kgo.NewOffset().AtEnd().Relative(-1)}}))
	if err != nil {
		return nil, err
	}
	defer kc.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	fetches := kc.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		return nil, fmt.Errorf("reading the last record: %w", err)
	}
	return fetches.Records()[0], nil
}
