package ownership

import (
	"context"
	"errors"
	"net"
	"net/url"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	probeEvery = 250 * time.Millisecond // at the other members
	dialWithin = time.Second
	refusals   = 2 // in a row make a dead member of one that was reached before
)

// peer is what the watch knows of another member.
type peer struct {
	reached bool // it accepted a connection once, so that its URL is good
	refused int  // connections in a row since
}

// watch names the members that have died to the group, which otherwise would miss them only after their sessions. It
// begins before the node joins: whoever dies right after that was reached already. Dead means that the member's host answers
// and nobody listens at the member's address any more: a stopping node closes its port last. A member that is merely slow,
// stopped or cut off is left to the session.
//
// Where the watch errs, the member lives, serves, and believes itself the owner for a while, by a lease that counts: its port
// alone may be gone. Then nothing but time is lost. Neither its records nor its refusals stand unless the log says so.
func (n *Node) watch(ctx context.Context) {
	peers := make(map[string]*peer) // by member id
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		members, err := n.find.members(ctx)
		if err != nil {
			n.log.Debug("looking at the other engines", "error", err)
		} else {
			peers = n.probeAll(ctx, members, peers)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// probeAll tries to reach each of the other members once, and returns what is known of them now.
func (n *Node) probeAll(ctx context.Context, members []kadm.DescribedGroupMember, before map[string]*peer) map[string]*peer {
	now := make(map[string]*peer)
	for _, m := range members {
		if m.InstanceID == nil || *m.InstanceID == n.cfg.NodeID {
			continue
		}
		p := before[m.MemberID]
		if p == nil {
			p = new(peer)
		}
		p.probe(ctx, m.ClientID)
		if p.dead() && n.remove(ctx, m) == nil {
			continue
		}
		now[m.MemberID] = p
	}
	return now
}

func (p *peer) dead() bool { return p.reached && p.refused >= refusals }

// probe tries to reach a member.
func (p *peer) probe(ctx context.Context, at string) {
	u, err := url.Parse(at)
	if err != nil || u.Port() == "" {
		return
	}
	c, err := (&net.Dialer{Timeout: dialWithin}).DialContext(ctx, "tcp", u.Host)
	switch {
	case err == nil:
		c.Close()
		p.reached, p.refused = true, 0
	case errors.Is(err, syscall.ECONNREFUSED):
		p.refused++
	default:
		p.refused = 0
	}
}

// remove ends the membership of a dead node and joins anew, so that its partitions are assigned at once. It names the
// membership and not only the node, which may have been started again meanwhile.
func (n *Node) remove(ctx context.Context, m kadm.DescribedGroupMember) error {
	reason := "its port is closed"
	request := kmsg.NewPtrLeaveGroupRequest()
	request.Group = n.find.group()
	member := kmsg.NewLeaveGroupRequestMember()
	member.MemberID, member.InstanceID, member.Reason = m.MemberID, m.InstanceID, &reason
	request.Members = append(request.Members, member)
	response, err := request.RequestWith(ctx, n.find.kafka)
	if err == nil {
		err = kerr.ErrorForCode(response.ErrorCode)
	}
	for i := 0; err == nil && i < len(response.Members); i++ {
		err = kerr.ErrorForCode(response.Members[i].ErrorCode)
	}
	n.log.Warn("another engine has died", "member", *m.InstanceID, "url", m.ClientID, "error", err)
	if err != nil {
		return err
	}
	// The members learn with their next heartbeat that the group rebalances. This one joins at once. Under the lock, so that
	// the client is not closed meanwhile.
	n.joined.Lock()
	defer n.joined.Unlock()
	if n.membership != nil {
		n.membership.ForceRebalance()
	}
	return nil
}
