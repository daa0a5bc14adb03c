package submit

import "context"

// Credential describes the authorization of a client's request: the principal, in the form of the interface that accepted it, and
// the sequence in the identity journal as of which the node judged it. The zero Credential means that a node submits the
// command on its own behalf.
type Credential struct {
	Sequence  int64
	Principal string
}

type (
	queuedKey     struct{}
	credentialKey struct{}
	termKey       struct{}
)

// OnQueued returns a context for Submit or SubmitAll. The owner calls f once it has queued or refused the commands: commands
// that are submitted later are decided later. It does not call f if it accepts none at the moment. If the owner is on another node,
// f is called once the commands were written to it, in order. f must not block.
func OnQueued(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, queuedKey{}, f)
}

// NotifyQueued calls the function that OnQueued attached to ctx, if there is one. An owner calls it. It reports whether there
// is one.
func NotifyQueued(ctx context.Context) bool {
	f, ok := ctx.Value(queuedKey{}).(func())
	if ok {
		f()
	}
	return ok
}

// WithCredential returns a context that carries the credential of the commands that are submitted with it. f is called only if
// the owner is on another node.
func WithCredential(ctx context.Context, f func() Credential) context.Context {
	return context.WithValue(ctx, credentialKey{}, f)
}

// CredentialOf returns the credential of commands that are submitted with ctx.
func CredentialOf(ctx context.Context) Credential {
	if f, ok := ctx.Value(credentialKey{}).(func() Credential); ok {
		return f()
	}
	return Credential{}
}

// InTerm returns a context for commands that an owner MUST NOT decide in another term. If the term ends before the log holds
// a command's record, the command is answered with its record if that turns out to be valid, and otherwise with a
// *NotAcceptedError.
func InTerm(ctx context.Context, term int64) context.Context {
	return context.WithValue(ctx, termKey{}, term)
}

// TermOf returns the only term in which commands that are submitted with ctx may be decided, or 0 for any.
func TermOf(ctx context.Context) int64 {
	term, _ := ctx.Value(termKey{}).(int64)
	return term
}
