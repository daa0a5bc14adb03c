package journal

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	checkEvery      = 250 * time.Millisecond // how often a writer checks whether records are acknowledged
	quietChecks     = 3                      // checks without an acknowledgment before it looks for a new leader
	refreshRequests = 3                      // metadata requests at once; franz-go sends consecutive ones to different brokers
	refreshTimeout  = 500 * time.Millisecond
)

// A writer is the producer of one term. It retries without limit: only the log tells whether a record was appended.
type writer struct {
	*kgo.Client
	progress *progress
	stop     context.CancelFunc
	checking sync.WaitGroup
}

// progress counts the records that a writer no longer holds. It is a hook of its client.
type progress struct{ records atomic.Uint64 }

// OnProduceRecordUnbuffered implements [kgo.HookProduceRecordUnbuffered].
func (p *progress) OnProduceRecordUnbuffered(*kgo.Record, error) { p.records.Add(1) }

// writer returns a producer for one term. Its records carry no request's context: to cancel one record of a batch would fail
// the others.
func (c *Client) writer() (*writer, error) {
	p := new(progress)
	kc, err := c.KafkaFor(ForWriting,
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),
		kgo.StopProducerOnDataLossDetected(),
		kgo.ProducerBatchMaxBytes(maxMessage),
		kgo.MaxBufferedRecords(2*windowRecords),
		kgo.MaxBufferedBytes(2*windowBytes),
		kgo.WithHooks(p),
	)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &writer{Client: kc, progress: p, stop: stop}
	w.checking.Go(func() { w.check(ctx) })
	return w, nil
}

// Close closes the client. Records that are not acknowledged yet fail.
func (w *writer) Close() {
	w.stop()
	w.Client.Close()
	w.checking.Wait()
}

// check refreshes the metadata while records are buffered and none is acknowledged.
//
// franz-go refreshes by itself, but asks one broker at a time. If that broker is silent, the new leader becomes known only after
// the request timeout, and the seed of the same broker may cost the timeout again.
func (w *writer) check(ctx context.Context) {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	var before uint64
	quiet := 0
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now := w.progress.records.Load()
		if now != before || w.BufferedProduceRecords() == 0 {
			before, quiet = now, 0
			continue
		}
		if quiet++; quiet >= quietChecks {
			w.refresh(ctx)
		}
	}
}

// refresh asks several brokers at once for the brokers of the cluster. It returns at the first answer or after refreshTimeout.
// With the answer the client closes its connections to brokers that are not listed. What was in flight to a broker that the
// controller has fenced is thereby sent again, to the leader that ForceMetadataRefresh finds.
func (w *writer) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	var requests sync.WaitGroup
	for range refreshRequests {
		requests.Go(func() {
			r := kmsg.NewPtrMetadataRequest()
			r.Topics = []kmsg.MetadataRequestTopic{} // none; nil would mean all
			if _, err := r.RequestWith(ctx, w.Client); err == nil {
				w.ForceMetadataRefresh()
				cancel()
			}
		})
	}
	requests.Wait()
}
