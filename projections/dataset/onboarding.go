package dataset

import (
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// triggerRow is a change of the status of an application. The first row of an application, without an action, says who applies for
// what. Ordinal is the index of the event.
type triggerRow struct {
	Origin
	TriggerID     scalar.ID          `parquet:"trigger_id,uuid,id(4)"`
	EntitlementID scalar.ID          `parquet:"entitlement_id,optional,uuid,id(5)"`
	OwnerID       scalar.ID          `parquet:"owner_id,uuid,id(6)"`
	OwnerType     owner.Type         `parquet:"owner_type,dict,id(7)"`
	Tenant        string             `parquet:"tenant,optional,dict,id(8)"`
	Action        entitlement.Action `parquet:"action,optional,dict,id(9)"`
	Status        entitlement.Status `parquet:"status,dict,id(10)"`
	Result        entitlement.Result `parquet:"result,optional,dict,id(11)"`
	ActorKind     domain.ActorKind   `parquet:"actor_kind,dict,id(12)"`
	RequestID     scalar.ID          `parquet:"request_id,optional,uuid,id(14)"`
	Outcome       domain.Outcome     `parquet:"outcome,optional,dict,id(15)"`
}

func triggerRows(_ *maker, e *record.Entry, add func(triggerRow)) {
	for r := range onboarding.TriggerEventsIn(e) {
		t := &r.Value
		if t.Status == "" {
			continue
		}
		row := triggerRow{Origin: originOf(e, r.Key.Ordinal), TriggerID: t.TriggerID, OwnerID: t.Ref.ID, OwnerType: t.Ref.Type, Action: t.Action,
			Status: t.Status, Result: t.Result, ActorKind: t.By, RequestID: t.RequestID, Outcome: t.Outcome}
		if created, ok := e.Record.Events[r.Key.Ordinal].(*domain.TriggerCreated); ok {
			row.EntitlementID, row.Tenant = created.EntitlementID, onboarding.Tenant(e)
		}
		add(row)
	}
}

// responseRow is a response to a questionnaire. Ordinal is the index of the event.
type responseRow struct {
	Origin
	ID              scalar.ID  `parquet:"id,uuid,id(4)"`
	QuestionnaireID scalar.ID  `parquet:"questionnaire_id,uuid,id(5)"`
	VersionID       scalar.ID  `parquet:"questionnaire_version_id,uuid,id(6)"`
	VersionNumber   int64      `parquet:"version_number,id(7)"`
	OwnerID         scalar.ID  `parquet:"owner_id,uuid,id(8)"`
	OwnerType       owner.Type `parquet:"owner_type,dict,id(9)"`
	Tenant          string     `parquet:"tenant,dict,id(10)"`
}

func responseRows(_ *maker, e *record.Entry, add func(responseRow)) {
	for r := range onboarding.ResponsesIn(e) {
		v := &r.Value
		add(responseRow{originOf(e, r.Key.Ordinal), v.ResponseAdded.ID, v.QuestionnaireID, v.VersionID, int64(v.Number), v.Ref.ID, v.Ref.Type,
			v.Tenant})
	}
}
