package e2e

import "testing"

// TestOwnerKilledInALiquidationWave kills the owner of the trading journal while it liquidates a crowd. Another node goes on
// behind the last record, and whoever listens to a node that lives is told everything once, over one connection.
func TestOwnerKilledInALiquidationWave(t *testing.T) {
	t.Parallel()
	v := newWholeVenue(t)
	g := newGate(t, brokersIn(t, v.dir))
	v.env = append(v.env, "PERPETUA_COMPRESSION=none")
	c := newClusterOn(t, v, g.seeds)
	many := crowd{groups: 2, size: 200}
	c.fill(t, many.opening())
	c.join(t, "engine", "engine", "api,projector,live")
	d := &desk{venue: c.node(2)}
	heard := audienceAfter(t, len(c.values(t))-1)
	for _, l := range heard {
		l.connect(d.venue)
	}
	for group := 0; ; group++ {
		if group == many.groups {
			t.Fatal("the owner was not killed in the middle of a wave")
		}
		liquidations := steps("liquidation", len(c.values(t))-1)
		strike := g.arm(d.venue, many.size/4, "liquidation", liquidations, nil)
		owner := -1
		many.crash(d, group, func() {
			strike(func() { // whoever owns it now, which is in the midst of it
				owner = c.anOwner("trading")
				c.node(owner).kill()
			})
		})
		c.anOwner("trading", owner)
		c.again(owner)
		d.worked("liquidation", "insurance_order")
		counts := c.terms(t, liquidations)
		t.Logf("group %d: by term there were %v records of liquidations", group, counts)
		if len(counts) > 1 {
			break
		}
	}
	d.venue.DatabaseURL = c.DatabaseURL // which no node tells
	checkAll(t, d, heard)
}
