package webhooks

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const (
	recordWithin = 15 * time.Second // timeout of a command, including the way to the owner
	firstPause   = 50 * time.Millisecond
	lastPause    = 2 * time.Second
	// Each command carries all receipts that arrived while earlier commands were in progress, because the cost of a
	// record hardly depends on its size.
	commandsAtOnce = 4
	perCommand     = onboarding.MaxAttempts
)

// recorder submits attempts to the journal.
type recorder struct {
	*Sender
	receipts chan *receipt
	ended    chan struct{}
	workers  sync.WaitGroup
}

// receipt is an attempt that is being recorded.
type receipt struct {
	attempt *onboarding.RecordAttempt
	known   chan known
}

// known is the result of recording an attempt.
type known struct {
	status recorded
	at     int64 // sequence from which the log has the delivery's new state
}

// recorded is the status of a recorded attempt.
type recorded byte

const (
	isUnknown  recorded = iota // the sender stopped before the result was known
	isRecorded                 // the attempt is in the log
	isRefused                  // another sender recorded it, or the delivery is closed
)

// startRecorder starts the recorder's workers.
func (s *Sender) startRecorder() *recorder {
	r := &recorder{Sender: s, receipts: make(chan *receipt), ended: make(chan struct{})}
	for range commandsAtOnce {
		r.workers.Go(r.work)
	}
	return r
}

// stop stops the workers. Later calls of record return isUnknown.
func (r *recorder) stop() {
	close(r.ended)
	r.workers.Wait()
}

// record submits an attempt and waits for the result.
func (r *recorder) record(a *onboarding.RecordAttempt) known {
	one := &receipt{a, make(chan known, 1)}
	select {
	case r.receipts <- one:
		return <-one.known
	case <-r.ended:
		return known{status: isUnknown}
	}
}

func (r *recorder) work() {
	for {
		select {
		case first := <-r.receipts:
			r.recordAll(r.gather(first))
		case <-r.ended:
			return
		}
	}
}

// gather returns a receipt and those that are waiting, up to perCommand.
func (r *recorder) gather(first *receipt) []*receipt {
	batch := []*receipt{first}
	for len(batch) < perCommand {
		select {
		case next := <-r.receipts:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// recordAll submits a batch until the result is known. Attempts are numbered, so none is recorded twice. If the
// sender stops first, the results are unknown.
func (r *recorder) recordAll(batch []*receipt) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := r.submit(batch)
		if err == nil {
			return
		}
		first := batch[0].attempt
		r.cfg.Logger.Warn("webhooks: attempts could not be recorded yet", "attempts", len(batch), "delivery", first.ID.String(), "number", first.Number, "error", err)
		select {
		case <-r.recording.Done():
			for _, one := range batch {
				one.known <- known{status: isUnknown}
			}
			return
		case <-time.After(pause):
		}
	}
}

// submit sends the command once. An error means that the outcome is unknown.
func (r *recorder) submit(batch []*receipt) error {
	ctx, cancel := context.WithTimeout(r.recording, recordWithin)
	defer cancel()
	p := &onboarding.RecordAttempts{Schedule: r.cfg.Schedule}
	for _, one := range batch {
		p.Attempts = append(p.Attempts, one.attempt)
	}
	result, err := r.cfg.To.Submit(ctx, journalName, decide.Command{ID: operation.NewID(), Type: p.CommandType(), Actor: decide.Actor{System: "sender"}, Payload: p})
	var refused *submit.RefusedError
	switch {
	case errors.As(err, &refused):
		r.refused(batch, refused.Refusal, refused.AsOf.Sequence)
		return nil
	case err != nil:
		return err
	}
	recorded := make(map[scalar.ID]bool, len(batch))
	for _, e := range result.Entry.Record.Events {
		if e, is := e.(*onboarding.DeliveryAttempted); is {
			recorded[e.ID] = true
		}
	}
	for _, one := range batch {
		k := known{isRecorded, result.Position.Sequence}
		if !recorded[one.attempt.ID] {
			k.status = isRefused
		}
		one.known <- k
	}
	return nil
}

// refused reports that nothing of a batch was recorded now: an earlier submission with an unknown outcome or another
// sender recorded it, or the deliveries are closed.
func (r *recorder) refused(batch []*receipt, why *decide.Refusal, at int64) {
	if why.Kind == decide.Invalid {
		r.cfg.Logger.Error("webhooks: the journal refuses attempts", "attempts", len(batch), "delivery", batch[0].attempt.ID.String(), "error", why)
	}
	for _, one := range batch {
		one.known <- known{isRefused, at}
	}
}
