package ownership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// group asks the coordinator of the group of engines.
//
// It looks up the coordinator and forgets it after any error. The client would keep it: DescribeGroups, which is sent shard by
// shard, dials a dead coordinator until that broker is back, and no request leaves a coordinator that is silent.
type group struct {
	name  string
	kafka *kgo.Client

	mu          sync.Mutex
	coordinator int32 // broker id of the coordinator; noCoordinator if unknown
}

const noCoordinator = -1

func newGroup(kafka *kgo.Client, name string) *group {
	return &group{name: name, kafka: kafka, coordinator: noCoordinator}
}

// member is a member of the group.
type member struct {
	id       string  // id of the membership
	instance *string // id of the node; nil for a member that is not an engine
	url      string  // URL at which other nodes reach the node
	topics   map[string][]int32
}

// members returns the members of the group. It returns none if the group does not exist yet.
func (g *group) members(ctx context.Context) ([]member, error) {
	request := kmsg.NewPtrDescribeGroupsRequest()
	request.Groups = []string{g.name}
	response, err := g.ask(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("ownership: describing the group: %w", err)
	}
	var all []member
	for _, described := range response.(*kmsg.DescribeGroupsResponse).Groups {
		err := kerr.ErrorForCode(described.ErrorCode)
		if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			g.forget()
			return nil, fmt.Errorf("ownership: describing the group: %w", err)
		}
		for _, m := range described.Members {
			all = append(all, member{id: m.MemberID, instance: m.InstanceID, url: m.ClientID, topics: assigned(m.MemberAssignment)})
		}
	}
	return all, nil
}

// assigned decodes a member's assignment. If that fails, it returns no partitions.
func assigned(raw []byte) map[string][]int32 {
	var assignment kmsg.ConsumerMemberAssignment
	if len(raw) == 0 || assignment.ReadFrom(raw) != nil {
		return nil
	}
	topics := make(map[string][]int32)
	for _, t := range assignment.Topics {
		topics[t.Topic] = t.Partitions
	}
	return topics
}

// remove ends one membership. It identifies the membership and not only the node, which may have joined again since.
func (g *group) remove(ctx context.Context, m member, reason string) error {
	request := kmsg.NewPtrLeaveGroupRequest()
	request.Group = g.name
	leaving := kmsg.NewLeaveGroupRequestMember()
	leaving.MemberID, leaving.InstanceID, leaving.Reason = m.id, m.instance, &reason
	request.Members = append(request.Members, leaving)
	answer, err := g.ask(ctx, request)
	if err != nil {
		return err
	}
	response := answer.(*kmsg.LeaveGroupResponse)
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		g.forget()
		return err
	}
	for _, left := range response.Members {
		if err := kerr.ErrorForCode(left.ErrorCode); err != nil {
			return err
		}
	}
	return nil
}

// leave ends the membership of this node. It repeats the request until the coordinator answers, because otherwise the
// other nodes would wait until the session expires.
func (g *group) leave(ctx context.Context, instance string) error {
	for {
		err := g.remove(ctx, member{instance: &instance}, "stopping")
		var answered *kerr.Error
		if err == nil || errors.As(err, &answered) && !answered.Retriable {
			return err
		}
		pause := time.NewTimer(retryPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return err
		case <-pause.C:
		}
	}
}

// ask sends a request to the coordinator, once.
func (g *group) ask(ctx context.Context, request kmsg.Request) (kmsg.Response, error) {
	id, err := g.find(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding the coordinator: %w", err)
	}
	response, err := g.kafka.Broker(int(id)).Request(ctx, request)
	if err != nil {
		g.forget()
		return nil, fmt.Errorf("asking the coordinator, broker %d: %w", id, err)
	}
	return response, nil
}

// find returns the coordinator's broker id.
func (g *group) find(ctx context.Context) (int32, error) {
	g.mu.Lock()
	known := g.coordinator
	g.mu.Unlock()
	if known != noCoordinator {
		return known, nil
	}
	request := kmsg.NewPtrFindCoordinatorRequest()
	request.CoordinatorType, request.CoordinatorKey, request.CoordinatorKeys = 0, g.name, []string{g.name}
	response, err := request.RequestWith(ctx, g.kafka)
	if err != nil {
		return 0, err
	}
	id, err := response.NodeID, kerr.ErrorForCode(response.ErrorCode) // before version 4
	for _, c := range response.Coordinators {
		id, err = c.NodeID, kerr.ErrorForCode(c.ErrorCode)
	}
	if err != nil {
		return 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.coordinator = id
	return id, nil
}

// forget makes the next request find the coordinator again.
func (g *group) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.coordinator = noCoordinator
}
