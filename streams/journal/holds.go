package journal

import (
	"context"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// Holds returns nil if a partition's log holds a position, and a *DivergedError if it doesn't. It tries until the brokers
// answer.
func (c *Client) Holds(ctx context.Context, rules decide.Rules, partition int32, p Position) error {
	return NewReader(c, rules, partition, p).holds(ctx)
}
