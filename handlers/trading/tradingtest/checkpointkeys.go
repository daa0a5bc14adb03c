package tradingtest

import (
	"context"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey"
	"github.com/perpetua-exchange/perpetua/domain/checkpointkey/checkpointkeytest"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// nextCheckpointKey returns the next key of a journal's log. Its seed is the generation plus LostKeys.
func (v *Venue) nextCheckpointKey(_ context.Context, journal string) (*decide.RotateCheckpointKey, error) {
	for _, j := range []*Journal{v.Trading, v.Identity, v.Onboarding} {
		if j.rules.Journal() != journal {
			continue
		}
		origin, last := checkpointkeytest.Origin(journal, j.id), checkpointkey.FirstGeneration
		j.View(func(s decide.State, _ record.Position) {
			schedule := s.(decide.Facts).CheckpointKeys()
			last += len(schedule.Of(origin))
		})
		return &decide.RotateCheckpointKey{Generation: last + 1, Previous: checkpointkeytest.Key(origin, byte(last)), Key: checkpointkeytest.Key(origin, byte(last+1)+v.LostKeys)}, nil
	}
	return nil, fmt.Errorf("there is no journal %s", journal)
}
