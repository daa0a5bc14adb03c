package term

import (
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// deferredReply is an answer that waits for the completion of the tip that it was decided on.
type deferredReply struct {
	// tip is the sequence of the record of the answer, or of the last record before its decision. The answer MUST NOT leave before
	// that record is complete: the state behind the answer may never become part of the log.
	tip     int64
	request *Request
	record  *inflightRecord // the record that is the answer, or
	began   int64           // set if record is the step that finishes an earlier record's work: the sequence of that one
	err     error           // the refusal, or the error of the rules, or
	repeat  int64           // the sequence of the earlier record that is repeated as the answer
	void    bool            // with err: applying the command's record failed, and would fail in any later term
}

// pending is a request with a record that starts work which later steps complete.
type pending struct {
	request  *Request
	record   *inflightRecord // if this term decided it
	sequence int64           // of the record
}

// hold delays a reply until the tip that it was decided on is complete. If nothing is in flight it answers immediately,
// except that a refusal always waits for the read index.
func (m *Machine) hold(h deferredReply, state requestState) {
	h.tip = m.t.tip.Sequence
	if h.request.done {
		return
	}
	h.request.state = state
	if h.err != nil {
		m.deferRefusal(h)
	} else {
		m.t.deferred.push(h)
	}
	m.release()
}

// release sends the deferred replies that have a complete tip.
func (m *Machine) release() {
	t := &m.t
	for t.deferred.len() > 0 && t.deferred.peek().tip <= t.flight.last.Sequence {
		h := t.deferred.pop()
		if h.record != nil {
			m.respond(h.request, &h.record.entry, false)
		} else {
			m.repeat(h)
		}
	}
	for {
		h, ok := m.popRefusal()
		if !ok {
			return
		}
		m.reply(h.request, submit.Result{}, h.err)
	}
}

func (m *Machine) respond(r *Request, e *record.Entry, repeated bool) {
	m.reply(r, submit.Result{Position: m.position(e.Position.Sequence), Entry: e, Repeated: repeated}, nil)
}

// repeat answers a request with an earlier record, from memory or else from the log.
func (m *Machine) repeat(h deferredReply) {
	if e, ok := m.recent.find(h.repeat); ok {
		m.respond(h.request, &e, true)
		return
	}
	if !h.request.done {
		m.out.ReadAt = append(m.out.ReadAt, ReadAt{Request: h.request, Sequence: h.repeat, From: m.anchors.Below(h.repeat)})
	}
}

// onFound answers a request with the record that was read for it.
func (m *Machine) onFound(in Found) {
	if in.Entry == nil {
		m.reply(in.Request, submit.Result{}, notAccepted("the record that answers it could not be read"))
		return
	}
	m.respond(in.Request, in.Entry, true)
}
