package webhooks

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const (
	recordWithin = 15 * time.Second // that the journal's owner may take to answer, itself or through its node
	firstPause   = 50 * time.Millisecond
	lastPause    = 2 * time.Second
	// Receipts go to the journal several in a command, as many as wait while the commands before are under way: a record costs
	// about the same whatever it holds.
	commandsAtOnce = 4
	perCommand     = onboarding.MaxAttempts
)

// recorder has the journal record attempts.
type recorder struct {
	*Sender
	receipts chan *receipt
	ended    chan struct{}
	workers  sync.WaitGroup
}

// receipt is an attempt on its way to the log.
type receipt struct {
	attempt *onboarding.RecordAttempt
	known   chan known
}

// known is what became of a receipt.
type known struct {
	status recorded
	at     int64 // the sequence of a record, after which the log says how the delivery stands
}

// recorded says whether an attempt is recorded.
type recorded byte

const (
	isUnknown  recorded = iota // the sender is stopped before anybody knows
	isRecorded                 // the log has it
	isRefused                  // the log has it from somebody else, or does not want it any more
)

// startRecorder starts to record.
func (s *Sender) startRecorder() *recorder {
	r := &recorder{Sender: s, receipts: make(chan *receipt), ended: make(chan struct{})}
	for range commandsAtOnce {
		r.workers.Go(r.work)
	}
	return r
}

// stop ends that. Nobody knows of what is told later.
func (r *recorder) stop() {
	close(r.ended)
	r.workers.Wait()
}

// record has an attempt recorded, and returns once it is known what became of it.
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

// gather returns a receipt and those that wait beside it.
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

// recordAll tries until the outcome is known: the numbers of the attempts see to it that each is recorded once. If the sender is
// stopped before, nobody knows.
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

// submit sends the command once. An error says that its outcome is not known.
func (r *recorder) submit(batch []*receipt) error {
	ctx, cancel := context.WithTimeout(r.recording, recordWithin)
	defer cancel()
	p := &onboarding.RecordAttempts{Schedule: r.cfg.Schedule}
	for _, one := range batch {
		p.Attempts = append(p.Attempts, one.attempt)
	}
	result, err := r.cfg.To.Submit(ctx, journalName, decide.Command{ID: web.NewID(), Type: p.CommandType(), Actor: decide.Actor{System: "sender"}, Payload: p})
	var refused *submit.RefusedError
	switch {
	case errors.As(err, &refused):
		r.refused(batch, refused.Refusal, refused.AsOf.Sequence)
		return nil
	case err != nil:
		return err
	}
	told := make(map[scalar.ID]bool, len(batch))
	for _, e := range result.Entry.Record.Events {
		if e, is := e.(*onboarding.DeliveryAttempted); is {
			told[e.ID] = true
		}
	}
	for _, one := range batch {
		k := known{isRecorded, result.Position.Sequence}
		if !told[one.attempt.ID] {
			k.status = isRefused
		}
		one.known <- k
	}
	return nil
}

// refused tells that nothing of a batch is recorded: it was when nobody knew whether it was, or another sender was first; or it
// is not to be tried any more.
func (r *recorder) refused(batch []*receipt, why *decide.Refusal, at int64) {
	if why.Kind == decide.Invalid {
		r.cfg.Logger.Error("webhooks: the journal refuses attempts", "attempts", len(batch), "delivery", batch[0].attempt.ID.String(), "error", why)
	}
	for _, one := range batch {
		one.known <- known{isRefused, at}
	}
}
