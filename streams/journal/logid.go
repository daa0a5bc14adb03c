package journal

import "context"

// LogID returns the LogLocation of a journal's log as a string. It asks the brokers once: the location never changes while a
// client lives, because a reader stops when its log is replaced.
func (c *Client) LogID(ctx context.Context, journal string) (string, error) {
	c.identifying.Lock()
	id, known := c.identities[journal]
	c.identifying.Unlock()
	if known {
		return id, nil
	}
	location, err := c.LogLocation(ctx, journal)
	if err != nil {
		return "", err
	}
	id = location.String()
	c.identifying.Lock()
	defer c.identifying.Unlock()
	c.identities[journal] = id
	return id, nil
}
