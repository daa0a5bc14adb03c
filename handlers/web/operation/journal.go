package operation

import (
	"context"
	"errors"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// AnswerAt sets the log position of the response to a write. The user's next read on this node is at least that new.
func (a Request) AnswerAt(p record.LogPosition) {
	a.transport.AnswerAt(p)
	a.Answered.wrote(p)
}

// SetReadPosition is AnswerAt for a read. sequence is the source's position in the journal's only partition. It MUST NOT be
// called under the lock of the source.
func (a Request) SetReadPosition(name string, sequence int64) {
	p := record.LogPosition{Journal: name, Sequence: sequence}
	a.transport.AnswerAt(p)
	a.Answered.looked(p)
}

// SetPastPositions sets the positions of a response as of past records. final says whether the question will always mean
// these records. The user's later reads do not wait for them.
func (a Request) SetPastPositions(all []record.LogPosition, final bool) {
	a.transport.AnswerAtAll(all)
	if !final {
		a.transport.Header()[HeaderLogPositionFinal] = []string{"false"}
	}
}

// withCredential returns the request's context with the credential for commands.
func (a Request) withCredential() context.Context {
	p, judged := a.Admission.Principal, a.Admission.Judged
	if p == nil {
		return a.Context()
	}
	return submit.WithCredential(a.Context(), func() submit.Credential { return p.Credential(judged) })
}

// Submit submits a command and sets the position of the response, even for a refusal.
func Submit(a Request, to submit.Submitter, name string, cmd decide.Command) (submit.Result, error) {
	result, err := to.Submit(a.withCredential(), name, cmd)
	if err == nil {
		a.AnswerAt(result.Position)
		return result, nil
	}
	var refused *submit.RefusedError
	if errors.As(err, &refused) {
		a.AnswerAt(refused.AsOf)
	}
	return result, err
}
