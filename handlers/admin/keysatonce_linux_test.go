package admin_test

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// keyFolder is a key store in a folder, which a venue's keys are moved to.
type keyFolder struct {
	*desk
	path string
}

// open has the venue know no key, and read each from the folder.
func (k *keyFolder) open() {
	k.T.Helper()
	fresh, err := seal.OpenOwners(k.T.Context(), "file://"+k.path, k.Box)
	if err != nil {
		k.T.Fatal(err)
	}
	*k.Owners = *fresh
}

// together answers nobody who asks for the key of one of the owners before somebody has asked for each: who asks for one after
// the other gets none.
func (k *keyFolder) together(of []owner.Ref, read func()) {
	k.T.Helper()
	k.open()
	var asked, told sync.WaitGroup
	contents := make(map[string][]byte)
	for _, ref := range of {
		name := filepath.Join(k.path, "owners", filepath.FromSlash(ref.String()))
		content, err := os.ReadFile(name)
		if err == nil {
			err = os.Remove(name)
		}
		if err == nil {
			err = syscall.Mkfifo(name, 0o600)
		}
		if err != nil {
			k.T.Fatal(err)
		}
		contents[name] = content
		asked.Add(1)
		told.Go(func() {
			pipe, err := os.OpenFile(name, os.O_WRONLY, 0) // once somebody reads it
			asked.Done()
			asked.Wait()
			if err == nil {
				_, _ = pipe.Write(content)
				_ = pipe.Close()
			}
		})
	}
	read()
	var others []*os.File
	for name := range contents { // whoever is not asked by now need not wait any longer
		if reader, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			others = append(others, reader)
		}
	}
	told.Wait()
	for _, o := range others {
		_ = o.Close()
	}
	for name, content := range contents {
		_ = os.Remove(name)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			k.T.Fatal(err)
		}
	}
}

// TestKeysOfAPageAreReadTogether: a list about several owners does not wait for the key store as often as there are owners.
func TestKeysOfAPageAreReadTogether(t *testing.T) {
	k := &keyFolder{newDesk(t), t.TempDir()}
	k.open()
	k.Send("broker-a", "POST", "/api/v1/webhooks", `{"url":"https://example.org/"}`).Want(201)
	entitlement := k.make("/entitlements", `{"name":"retail","owner_type":"person","approval":"manual"}`)
	var of []owner.Ref
	for n := range byte(3) {
		ref := k.owner("alpha", owner.PersonType, n+1)
		trigger := k.trigger(ref, "alpha", entitlement)
		k.Send("operator", "POST", base+"/entitlement_triggers/"+trigger+"/reject", because).Want(200)
		id := k.delivery()
		k.submit(decide.Actor{System: "sender"}, &onboarding.RecordAttempt{ID: id, Number: 1, Started: scalar.TimeOf(tradingtest.Start), StatusCode: 200,
			Reply: k.sealed("thanks", seal.DeliveryResponse(ref, id))})
		of = append(of, ref)
	}
	for path, told := range map[string]string{base + "/persons": `"first_name":"Ann"`, base + "/webhook_deliveries": `"response":"thanks"`, "/api/v1/events": `"reason":"`} {
		k.together(of, func() {
			if shown := k.Send("operator", "GET", path, "", operation.HeaderMinLogPosition, k.Onboarding.Tip().String()).Want(200); !ordered(shown.Body, told, told, told) {
				t.Errorf("%s: %s", path, shown.Body)
			}
		})
	}
}
