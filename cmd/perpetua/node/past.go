package node

import (
	"github.com/perpetua-exchange/perpetua/streams/history"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
)

// pastConfig returns what past states are computed from: the log, the working snapshots and the history snapshots.
func (n *Node) pastConfig() history.Config {
	return history.Config{Client: n.stores.client, Source: verifiedSource{history.Topic{Client: n.stores.client}, n.followers}, Stores: []*snapshot.Store{n.stores.snapshots.history, n.stores.snapshots.store},
		Logger: n.Logger.With("part", "history")}
}

// journal returns a journal for history.
func (f *follower) journal() history.Journal {
	return history.Journal{Rules: f.Rules, Codec: f.Codec, Tip: f.fold}
}

// pastStates returns the past states of all journals.
func (n *Node) pastStates() *history.States {
	var all []history.Journal
	for _, f := range n.followers {
		if f.Codec != nil {
			all = append(all, f.journal())
		}
	}
	return history.New(n.pastConfig(), all...)
}

// historyMakers returns the tasks that make the history snapshots.
func (n *Node) historyMakers() (tasks []task) {
	for _, f := range n.followers {
		if f.Codec == nil {
			continue
		}
		m := history.NewMaker(history.MakerConfig{Config: n.pastConfig(), Journal: f.journal(), Store: n.stores.snapshots.history, Node: n.ID,
			May: n.fence.mayWrite})
		tasks = append(tasks, task{"history snapshots of " + f.Name(), n.whileItActs(m.Run)})
	}
	return tasks
}
