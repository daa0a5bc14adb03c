package access

import (
	"errors"

	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// A command that is sent to an owner on another node carries the principal that this node has authorized, and the
// sequence of the identity journal as of which it did. Without this, a node that has not read a revocation yet could
// submit commands of a user whose credential the owner has seen revoked.

// Credential returns the principal for the owner of a journal, as the log describes it. judged is the sequence of the
// identity journal as of which the principal was authorized.
func (p *Principal) Credential(judged int64) submit.Credential {
	return submit.Credential{Sequence: judged, Principal: string(pack.Append(nil, p.visit))}
}

// visit visits the part of a principal that Judge needs.
func (p *Principal) visit(c *pack.Coder) {
	expires := scalar.Time(0)
	if !p.Expires.IsZero() {
		expires = scalar.TimeOf(p.Expires)
	}
	pack.String(c, &p.Username)
	pack.String(c, &p.Broker)
	pack.String(c, &p.Customer)
	pack.Slice(c, &p.Scopes, func(s *string, c *pack.Coder) { pack.String(c, s) })
	pack.Int(c, &expires)
	pack.String(c, &p.KID)
	c.Raw(p.APIKey[:])
	c.Raw(p.keyHash[:])
	pack.Int(c, &p.PasswordChanged)
	if c.Reading() && !expires.IsZero() {
		p.Expires = expires.Std()
	}
}

var errLostScope = errors.New("the user has lost a scope")

// Judge judges again the credential of a command that another node has authorized. It returns nil if this node has read
// no more of the identity journal than the other node had, which then knew at least as much. Otherwise it returns an
// error if the token or key was revoked or has expired, or if the user is inactive, was changed, or has lost a scope.
// The other node repeats the request when it has read the change, if it still may.
func (t *Tokens) Judge(c submit.Credential) error {
	if c.Principal == "" || t.fold != nil && t.sequence() <= c.Sequence {
		return nil
	}
	p := new(Principal)
	if err := pack.Read([]byte(c.Principal), p.visit); err != nil {
		return err
	}
	if p.APIKey.IsZero() {
		if _, known := t.identities.PublicKey(p.KID); !known {
			return errKey
		}
	} else if k, known := t.identities.APIKey(p.keyHash); !known || k.ID != p.APIKey {
		return errNoAPIKey
	}
	left, _, err := t.inForce(p)
	if err == nil && len(left.Scopes) < len(p.Scopes) {
		err = errLostScope
	}
	return err
}
