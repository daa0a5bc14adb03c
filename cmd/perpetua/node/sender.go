package node

import (
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/handlers/webhooks"
	"github.com/perpetua-exchange/perpetua/projections/jobs"
)

// maxOverlap is the longest time for which a webhook may sign with two keys.
const maxOverlap = 30 * 24 * time.Hour

// wireSender creates the node's sender of webhooks, if it has that role. If the node has the projector role, it makes
// the projector insert the jobs for senders.
func (n *Node) wireSender(owners *follower) (err error) {
	if n.keyOverlap, err = keyOverlap(n.Settings); err != nil {
		return err
	}
	if n.Roles.Projector && n.Follow == nil {
		insert, err := jobs.NewInserter()
		if err != nil {
			return err
		}
		owners.runner.Along(webhooks.Along(insert, owners.client.Contact(owners.Name()).End))
	}
	if !n.Roles.Sender {
		return nil
	}
	dialing, err := receiversOf(n.Settings)
	if err != nil {
		return err
	}
	schedule, err := retries(n.Settings)
	if err != nil {
		return err
	}
	n.sender = webhooks.New(webhooks.Config{Node: n.ID, DB: n.stores.pool, Fold: owners.fold, Rows: owners.rows, To: n.engine.commands,
		Owners: n.stores.owners, Box: n.Box, Client: dialing.Client(webhooks.PerReceiver, webhooks.Within), Schedule: schedule, May: n.fence.watch.Check,
		Confirm: n.fence.watch.Confirm,
		Logger:  n.Logger.With("part", "webhooks")})
	n.telemetry.metrics.MustRegister(n.sender.Collectors()...)
	return nil
}

// receiversOf returns the settings for connections to receivers.
func receiversOf(s *settings.Settings) (d webhooks.Dialing, err error) {
	if d.Allowed, err = webhooks.ParseNetworks(s.Webhooks.Allow); err != nil {
		return d, settings.Usagef("--webhook-allow: %v", err)
	}
	if d.Proxy, err = webhooks.ParseProxy(s.Webhooks.Proxy); err != nil {
		return d, settings.Usagef("--egress-proxy: %v", err)
	}
	if s.Webhooks.CA == "" {
		return d, nil
	}
	text, err := os.ReadFile(s.Webhooks.CA)
	if err != nil {
		return d, fmt.Errorf("--webhook-ca: %w", err)
	}
	if d.Roots, err = x509.SystemCertPool(); err != nil {
		return d, fmt.Errorf("--webhook-ca: beside the system's authorities: %w", err)
	}
	if !d.Roots.AppendCertsFromPEM(text) {
		return d, settings.Usagef("--webhook-ca: %s holds no certificate", s.Webhooks.CA)
	}
	return d, nil
}
