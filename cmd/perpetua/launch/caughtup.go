package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// positionsOf returns the positions of a node's folds, by journal.
func positionsOf(n *node.Node, table journals.Table) (map[string]record.LogPosition, error) {
	at := make(map[string]record.LogPosition)
	for _, name := range table.Names() {
		fold, err := n.Fold(name)
		if err != nil {
			return nil, err
		}
		at[name] = record.LogPosition{Journal: name, Sequence: fold.Position().Sequence}
	}
	return at, nil
}

// caughtUp waits until a running node has followed the journals to the given positions, according to its /readyz.
func caughtUp(ctx context.Context, p *local.Process, rest string, to map[string]record.LogPosition) error {
	for {
		behind, err := behindOf(ctx, rest, to)
		if behind == "" && err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%s ended before it had caught up: %v", p.Name, p.State())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// behindOf returns a journal in which a node has not reached the given position, or "".
func behindOf(ctx context.Context, rest string, to map[string]record.LogPosition) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, rest+"/readyz", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var state struct{ Journals map[string]string }
	if err := json.NewDecoder(response.Body).Decode(&state); err != nil {
		return "", fmt.Errorf("what %s says of itself: %w", rest, err)
	}
	for name, want := range to {
		at, err := record.ParseLogPosition(state.Journals[name])
		if err != nil || at.Sequence < want.Sequence {
			return name, nil
		}
	}
	return "", nil
}
