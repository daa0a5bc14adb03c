package verify

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"sync"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// batch is a part of the log. One goroutine decodes its values.
type batch struct {
	messages []Message
	decoded  []record.Decoded
	damage   *DamageError // of the source, after the messages
	done     chan struct{}
}

// decoding is the second stage. ordered has the batches in the order of the log. err is valid once ordered is closed.
type decoding struct {
	ordered chan *batch
	err     error
}

// decode starts the first two stages. They end when the source does, or with the context.
func (v *verification) decode(ctx context.Context, from Batches) *decoding {
	n := v.Workers
	d := &decoding{ordered: make(chan *batch, 2*n)}
	work := make(chan *batch, n)
	var working sync.WaitGroup
	for range n {
		working.Go(func() {
			decoder := record.NewDecoder(v.Rules.Registry())
			for b := range work {
				b.decode(decoder)
				close(b.done)
			}
		})
	}
	go func() {
		defer close(d.ordered)
		defer working.Wait()
		defer close(work)
		for {
			messages, err := from.Next(ctx)
			b := &batch{messages: messages, done: make(chan struct{})}
			if errors.As(err, &b.damage) {
				close(b.done)
				select {
				case d.ordered <- b:
				case <-ctx.Done():
				}
				return
			}
			if err != nil {
				if !errors.Is(err, io.EOF) && ctx.Err() == nil {
					d.err = err
				}
				return
			}
			select {
			case d.ordered <- b:
				work <- b
			case <-ctx.Done():
				return
			}
		}
	}()
	return d
}

func (b *batch) decode(decoder *record.Decoder) {
	b.decoded = make([]record.Decoded, len(b.messages))
	for i := range b.messages {
		m, d := &b.messages[i], &b.decoded[i]
		if d.Hash = m.Hash; !m.Hashed {
			d.Hash = sha256.Sum256(m.Value)
		}
		d.Record, _ = decoder.Decode(m.Value)
	}
}
