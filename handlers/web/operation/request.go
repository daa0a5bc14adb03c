package operation

import (
	"crypto/sha256"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// These are the headers defined by this interface.
const (
	HeaderRequestID      = "X-Request-Id"
	HeaderLogPosition    = "X-Log-Position"
	HeaderMinLogPosition = "X-Min-Log-Position"
	HeaderIdempotencyKey = "Idempotency-Key"
	// HeaderLogPositionFinal is "false" if a question as of a time may later mean another record.
	HeaderLogPositionFinal = "X-Log-Position-Final"
	// HeaderCommandID is the ID of a command with an unknown outcome, for the onboarding interface, where an error
	// consists of a code only.
	HeaderCommandID = "X-Command-Id"
)

// Key returns the Idempotency-Key, or "" if there is none. An invalid key is an error.
func (a Request) Key() (string, error) {
	keys := a.transport.Keys()
	if len(keys) == 0 {
		return "", nil
	}
	if len(keys) > 1 {
		return "", problem.HeaderGivenTwice(HeaderIdempotencyKey)
	}
	if code, message := form.Reference.Rule(keys[0]); code != "" {
		return "", problem.InvalidHeader(HeaderIdempotencyKey, code, message)
	}
	return keys[0], nil
}

// Keyed reports whether the request has an Idempotency-Key, valid or not.
func (a Request) Keyed() bool { return len(a.transport.Keys()) > 0 }

// NewCommand returns the command of the request on behalf of the principal. forms are the forms from which the payload was
// read; they determine the fingerprint, which a command has if it has an Idempotency-Key or a reference_id.
func (a Request) NewCommand(payload decide.Payload, forms ...*input.Form) (decide.Command, error) {
	cmd, err := a.BareCommand(payload)
	if err != nil {
		return decide.Command{}, err
	}
	named := cmd.Metadata.Key != ""
	for _, f := range forms {
		named = named || f.Has("reference_id")
	}
	if named {
		cmd.Metadata.Fingerprint = input.Fingerprint(a.route(), forms...)
	}
	return cmd, nil
}

// BareCommand is NewCommand without a fingerprint, for operations that compute another one.
func (a Request) BareCommand(payload decide.Payload) (decide.Command, error) {
	key, err := a.Key()
	if err != nil {
		return decide.Command{}, err
	}
	cmd := decide.Command{ID: a.CommandID(), Type: payload.CommandType(), Payload: payload, Metadata: decide.Metadata{Key: key, Session: a.Session}}
	if p := a.Principal(); p != nil {
		cmd.Actor = p.Actor()
	}
	a.Traced.Command, a.Spare = scalar.ID{}, scalar.ID{} // use the ID only once
	return cmd, nil
}

// CommandID returns the ID of the request's next command. It is the ID of the request's trace, if there is one, so that
// the record leads to the trace.
func (a Request) CommandID() scalar.ID {
	switch {
	case !a.Traced.Command.IsZero():
		return a.Traced.Command
	case a.Spare.IsZero():
		a.Spare = NewID()
	}
	return a.Spare
}

// IDFor returns an ID for an object that the request's next command creates. It is a function of the command's ID and
// of what.
func (a Request) IDFor(what string) scalar.ID {
	command := a.CommandID()
	sum := sha256.Sum256(append(command[:], what...))
	id := scalar.ID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // UUID version 8
	return id
}

// Part is one command of a request with several.
type Part struct {
	Payload     decide.Payload
	Fingerprint string // of this part only
	// Earlier is Fingerprint as earlier builds computed it (see input.FingerprintAsSent), or "" if it is the same.
	Earlier string
}

// AsEarlier returns the parts with the fingerprints of earlier builds. It returns false if these are the same.
func AsEarlier(parts []Part) (earlier []Part, differ bool) {
	earlier = slices.Clone(parts)
	for i := range earlier {
		if p := &earlier[i]; p.Earlier != "" && p.Earlier != p.Fingerprint {
			p.Fingerprint, differ = p.Earlier, true
		}
	}
	return earlier, differ
}

// Commands returns the commands of a request's parts on behalf of the principal. If the request has an
// Idempotency-Key, each command's key combines it with a fingerprint of the whole request and the index of the part
// (decide.BatchKey).
func (a Request) Commands(parts []Part) ([]decide.Command, error) {
	var whole []byte
	for _, p := range parts {
		whole = append(whole, p.Fingerprint...)
	}
	out := make([]decide.Command, len(parts))
	for i, p := range parts {
		cmd, err := a.BareCommand(p.Payload)
		if err != nil {
			return nil, err
		}
		if key := cmd.Metadata.Key; key != "" {
			cmd.Metadata.Key = decide.BatchKey(key, input.FingerprintText(whole), i)
		}
		cmd.Metadata.Fingerprint = p.Fingerprint
		out[i] = cmd
	}
	return out, nil
}

// BodyFingerprint returns the fingerprint of a request with the body raw. A form of that body gives the same one, if
// no null member has a meaning.
func (a Request) BodyFingerprint(raw []byte) string {
	return a.BodyFingerprintAsSent(input.WithoutNulls(raw))
}

// BodyFingerprintAsSent is BodyFingerprint as earlier builds computed it (see input.FingerprintAsSent).
func (a Request) BodyFingerprintAsSent(raw []byte) string {
	return input.FingerprintText(input.AppendPart(a.route(), input.CanonicalJSON(raw)))
}

// route returns an unambiguous text of the route and the parameters of the request.
func (a Request) route() []byte {
	method, path, parameters := a.transport.Route()
	b := input.AppendPart(input.AppendPart(nil, method), path)
	for _, name := range parameters {
		b = input.AppendPart(b, a.Param(name))
	}
	return b
}
