package e2e

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// juncture is a record at which a journal's owner is killed.
type juncture struct {
	journal string
	mark    string // that the record holds
	logged  bool   // the log has it, and its owner has not learnt that; else the log never gets it
}

// junctures are the records of an application, from the upload to the account and the receipt of the last webhook.
func junctures() (all []juncture) {
	for _, logged := range []bool{true, false} {
		for _, j := range []juncture{
			{journal: "onboarding", mark: `"type":"document.added"`},
			{journal: "onboarding", mark: `"type":"response.added"`},
			{journal: "onboarding", mark: `"type":"entitlement_trigger.act"`},
			{journal: "trading", mark: `"type":"customer.registered"`},
			{journal: "onboarding", mark: `"type":"delivery.attempted"`},
			{journal: "onboarding", mark: `"type":"entitlement_trigger.created"`},
			{journal: "onboarding", mark: `"type":"owner.registered"`},
		} {
			j.logged = logged
			all = append(all, j)
		}
	}
	return all
}

// TestKilledAmidApplications runs two nodes that do everything, with applicants at both, and kills the owner of the journal when a
// record of an application is in the log and nobody knows it yet, or was decided and is not in the log. The other node owns
// the journal then, opens the accounts and sends the webhooks. What was acknowledged is there, all of it is there once, and
// whatever follows from it happens once.
func TestKilledAmidApplications(t *testing.T) {
	t.Parallel()
	seed := fromEnvironment(t, "PERPETUA_TEST_SEED", rand.Uint64())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	v, hooks := newVenue(t), newWebhookReceiver(t)
	g := newGate(t, brokersIn(t, v.dir))
	v.env = append(hooks.settings(), "PERPETUA_BLOB_URL="+blob.URLOf(filepath.Join(v.dir, blob.Folder)), "PERPETUA_COMPRESSION=none")
	c := newClusterOn(t, v, g.seeds)
	const everything = "engine,api,projector,sender,process"
	c.join(t, everything, everything)
	m := admit(t, hooks, c.node(0), 2, func(i int) func() *venue {
		pick := rand.New(rand.NewPCG(seed, uint64(2+i)))
		return func() *venue { return c.node(pick.IntN(len(c.nodes))) }
	})
	for _, a := range m.applicants {
		a.pace = 5 * retryAfter
	}
	end := m.begin(t)
	t.Cleanup(end)
	at := junctures()
	if kills(t) <= 5 { // each kind of answer that a client waits for, and the bridge's
		at = []juncture{at[0], at[2], at[len(at)/2+1], at[len(at)/2+3]}
	}
	for range max(kills(t)/10, 1) {
		random.Shuffle(len(at), func(i, k int) { at[i], at[k] = at[k], at[i] })
		for _, j := range at {
			c.killAt(t, g, j, m)
		}
	}
	end()
	m.finish(t)
	m.check(t, c.venue)
	foldLog(t, c.venue) // no command is there twice
	c.perform("audit")
}

// killAt kills a journal's owner at a juncture, and starts it again when another one serves.
func (c *cluster) killAt(t *testing.T, g *gate, j juncture, m *admission) {
	t.Helper()
	n := 0
	if j.logged {
		n = 1
	}
	closed := g.closeAt(n, []byte(j.mark))
	waitFor(t, "a record with "+j.mark, func() bool {
		select {
		case <-closed:
			return true
		default:
			return m.failed.Load()
		}
	})
	owner := c.anOwner(j.journal)
	c.node(owner).kill()
	killed := time.Now()
	g.open()
	c.anOwner(j.journal, owner)
	m.more(t, 8)
	t.Logf("%+v: node %d was killed; eight writes were answered %v later", j, owner, time.Since(killed).Round(time.Millisecond))
	c.again(owner)
}
